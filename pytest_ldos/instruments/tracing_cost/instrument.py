"""`ldos tracing-cost`: the latency that recording adds to messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from pytest_ldos.host.availability import Availability
from pytest_ldos.instruments.cost_layers import (
    Kind,
    Layer,
    choose_layers,
    layer_name,
    layers_available,
    middleware_name,
    versions_of,
)
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.study import Setting, Study
from pytest_ldos.instruments.tracing_cost.pairs import Pairs
from pytest_ldos.instruments.tracing_cost.recordings import TITLES, Mode, mode_available
from pytest_ldos.instruments.tracing_cost.spec import TracingCostSpec
from pytest_ldos.instruments.tracing_cost.tables import QUANTITIES, Traced, figures_of, rounds_of, tables_of
from pytest_ldos.record.choose import recorder_name, recording_available

_NAME: Final = "tracing_cost"


def available(spec: TracingCostSpec) -> Availability:
    """Reports if LTTng and any of the requested layers are available here."""
    recording = recording_available()
    return layers_available(spec.layer, spec.rmws, traced=True) if recording.ok else recording


def measure(spec: TracingCostSpec, progress: Progress) -> Study:
    """Measures pairs of nodes without and with tracing, interleaved."""
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
    """Returns the possible modes of recording, and notes on others."""
    modes = [Mode.UNTRACED, Mode.LTTNG]
    if not spec.ebpf:
        return modes, ()
    able = mode_available(Mode.EBPF, layer)
    if able.ok:
        return [*modes, Mode.EBPF], ()
    return modes, (f"eBPF was not measured: {able.reason} ({able.remedy})",)


def compose(spec: TracingCostSpec, measured: Sequence[Traced], *, notes: Sequence[str], started_at: str) -> Study:
    """Builds the study of all layers."""
    layers = [traced.layer for traced in measured]
    return Study(
        instrument="tracing-cost",
        name=_NAME,
        layer=layer_name(layers),
        middleware=middleware_name(layers),
        started_at=started_at,
        settings=_settings(spec),
        quantities=QUANTITIES,
        rounds=tuple(each for traced in measured for start in traced.starts for each in rounds_of(start, spec.cases)),
        tables=tuple(tables_of(measured, spec.cases)),
        figures=tuple(figures_of(measured, spec.cases)),
        notes=(*notes, *_notes(measured)),
        versions={**versions_of(layers), "recorder": recorder_name()},
    )


def _settings(spec: TracingCostSpec) -> dict[str, Setting]:
    sizes = dict.fromkeys(case.size_kib for case in spec.cases)
    rates = dict.fromkeys(case.rate_hz for case in spec.cases)
    return {
        "sizes_kib": ",".join(map(str, sizes)),
        "rates_hz": ",".join(map(str, rates)),
        "seconds": spec.seconds,
        "starts": spec.starts,
        "calls": spec.calls,
    }


def _notes(measured: Sequence[Traced]) -> Iterator[str]:
    if all(traced.layer.kind is not Kind.ROS2 for traced in measured):
        yield "the target of 3.3 µs is one of rclcpp's path, and is not judged here"
    for traced in measured:
        for mode in traced.modes:
            lost = sum(start.recorded.lost for start in traced.of(mode))
            if lost:
                yield f"{traced.layer.label}: {TITLES[mode]} lost {lost} events; these cost less than those it kept"
    if any(traced.layer.kind is Kind.EMBEDDED and Mode.EBPF in traced.modes for traced in measured):
        yield "embedded: eBPF records the timed tracepoint alone; the others are expanded in place"


INSTRUMENT: Final = Instrument(
    name=_NAME, spec=TracingCostSpec, quantities=QUANTITIES, available=available, measure=measure
)
