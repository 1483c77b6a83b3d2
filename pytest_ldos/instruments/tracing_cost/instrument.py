"""`ldos tracing-cost`: the latency that recording adds to messages, and the cost of a tracepoint.

The unit of evidence is a start, because messages of one process are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.series import Better
from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.host.availability import Availability
from pytest_ldos.instruments import study
from pytest_ldos.instruments.cost_layers import Kind, Layer, choose_layers, identity_of, layers_available
from pytest_ldos.instruments.tracing_cost.pairs import (
    TITLES,
    Latencies,
    Mode,
    Pairs,
    Start,
    ebpf_available,
    exchanges_under,
    probes_of,
)
from pytest_ldos.instruments.tracing_cost.spec import SizeAndRate, TracingCostSpec
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.record.choose import recorder_name, recording_available

_Numbers = npt.NDArray[np.float64]
Center = Callable[[_Numbers], float]


@dataclass(frozen=True)
class PairedStarts:
    """A start without and one with tracing (or with two recorders), of the same pair."""

    plain: Start
    traced: Start

    def latencies_us(self, case: SizeAndRate) -> tuple[_Numbers, _Numbers] | None:
        """Returns the latencies without and with tracing; ``None`` if either is missing."""
        found = [np.array(start.cases[case].latencies_ns) for start in (self.plain, self.traced) if case in start.cases]
        if len(found) < 2 or not all(len(each) for each in found):
            return None
        return found[0] / NS_PER_US, found[1] / NS_PER_US


def pair_up(starts: Sequence[Start], mode: Mode, plain_mode: Mode = Mode.UNTRACED) -> list[PairedStarts]:
    """Pairs the successful starts of one layer by number."""
    plain, traced = (
        {start.pair: start for start in starts if start.mode is each and not start.failure}
        for each in (plain_mode, mode)
    )
    return [PairedStarts(plain[number], traced[number]) for number in sorted(plain.keys() & traced.keys())]


def overhead_of(pairs: Sequence[PairedStarts], cases: Sequence[SizeAndRate], center: Center) -> study.Estimate | None:
    """Overhead in µs in some cases; each case's untraced center (`fmean`, `median`) is subtracted first."""
    differences = []
    for pair in pairs:
        found = [both for case in cases if (both := pair.latencies_us(case)) is not None]
        if found:
            differences.append(center(np.concatenate([traced - center(plain) for plain, traced in found])))
    return study.Estimate.of_mean(differences) if differences else None


def level_of(pairs: Sequence[PairedStarts], case: SizeAndRate, *, traced: bool) -> float | None:
    """Mean latency in µs over the starts of the pairs."""
    found = [both[traced] for pair in pairs if (both := pair.latencies_us(case)) is not None]
    return float(np.mean([np.mean(each) for each in found])) if found else None


_COLUMNS: Final = (
    "case messages, untraced [µs], traced [µs], mean±mean [µs] mean overhead, median±median [µs] median overhead"
)
_TRACEPOINT_COLUMNS: Final = (
    "layer, recording, time_per_call±call [ns] a call, per_message recorded a message, "
    "sum_per_message [µs] these together, lost events lost"
)
_AGAINST_COLUMNS: Final = "layer, of, lttng [µs] LTTng, ebpf [µs] eBPF, more±more [µs] eBPF takes more"


@dataclass(frozen=True)
class Traced:
    """All starts of one layer, and its modes of recording, untraced first."""

    layer: Layer
    modes: Sequence[Mode]
    starts: Sequence[Start]

    def of(self, mode: Mode) -> list[Start]:
        return [start for start in self.starts if start.mode is mode]


def tables_of(layers: Sequence[Traced], cases: Sequence[SizeAndRate]) -> Iterator[study.Table]:
    for traced in layers:
        for mode in traced.modes[1:]:
            pairs = pair_up(traced.starts, mode)
            if any(pair.traced.cases for pair in pairs):
                yield _overheads(traced.layer, mode, pairs, cases)
    rows = (row for traced in layers for mode in traced.modes if (row := _tracepoint_row(traced, mode)))
    title = "a tracepoint, in a loop of calls (means of starts, 95 % intervals)"
    yield study.Table.of(_TRACEPOINT_COLUMNS, rows, name="tracepoints", title=title)
    if against := tuple(row for traced in layers for row in _against_rows(traced, cases)):
        title = "eBPF against LTTng: the same calls recorded (means of turns, 95 % intervals)"
        yield study.Table.of(_AGAINST_COLUMNS, against, name="ebpf_against_lttng", title=title)


def _overheads(layer: Layer, mode: Mode, pairs: Sequence[PairedStarts], cases: Sequence[SizeAndRate]) -> study.Table:
    title = f"{layer.label}: publish → callback, {TITLES[mode]} (means of {len(pairs)} starts of each, 95 % intervals)"
    rows: list[tuple[study.Cell, ...]] = []
    for case in cases:
        levels = (level_of(pairs, case, traced=False), level_of(pairs, case, traced=True))
        rows.append((case.label, *levels, *_overhead_cells(pairs, [case])))
    rows.append(("all messages", None, None, *_overhead_cells(pairs, cases)))
    return study.Table.of(_COLUMNS, rows, name=f"overhead_{layer.label.replace(' ', '_')}_{mode}", title=title)


def _overhead_cells(pairs: Sequence[PairedStarts], cases: Sequence[SizeAndRate]) -> Iterator[study.Cell]:
    for center in (fmean, median):
        yield from study.cells_of(overhead_of(pairs, cases, center))


def _tracepoint_row(traced: Traced, mode: Mode) -> tuple[study.Cell, ...] | None:
    starts = [start for start in traced.of(mode) if start.tracepoint_ns and not start.failure]
    if not starts:
        return None
    call = study.Estimate.of_mean([median(start.tracepoint_ns) for start in starts], least=0.0)
    came = sum(start.received + start.warm_up for start in starts if start.received)
    recorded = sum(sum(start.recorded.counts.values()) - start.timed_calls for start in starts)
    count = recorded / came if came and recorded > 0 else None  # events per message, without those of the loops
    return (
        traced.layer.label,
        TITLES[mode],
        *study.cells_of(call),
        count,
        None if count is None else count * call.value / NS_PER_US,
        None if mode is Mode.UNTRACED else sum(start.recorded.lost for start in starts),
    )


def _against_rows(traced: Traced, cases: Sequence[SizeAndRate]) -> Iterator[tuple[study.Cell, ...]]:
    turns = pair_up(traced.starts, Mode.EBPF, Mode.LTTNG)
    calls_ns = [(pair.plain.tracepoint_ns, pair.traced.tracepoint_ns) for pair in turns]
    calls_us = [tuple(median(each) / NS_PER_US for each in pair) for pair in calls_ns if all(pair)]
    if calls_us:
        more = study.Estimate.of_mean([ebpf_us - lttng_us for lttng_us, ebpf_us in calls_us])
        yield (traced.layer.label, "a call", *map(fmean, zip(*calls_us, strict=True)), *study.cells_of(more))
    for name, center in (("a message, mean", fmean), ("a message, median", median)):
        found = overhead_of(turns, cases, center)
        if found is not None:
            yield (traced.layer.label, name, None, None, *study.cells_of(found))


def figures_of(layers: Sequence[Traced], cases: Sequence[SizeAndRate]) -> Iterator[study.Figure]:
    for traced in layers:
        for mode in traced.modes[1:]:
            curves = tuple(_curves(pair_up(traced.starts, mode), cases))
            if curves:
                yield study.Figure(
                    name=f"overhead_{traced.layer.label.replace(' ', '_')}_{mode}",
                    title=f"Mean overhead of {TITLES[mode]}, {traced.layer.label}",
                    x=study.Axis(title="rate", unit="Hz", is_log=True),
                    y=study.Axis(title="mean overhead", unit="µs"),
                    curves=curves,
                )


def _curves(pairs: Sequence[PairedStarts], cases: Sequence[SizeAndRate]) -> Iterator[study.Curve]:
    for size_kib in dict.fromkeys(case.size_kib for case in cases):
        found = [(case.rate_hz, overhead_of(pairs, [case], fmean)) for case in cases if case.size_kib == size_kib]
        points = tuple(study.Point(rate_hz, mean.value, mean.low, mean.high) for rate_hz, mean in sorted(found) if mean)
        if points:
            yield study.Curve(f"{size_kib} KiB", points)


LATENCY_MEDIAN: Final = Metric(
    name="latency_median", title="Publish → callback, median", unit="µs", better=Better.LOWER
)
LATENCY_MEAN: Final = Metric(name="latency_mean", title="Publish → callback, mean", unit="µs", better=Better.LOWER)
TRACEPOINT: Final = Metric(name="tracepoint", title="A call of a tracepoint", unit="ns", better=Better.LOWER)
QUANTITIES: Final = (LATENCY_MEDIAN, LATENCY_MEAN, TRACEPOINT)


def rounds_of(start: Start, cases: Sequence[SizeAndRate]) -> Iterator[study.Round]:
    """Yields a round per case, and one for the tracepoint; failed rounds have a reason."""
    name = f"{start.layer.label} {TITLES[start.mode]}"
    if exchanges_under(start.mode, start.layer):
        for case in cases:
            yield _case_round(f"{name}: {case.label}", start, start.cases.get(case))
    failure = start.failure or ("" if start.tracepoint_ns else "no tracepoint was timed")
    values = {} if failure else {TRACEPOINT.name: float(np.median(start.tracepoint_ns))}
    yield study.Round(case=f"{name}: a tracepoint", block=start.block, values=values, failure=failure)


def _case_round(case: str, start: Start, found: Latencies | None) -> study.Round:
    if start.failure or found is None or not found.latencies_ns:
        return study.Round(case=case, block=start.block, failure=start.failure or "no message came")
    latencies_us = np.array(found.latencies_ns) / NS_PER_US
    values = {LATENCY_MEDIAN.name: float(np.median(latencies_us)), LATENCY_MEAN.name: float(np.mean(latencies_us))}
    details = {
        "min_us": float(latencies_us.min()),
        "p99_us": float(np.percentile(latencies_us, 99)),
        "max_us": float(latencies_us.max()),
        "std_us": float(latencies_us.std()),
        "lost_percent": 100.0 * (found.published - len(found.latencies_ns)) / found.published,
    }
    return study.Round(case=case, block=start.block, values=values, details=details)


_NAME: Final = "tracing_cost"


def available(spec: TracingCostSpec) -> Availability:
    recording = recording_available()
    return layers_available(spec.layer, spec.rmws, traced=True) if recording.ok else recording


def measure(spec: TracingCostSpec, progress: study.Progress) -> study.Study:
    started_at = datetime.now(UTC).isoformat()
    layers, notes = choose_layers(spec.layer, spec.rmws, traced=True)
    chosen = [(layer, *choose_modes(spec, layer)) for layer in layers]
    progress.expect(sum(len(modes) for _, modes, _ in chosen) * spec.starts)
    measured, first_block = [], 0
    for layer, modes, why_not in chosen:
        pairs = Pairs(spec=spec, layer=layer, modes=modes, first_block=first_block, progress=progress)
        measured.append(Traced(layer, modes, list(pairs.measure())))
        first_block += len(modes) * spec.starts
        notes = [*notes, *why_not]
    return compose(spec, measured, notes=tuple(dict.fromkeys(notes)), started_at=started_at)


def choose_modes(spec: TracingCostSpec, layer: Layer) -> tuple[Sequence[Mode], Sequence[str]]:
    modes = [Mode.UNTRACED, Mode.LTTNG]
    if not spec.ebpf:
        return modes, ()
    able = ebpf_available(probes_of(layer))
    if able.ok:
        return [*modes, Mode.EBPF], ()
    return modes, (f"eBPF was not measured: {able.reason} ({able.remedy})",)


def compose(spec: TracingCostSpec, measured: Sequence[Traced], *, notes: Sequence[str], started_at: str) -> study.Study:
    layers = [traced.layer for traced in measured]
    return study.Study(
        instrument="tracing-cost",
        name=_NAME,
        **identity_of(layers, recorder=recorder_name()),
        started_at=started_at,
        settings={
            "sizes_kib": ",".join(map(str, dict.fromkeys(case.size_kib for case in spec.cases))),
            "rates_hz": ",".join(map(str, dict.fromkeys(case.rate_hz for case in spec.cases))),
            "seconds": spec.seconds,
            "starts": spec.starts,
            "calls": spec.calls,
        },
        quantities=QUANTITIES,
        rounds=tuple(each for traced in measured for start in traced.starts for each in rounds_of(start, spec.cases)),
        tables=tuple(tables_of(measured, spec.cases)),
        figures=tuple(figures_of(measured, spec.cases)),
        notes=(*notes, *_notes(measured)),
    )


def _notes(measured: Sequence[Traced]) -> Iterator[str]:
    for traced in measured:
        for mode in traced.modes:
            lost = sum(start.recorded.lost for start in traced.of(mode))
            if lost:
                yield f"{traced.layer.label}: {TITLES[mode]} lost {lost} events; these cost less than those it kept"
    if any(traced.layer.kind is Kind.EMBEDDED and Mode.EBPF in traced.modes for traced in measured):
        yield "embedded: eBPF records the timed tracepoint alone; the others are expanded in place"


INSTRUMENT: Final = study.Instrument(
    name=_NAME, spec=TracingCostSpec, quantities=QUANTITIES, available=available, measure=measure
)
