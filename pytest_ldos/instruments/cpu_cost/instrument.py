"""`ldos cpu-cost`: the CPU cost of a message on each rung of the ladder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from statistics import fmean, median
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.counters import Event
from pytest_ldos.instruments import study
from pytest_ldos.instruments.cost_layers import Kind, Layer, choose_layers, identity_of, layers_available
from pytest_ldos.instruments.cpu_cost.ladder import (
    TITLES,
    CpuCostSpec,
    Exchange,
    Ladder,
    Rung,
    RungRound,
    why_not_counted,
)
from pytest_ldos.measure.metrics.model import Metric

CPU: Final = Metric(name="cpu_per_message", title="CPU time a message", unit="µs", better=Better.LOWER)
SWITCHES: Final = Metric(name="switches_per_message", title="Context switches a message", unit="", better=Better.LOWER)
CYCLES: Final = Metric(name="cycles_per_message", title="CPU cycles a message", unit="", better=Better.LOWER)
QUANTITIES: Final = (CPU, SWITCHES, CYCLES)


def to_round(measured: RungRound, spec: CpuCostSpec) -> study.Round:
    """Converts to a round for the gate. On a rung without publications, the other rungs' number of messages is used."""
    case = f"{measured.layer.label} {TITLES[measured.rung]}: {spec.traffic}"
    if measured.rung in (Rung.NO_PUBLISHING, Rung.MANY_NODES, Rung.MANY_PARTICIPANTS):
        case += f", {spec.nodes} nodes"
    result = measured.result
    failure = result if isinstance(result, str) else why_useless(result, measured.rung, spec)
    if failure or isinstance(result, str):
        return study.Round(case=case, block=measured.block, failure=failure)
    messages = spec.messages
    values = {CPU.name: result.cpu_ns / NS_PER_US / messages, SWITCHES.name: result.switches / messages}
    if result.cycles is not None:
        values[CYCLES.name] = result.cycles / messages
    expected = 0 if measured.rung is Rung.NO_PUBLISHING else messages * spec.subscribers
    details = {
        "system_percent": 100.0 * result.system_ns / result.cpu_ns if result.cpu_ns else 0.0,
        "load_percent": 100.0 * result.cpu_ns / result.wall_ns if result.wall_ns else 0.0,
        "voluntary_per_message": result.voluntary / messages,
        "involuntary_per_message": result.involuntary / messages,
        "lost_percent": 100.0 * (expected - result.received) / expected if expected else 0.0,
    }
    if result.migrations is not None:
        details["migrations_per_message"] = result.migrations / messages
    return study.Round(case=case, block=measured.block, values=values, details=details)


def why_useless(exchange: Exchange, rung: Rung, spec: CpuCostSpec) -> str:
    """Returns the reason why a round gives no cost per message; empty if it does."""
    if rung is Rung.NO_PUBLISHING:
        return ""
    if exchange.published < spec.messages:
        return f"{exchange.published} of {spec.messages} messages were published in time"
    sent = spec.messages * spec.subscribers
    if exchange.received > sent:
        return f"{exchange.received} messages came where {sent} were due: some are late ones of the round before"
    return "" if exchange.received else "no message was received"


ByStart = Mapping[int, Sequence[float]]  # values of rounds by start, because rounds of one start are correlated


def estimate(values: ByStart) -> study.Estimate | None:
    """Mean over starts of the rounds' medians, with a non-negative interval; ``None`` without values."""
    medians = [median(of_start) for of_start in values.values()]
    return study.Estimate.of_mean(medians, least=0.0) if medians else None


def ratio(values: ByStart, base: ByStart) -> study.Estimate | None:
    """Geometric mean of the ratios within common starts, whose effects cancel; ``None`` without any, or with zeros."""
    pairs = [(median(values[start]), median(base[start])) for start in values if start in base]
    if not pairs or min(min(pair) for pair in pairs) <= 0:
        return None
    return study.Estimate.of_ratios(pairs)


_COST: Final = "what a message costs with all its subscribers (means over starts, 95 % intervals)"
_COLUMNS: Final = "cpu_per_message±cpu [µs] CPU/message, ratio±ratio × DDS"
_SWITCH_COLUMNS: Final = "switches_per_message±switches switches/message, voluntary, involuntary, migrations"
_CYCLE_COLUMNS: Final = "cycles_per_message±cycles cycles/message, cycles_ratio±cycles_ratio × DDS"
_DETAIL_COLUMNS: Final = "rounds, failed without result, system [%] of it in the kernel, load [%] of a CPU, lost [%]"


@dataclass(frozen=True)
class Climb:
    """Measurements of one layer: rounds by rung, including those that failed."""

    layer: Layer
    rounds: Mapping[Rung, Sequence[study.Round]]

    def values(self, rung: Rung, quantity: str) -> ByStart:
        found: dict[int, list[float]] = {}
        for each in self.rounds.get(rung, ()):
            value = each.values.get(quantity)
            if isinstance(value, float):
                found.setdefault(each.block, []).append(value)
        return found

    def detail(self, rung: Rung, name: str) -> float | None:
        """Returns the mean over the rounds, because the median number of a rare event is zero."""
        found = [each.details[name] for each in self.rounds.get(rung, ()) if name in each.details]
        return fmean(found) if found else None


def tables_of(climbs: Sequence[Climb]) -> Iterator[study.Table]:
    for climb in climbs:
        yield _table(climb, "ladder", _COST, _COLUMNS, partial(_cost_cells, quantity=CPU.name))
        yield _table(climb, "ladder_switches", "context switches of a message", _SWITCH_COLUMNS, _switch_cells)
        if any(climb.values(rung, CYCLES.name) for rung in climb.rounds):
            cycles = partial(_cost_cells, quantity=CYCLES.name)
            yield _table(climb, "ladder_cycles", "CPU cycles of a message", _CYCLE_COLUMNS, cycles)
        yield _table(climb, "ladder_details", "of which, and how sure", _DETAIL_COLUMNS, _detail_cells)


def _table(
    climb: Climb, name: str, title: str, columns: str, cells: Callable[[Climb, Rung], tuple[study.Cell, ...]]
) -> study.Table:
    label = climb.layer.label
    rows = ((TITLES[rung], *cells(climb, rung)) for rung in climb.rounds)
    return study.Table.of(f"rung, {columns}", rows, name=f"{name}_{label.replace(' ', '_')}", title=f"{label}: {title}")


def _cost_cells(climb: Climb, rung: Rung, *, quantity: str) -> tuple[study.Cell, ...]:
    """Returns the cost, and its ratio to DDS alone (for DDS itself 1, without an interval)."""
    values = climb.values(rung, quantity)
    times = ratio(values, climb.values(Rung.DDS, quantity))
    if rung is Rung.DDS and times is not None:
        times = study.Estimate(1.0, None, None)
    return (*study.cells_of(estimate(values)), *study.cells_of(times))


def _switch_cells(climb: Climb, rung: Rung) -> tuple[study.Cell, ...]:
    details = ("voluntary_per_message", "involuntary_per_message", "migrations_per_message")
    switches = estimate(climb.values(rung, SWITCHES.name))
    return (*study.cells_of(switches), *(climb.detail(rung, name) for name in details))


def _detail_cells(climb: Climb, rung: Rung) -> tuple[study.Cell, ...]:
    rounds = climb.rounds[rung]
    shares = (climb.detail(rung, name) for name in ("system_percent", "load_percent", "lost_percent"))
    return (len(rounds), sum(bool(each.failure) for each in rounds), *shares)


def figure_of(climbs: Sequence[Climb]) -> study.Figure | None:
    """Returns bars of CPU time per message, by rung and layer; ``None`` if nothing was measured."""
    rungs = [rung for rung in Rung if any(climb.values(rung, CPU.name) for climb in climbs)]
    if not rungs:
        return None
    curves = []
    for climb in climbs:
        found = [(place, estimate(climb.values(rung, CPU.name))) for place, rung in enumerate(rungs)]
        points = tuple(study.Point(place, cost.value, cost.low, cost.high) for place, cost in found if cost is not None)
        if points:
            curves.append(study.Curve(climb.layer.label, points))
    return study.Figure(
        name="cpu_per_message",
        title="CPU time a message, by rung",
        x=study.Axis(title="rung", names=tuple(TITLES[rung] for rung in rungs)),
        y=study.Axis(title="CPU time a message", unit="µs"),
        curves=tuple(curves),
        shape=study.Shape.BAR,
    )


_NAME: Final = "cpu_cost"
_SETTINGS: Final = ("topics", "subscribers", "nodes", "rate_hz", "size_bytes", "seconds", "rounds", "starts")


def available(spec: CpuCostSpec) -> Availability:
    return layers_available(spec.layer, spec.rmws)


def measure(spec: CpuCostSpec, progress: study.Progress) -> study.Study:
    started_at = datetime.now(UTC).isoformat()
    layers, notes = choose_layers(spec.layer, spec.rmws)
    progress.expect(len(layers) * len(spec.chosen_rungs) * spec.rounds * spec.starts)
    climbs = []
    for number, layer in enumerate(layers):
        ladder = Ladder(spec=spec, layer=layer, first_block=number * spec.starts, progress=progress)
        climbs.append(climb_of(spec, layer, list(ladder.measure())))
    return compose(spec, climbs, notes=notes, started_at=started_at)


def climb_of(spec: CpuCostSpec, layer: Layer, measured: Sequence[RungRound]) -> Climb:
    rounds: dict[Rung, list[study.Round]] = {rung: [] for rung in spec.chosen_rungs}
    for each in measured:
        rounds[each.rung].append(to_round(each, spec))
    return Climb(layer, rounds)


def compose(spec: CpuCostSpec, climbs: Sequence[Climb], *, notes: Sequence[str], started_at: str) -> study.Study:
    layers = [climb.layer for climb in climbs]
    figure = figure_of(climbs)
    no_cycles = why_not_counted(Event.CPU_CYCLES, os.getpid())
    return study.Study(
        instrument="cpu-cost",
        name=_NAME,
        **identity_of(layers),
        started_at=started_at,
        settings={name: getattr(spec, name) for name in _SETTINGS},
        quantities=tuple(each for each in QUANTITIES if not (no_cycles and each is CYCLES)),
        rounds=tuple(each for climb in climbs for rounds in climb.rounds.values() for each in rounds),
        tables=tuple(tables_of(climbs)),
        figures=() if figure is None else (figure,),
        notes=(*notes, *_notes(climbs, no_cycles)),
    )


def _notes(climbs: Sequence[Climb], no_cycles: str) -> Iterator[str]:
    if no_cycles:
        yield f"cycles were not counted: {no_cycles}"
    if no_migrations := why_not_counted(Event.CPU_MIGRATIONS, os.getpid()):
        yield f"migrations were not counted: {no_migrations}"
    if any(Rung.NO_PUBLISHING in climb.rounds for climb in climbs):
        yield "no publishing: its cost is divided by the messages that the other rungs publish in the same time"
    if any(climb.layer.kind is Kind.ROS2 for climb in climbs):
        yield "rclcpp's DDS only: the RMW's writers, readers and wait set, without rcl and rclcpp"
    if any(climb.layer.kind is Kind.EMBEDDED for climb in climbs):
        yield "embedded: nodes are Python over Cyclone DDS; compare them with themselves"


INSTRUMENT: Final = study.Instrument(
    name=_NAME, spec=CpuCostSpec, quantities=QUANTITIES, available=available, measure=measure
)
