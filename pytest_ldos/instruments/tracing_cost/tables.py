"""The latency that recording adds to messages, and the cost of a tracepoint.

The unit of evidence is a start, because messages of one process are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.series import Better
from pytest_ldos.base.stats.intervals import mean_interval
from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.instruments.cost_layers import Kind, Layer
from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Round, Table
from pytest_ldos.instruments.tracing_cost.pairs import Latencies, Start
from pytest_ldos.instruments.tracing_cost.recordings import TITLES, Mode, exchanges_under
from pytest_ldos.instruments.tracing_cost.spec import Case
from pytest_ldos.measure.metrics.model import Metric

TARGET_US: Final = 3.3
"""The seed's mean over all experiments."""

_Numbers = npt.NDArray[np.float64]
Center = Callable[[_Numbers], float]


class Answer(StrEnum):
    """Result of comparing an overhead's interval with the target."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Overhead:
    """Mean over the pairs in µs, with its 95 % interval; a single pair has no bounds."""

    value: float
    low: float | None
    high: float | None

    @property
    def answer(self) -> Answer:
        """Comparison with `TARGET_US`."""
        if self.low is None or self.high is None:
            return Answer.UNDECIDED
        if self.high <= TARGET_US:
            return Answer.MET
        return Answer.MISSED if self.low > TARGET_US else Answer.UNDECIDED


@dataclass(frozen=True)
class PairedStarts:
    """A start without and one with tracing, of the same pair."""

    plain: Start
    traced: Start

    def latencies_us(self, case: Case) -> tuple[_Numbers, _Numbers] | None:
        """Returns the latencies without and with tracing; ``None`` if either is missing."""
        found = [np.array(start.cases[case].latencies_ns) for start in (self.plain, self.traced) if case in start.cases]
        if len(found) < 2 or not all(len(each) for each in found):
            return None
        return found[0] / NS_PER_US, found[1] / NS_PER_US


def pair_up(starts: Sequence[Start], mode: Mode) -> list[PairedStarts]:
    """Pairs the successful starts of one layer by number."""
    plain = {start.pair: start for start in starts if start.mode is Mode.UNTRACED and not start.failure}
    traced = {start.pair: start for start in starts if start.mode is mode and not start.failure}
    return [PairedStarts(plain[number], traced[number]) for number in sorted(plain.keys() & traced.keys())]


def mean_of(values: _Numbers) -> float:
    return float(np.mean(values))


def median_of(values: _Numbers) -> float:
    return float(np.median(values))


def overhead_of(pairs: Sequence[PairedStarts], cases: Sequence[Case], center: Center) -> Overhead | None:
    """Overhead in one or several cases; each case's untraced center is subtracted first.

    Args:
        center: center of a start's latencies: `mean_of` or `median_of`.
    """
    shifted = [list(_shifted(pair, cases, center)) for pair in pairs]
    differences = [center(np.concatenate(parts)) for parts in shifted if parts]
    if not differences:
        return None
    low, high = mean_interval(differences)
    has_bounds = len(differences) > 1
    return Overhead(float(np.mean(differences)), low if has_bounds else None, high if has_bounds else None)


def _shifted(pair: PairedStarts, cases: Sequence[Case], center: Center) -> Iterator[_Numbers]:
    for case in cases:
        found = pair.latencies_us(case)
        if found is not None:
            yield found[1] - center(found[0])


def level_of(pairs: Sequence[PairedStarts], case: Case, *, traced: bool) -> float | None:
    """Mean latency in µs over the starts of the pairs."""
    found = [both[traced] for pair in pairs if (both := pair.latencies_us(case)) is not None]
    return float(np.mean([np.mean(each) for each in found])) if found else None


SEED_OVERHEAD_US: Final[Mapping[tuple[int, int], int]] = {
    (1, 100): 5,
    (1, 500): 4,
    (1, 1000): 3,
    (1, 2000): 3,
    (32, 100): 4,
    (32, 500): 3,
    (32, 1000): 3,
    (32, 2000): 3,
    (64, 100): 4,
    (64, 500): 3,
    (64, 1000): 3,
    (64, 2000): 3,
    (256, 100): 2,
    (256, 500): 2,
    (256, 1000): 4,
    (256, 2000): 5,
}
"""By KiB and Hz: difference of the seed's averages with and without tracing (appendix A, rounded there to 1 µs)."""

SEED_MEAN_US: Final = 3.3
SEED_TRACEPOINT_NS: Final = 158.0
"""LTTng's cost per tracepoint, as quoted by the seed (Intel i7-3770)."""

_COLUMNS: Final = (
    Column(name="case", title="messages"),
    Column(name="untraced", unit="µs", title="untraced"),
    Column(name="traced", unit="µs", title="traced"),
    Column(name="mean", unit="µs", title="mean overhead"),
    Column(name="mean_low", unit="µs", title="from"),
    Column(name="mean_high", unit="µs", title="to"),
    Column(name="median", unit="µs", title="median overhead"),
    Column(name="median_low", unit="µs", title="from"),
    Column(name="median_high", unit="µs", title="to"),
    Column(name="seed", unit="µs", title="seed's mean"),
    Column(name="target", title="≤ 3.3 µs"),
)
"""The last two columns are the seed's, which measured only LTTng and has a target only for rclcpp."""

_TRACEPOINT_COLUMNS: Final = (
    Column(name="layer"),
    Column(name="recording"),
    Column(name="time_per_call", unit="ns", title="a call"),
    Column(name="call_low", unit="ns", title="from"),
    Column(name="call_high", unit="ns", title="to"),
    Column(name="seed", unit="ns", title="seed's"),
    Column(name="per_message", title="recorded a message"),
    Column(name="sum_per_message", unit="µs", title="these together"),
    Column(name="lost", title="events lost"),
)


_AGAINST_COLUMNS: Final = (
    Column(name="layer"),
    Column(name="of"),
    Column(name="lttng", unit="µs", title="LTTng"),
    Column(name="ebpf", unit="µs", title="eBPF"),
    Column(name="more", unit="µs", title="eBPF takes more"),
    Column(name="more_low", unit="µs", title="from"),
    Column(name="more_high", unit="µs", title="to"),
)
_RECORDED: Final = (Mode.LTTNG, Mode.EBPF)


@dataclass(frozen=True)
class Traced:
    """All starts of one layer.

    Attributes:
        modes: modes of recording, untraced first.
    """

    layer: Layer
    modes: Sequence[Mode]
    starts: Sequence[Start]

    def of(self, mode: Mode) -> list[Start]:
        return [start for start in self.starts if start.mode is mode]


def tables_of(layers: Sequence[Traced], cases: Sequence[Case]) -> Iterator[Table]:
    """Yields a table per layer and mode, one of tracepoints, and a comparison of eBPF with LTTng if both ran."""
    for traced in layers:
        for mode in traced.modes[1:]:
            pairs = pair_up(traced.starts, mode)
            if any(pair.traced.cases for pair in pairs):
                yield _overheads(traced.layer, mode, pairs, cases)
    rows = tuple(row for traced in layers for mode in traced.modes if (row := _tracepoint_row(traced, mode)))
    title = "a tracepoint, in a loop of calls (means of starts, 95 % intervals)"
    yield Table(name="tracepoints", title=title, columns=_TRACEPOINT_COLUMNS, rows=rows)
    if against := tuple(row for traced in layers for row in _against_rows(traced, cases)):
        title = "eBPF against LTTng: the same calls recorded (means of turns, 95 % intervals)"
        yield Table(name="ebpf_against_lttng", title=title, columns=_AGAINST_COLUMNS, rows=against)


def _overheads(layer: Layer, mode: Mode, pairs: Sequence[PairedStarts], cases: Sequence[Case]) -> Table:
    is_judged = layer.kind is Kind.ROS2 and mode is Mode.LTTNG
    title = f"{layer.label}: publish → callback, {TITLES[mode]} (means of {len(pairs)} starts of each, 95 % intervals)"
    rows = [*(_case_row(pairs, case) for case in cases), _total_row(pairs, cases)]
    shown = len(_COLUMNS) if is_judged else len(_COLUMNS) - (1 if mode is Mode.LTTNG else 2)
    return Table(
        name=f"overhead_{layer.label.replace(' ', '_')}_{mode}",
        title=title,
        columns=_COLUMNS[:shown],
        rows=tuple(row[:shown] for row in rows),
    )


def _case_row(pairs: Sequence[PairedStarts], case: Case) -> tuple[Cell, ...]:
    levels = (level_of(pairs, case, traced=False), level_of(pairs, case, traced=True))
    seed = SEED_OVERHEAD_US.get((case.size_kib, case.rate_hz))
    return (case.label, *levels, *_overhead_cells(pairs, [case]), seed, _target(pairs, [case]))


def _total_row(pairs: Sequence[PairedStarts], cases: Sequence[Case]) -> tuple[Cell, ...]:
    return ("all messages", None, None, *_overhead_cells(pairs, cases), SEED_MEAN_US, _target(pairs, cases))


def _overhead_cells(pairs: Sequence[PairedStarts], cases: Sequence[Case]) -> Iterator[Cell]:
    for center in (mean_of, median_of):
        found = overhead_of(pairs, cases, center)
        yield from (None, None, None) if found is None else (found.value, found.low, found.high)


def _target(pairs: Sequence[PairedStarts], cases: Sequence[Case]) -> Cell:
    found = overhead_of(pairs, cases, mean_of)
    return None if found is None else str(found.answer)


def _tracepoint_row(traced: Traced, mode: Mode) -> tuple[Cell, ...] | None:
    """Returns the row of a mode; ``None`` if no tracepoint was timed."""
    starts = [start for start in traced.of(mode) if start.tracepoint_ns and not start.failure]
    if not starts:
        return None
    times = [median(start.tracepoint_ns) for start in starts]
    low, high = mean_interval(times)
    has_bounds = len(times) > 1
    time_ns, count = sum(times) / len(times), _per_message(starts)
    return (
        traced.layer.label,
        TITLES[mode],
        time_ns,
        max(0.0, low) if has_bounds else None,
        high if has_bounds else None,
        SEED_TRACEPOINT_NS if mode is Mode.LTTNG else None,
        count,
        None if count is None else count * time_ns / NS_PER_US,
        None if mode is Mode.UNTRACED else sum(start.recorded.lost for start in starts),
    )


def _against_rows(traced: Traced, cases: Sequence[Case]) -> Iterator[tuple[Cell, ...]]:
    """Yields rows for a call in a loop, and for messages recorded by both, from paired starts."""
    lttng, ebpf = ({start.pair: start for start in traced.of(mode) if not start.failure} for mode in _RECORDED)
    turns = [(lttng[number], ebpf[number]) for number in sorted(lttng.keys() & ebpf.keys())]
    timed = [pair for pair in turns if all(start.tracepoint_ns for start in pair)]
    if timed:
        calls_us = [[median(start.tracepoint_ns) / NS_PER_US for start in pair] for pair in timed]
        yield (traced.layer.label, "a call", *_difference_cells(calls_us))
    for name, center in (("a message, mean", mean_of), ("a message, median", median_of)):
        pairs = [PairedStarts(*pair) for pair in turns]
        found = overhead_of(pairs, cases, center)
        if found is not None:
            yield (traced.layer.label, name, None, None, found.value, found.low, found.high)


def _difference_cells(pairs: Sequence[Sequence[float]]) -> tuple[Cell, ...]:
    """Returns the means of both, and of their difference, with its interval."""
    differences = [ebpf - lttng for lttng, ebpf in pairs]
    low, high = mean_interval(differences)
    bounds = (low, high) if len(pairs) > 1 else (None, None)
    return (fmean(pair[0] for pair in pairs), fmean(pair[1] for pair in pairs), fmean(differences), *bounds)


def _per_message(starts: Sequence[Start]) -> float | None:
    """Returns the recorded events per message, without the calls in timed loops."""
    came = sum(start.received + start.warm_up for start in starts if start.received)
    recorded = sum(count for start in starts for count in start.recorded.counts.values())
    on_the_way = recorded - sum(start.timed_calls for start in starts)
    return on_the_way / came if came and on_the_way > 0 else None


def figures_of(layers: Sequence[Traced], cases: Sequence[Case]) -> Iterator[Figure]:
    """Yields figures of mean overhead by rate, with a curve per size."""
    for traced in layers:
        for mode in traced.modes[1:]:
            pairs = pair_up(traced.starts, mode)
            curves = tuple(_curves(pairs, cases))
            if curves:
                yield Figure(
                    name=f"overhead_{traced.layer.label.replace(' ', '_')}_{mode}",
                    title=f"Mean overhead of {TITLES[mode]}, {traced.layer.label}",
                    x=Axis(title="rate", unit="Hz", is_log=True),
                    y=Axis(title="mean overhead", unit="µs"),
                    curves=curves,
                )


def _curves(pairs: Sequence[PairedStarts], cases: Sequence[Case]) -> Iterator[Curve]:
    for size_kib in dict.fromkeys(case.size_kib for case in cases):
        found = [(case.rate_hz, overhead_of(pairs, [case], mean_of)) for case in cases if case.size_kib == size_kib]
        points = tuple(_point(rate_hz, overhead) for rate_hz, overhead in sorted(found) if overhead is not None)
        if points:
            yield Curve(f"{size_kib} KiB", points)


def _point(rate_hz: int, overhead: Overhead) -> Point:
    return Point(rate_hz, overhead.value, overhead.low, overhead.high)


LATENCY_MEDIAN: Final = Metric(
    name="latency_median", title="Publish → callback, median", unit="µs", better=Better.LOWER
)
LATENCY_MEAN: Final = Metric(name="latency_mean", title="Publish → callback, mean", unit="µs", better=Better.LOWER)
TRACEPOINT: Final = Metric(name="tracepoint", title="A call of a tracepoint", unit="ns", better=Better.LOWER)
QUANTITIES: Final = (LATENCY_MEDIAN, LATENCY_MEAN, TRACEPOINT)


def rounds_of(start: Start, cases: Sequence[Case]) -> Iterator[Round]:
    """Yields a round per case, and one for the tracepoint; failed rounds have a reason."""
    name = f"{start.layer.label} {TITLES[start.mode]}"
    if exchanges_under(start.mode, start.layer):
        for case in cases:
            yield _case_round(f"{name}: {case.label}", start, start.cases.get(case))
    failure = start.failure or ("" if start.tracepoint_ns else "no tracepoint was timed")
    values = {} if failure else {TRACEPOINT.name: float(np.median(start.tracepoint_ns))}
    yield Round(case=f"{name}: a tracepoint", block=start.block, values=values, failure=failure)


def _case_round(case: str, start: Start, found: Latencies | None) -> Round:
    if start.failure or found is None or not found.latencies_ns:
        return Round(case=case, block=start.block, failure=start.failure or "no message came")
    return Round(case=case, block=start.block, values=_values(found), details=_details(found))


def _values(found: Latencies) -> Mapping[str, float]:
    latencies_us = np.array(found.latencies_ns) / NS_PER_US
    return {LATENCY_MEDIAN.name: float(np.median(latencies_us)), LATENCY_MEAN.name: float(np.mean(latencies_us))}


def _details(found: Latencies) -> Mapping[str, float]:
    latencies_us = np.array(found.latencies_ns) / NS_PER_US
    return {
        "min_us": float(latencies_us.min()),
        "p99_us": float(np.percentile(latencies_us, 99)),
        "max_us": float(latencies_us.max()),
        "std_us": float(latencies_us.std()),
        "lost_percent": 100.0 * (found.published - len(found.latencies_ns)) / found.published,
    }
