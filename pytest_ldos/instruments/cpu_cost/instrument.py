"""`ldos cpu-cost`: the CPU cost of a message on each rung of the ladder."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.stats.intervals import mean_interval
from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.hardware_counters import Event
from pytest_ldos.instruments.cost_layers import (
    Kind,
    Layer,
    choose_layers,
    layer_name,
    layers_available,
    middleware_name,
    versions_of,
)
from pytest_ldos.instruments.cpu_cost.ladder import Exchange, Ladder, RungRound, why_not_counted
from pytest_ldos.instruments.cpu_cost.spec import SEED, TITLES, CpuCostSpec, Rung
from pytest_ldos.instruments.instrument import Instrument, Progress
from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Round, Setting, Shape, Study, Table
from pytest_ldos.measure.metrics.model import Metric

CPU: Final = Metric(name="cpu_per_message", title="CPU time a message", unit="µs", better=Better.LOWER)
SWITCHES: Final = Metric(name="switches_per_message", title="Context switches a message", unit="", better=Better.LOWER)
CYCLES: Final = Metric(name="cycles_per_message", title="CPU cycles a message", unit="", better=Better.LOWER)
QUANTITIES: Final = (CPU, SWITCHES, CYCLES)


def to_round(measured: RungRound, spec: CpuCostSpec) -> Round:
    """Converts to a round for the gate. On a rung without publications, the other rungs' number of messages is used."""
    case = f"{measured.layer.label} {TITLES[measured.rung]}: {spec.traffic}"
    if measured.rung in (Rung.NO_PUBLISHING, Rung.MANY_NODES, Rung.MANY_PARTICIPANTS):
        case += f", {spec.nodes} nodes"
    result = measured.result
    failure = result if isinstance(result, str) else why_useless(result, measured.rung, spec)
    if failure or isinstance(result, str):
        return Round(case=case, block=measured.block, failure=failure)
    return Round(
        case=case, block=measured.block, values=values_of(result, spec), details=details_of(result, measured.rung, spec)
    )


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


def values_of(exchange: Exchange, spec: CpuCostSpec) -> Mapping[str, float]:
    """Returns the values by name of the quantity."""
    values = {
        CPU.name: exchange.cpu_ns / NS_PER_US / spec.messages,
        SWITCHES.name: exchange.switches / spec.messages,
    }
    if exchange.cycles is not None:
        values[CYCLES.name] = exchange.cycles / spec.messages
    return values


def details_of(exchange: Exchange, rung: Rung, spec: CpuCostSpec) -> Mapping[str, float]:
    """Returns details to show with the values."""
    expected = 0 if rung is Rung.NO_PUBLISHING else spec.messages * spec.subscribers
    lost = 100.0 * (expected - exchange.received) / expected if expected else 0.0
    return {
        "system_percent": 100.0 * exchange.system_ns / exchange.cpu_ns if exchange.cpu_ns else 0.0,
        "load_percent": 100.0 * exchange.cpu_ns / exchange.wall_ns if exchange.wall_ns else 0.0,
        "voluntary_per_message": exchange.voluntary / spec.messages,
        "involuntary_per_message": exchange.involuntary / spec.messages,
        "lost_percent": lost,
        **({} if exchange.migrations is None else {"migrations_per_message": exchange.migrations / spec.messages}),
    }


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; the bounds are ``None`` if there are too few starts."""

    value: float
    low: float | None
    high: float | None


ByStart = Mapping[int, Sequence[float]]
"""Values of rounds by start, because rounds of one start are correlated."""


def estimate(values: ByStart) -> Estimate | None:
    """Mean over starts of the rounds' medians, with a non-negative interval; ``None`` without values."""
    medians = [median(of_start) for of_start in values.values()]
    if not medians:
        return None
    low, high = _finite(mean_interval(medians))
    return Estimate(fmean(medians), None if low is None else max(0.0, low), high)


def ratio(values: ByStart, base: ByStart) -> Estimate | None:
    """Ratio to `base` over common starts; ``None`` without such starts or with values of zero.

    Ratios are computed within starts, so that effects of a start cancel; the result is their geometric mean.
    """
    pairs = [(median(values[start]), median(base[start])) for start in values if start in base]
    if not pairs or min(min(pair) for pair in pairs) <= 0:
        return None
    logs = [math.log(value / of_base) for value, of_base in pairs]
    low, high = _finite(mean_interval(logs))
    return Estimate(math.exp(fmean(logs)), *(None if bound is None else math.exp(bound) for bound in (low, high)))


def _finite(bounds: tuple[float, float]) -> tuple[float | None, float | None]:
    low, high = (bound if math.isfinite(bound) else None for bound in bounds)
    return low, high


_COST: Final = "what a message costs with all its subscribers (means over starts, 95 % intervals)"
_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="cpu_per_message", unit="µs", title="CPU/message"),
    Column(name="cpu_low", unit="µs", title="from"),
    Column(name="cpu_high", unit="µs", title="to"),
    Column(name="ratio", title="× DDS"),
    Column(name="ratio_low", title="from"),
    Column(name="ratio_high", title="to"),
    Column(name="seed_ratio", title="seed's ×"),
)
_SWITCH_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="switches_per_message", title="switches/message"),
    Column(name="switches_low", title="from"),
    Column(name="switches_high", title="to"),
    Column(name="voluntary"),
    Column(name="involuntary"),
    Column(name="migrations"),
)
_CYCLE_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="cycles_per_message", title="cycles/message"),
    Column(name="cycles_low", title="from"),
    Column(name="cycles_high", title="to"),
    Column(name="cycles_ratio", title="× DDS"),
    Column(name="cycles_ratio_low", title="from"),
    Column(name="cycles_ratio_high", title="to"),
    Column(name="seed_cycles", title="seed's cycles in 30 s"),
)
_DETAIL_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="rounds"),
    Column(name="failed", title="without result"),
    Column(name="system", unit="%", title="of it in the kernel"),
    Column(name="load", unit="%", title="of a CPU"),
    Column(name="lost", unit="%"),
)


@dataclass(frozen=True)
class Climb:
    """Measurements of one layer.

    Attributes:
        rounds: rounds by rung, including those that failed.
    """

    layer: Layer
    rounds: Mapping[Rung, Sequence[Round]]

    def values(self, rung: Rung, quantity: str) -> ByStart:
        """Returns a quantity's values by start, from the rounds that have any."""
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


def tables_of(climbs: Sequence[Climb]) -> Iterator[Table]:
    """Yields the tables of each layer."""
    for climb in climbs:
        label = climb.layer.label
        yield _table(climb, "ladder", f"{label}: {_COST}", _COLUMNS, _row)
        yield _table(climb, "ladder_switches", f"{label}: context switches of a message", _SWITCH_COLUMNS, _switch_row)
        if any(climb.values(rung, CYCLES.name) for rung in climb.rounds):
            yield _table(climb, "ladder_cycles", f"{label}: CPU cycles of a message", _CYCLE_COLUMNS, _cycle_row)
        yield _table(climb, "ladder_details", f"{label}: of which, and how sure", _DETAIL_COLUMNS, _detail_row)


def _table(
    climb: Climb, name: str, title: str, columns: tuple[Column, ...], row: Callable[[Climb, Rung], tuple[Cell, ...]]
) -> Table:
    rows = tuple(row(climb, rung) for rung in climb.rounds)
    return Table(name=f"{name}_{climb.layer.label.replace(' ', '_')}", title=title, columns=columns, rows=rows)


def _row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    cost, seed = estimate(climb.values(rung, CPU.name)), SEED.get(rung)
    times = _times_dds(climb, rung, CPU.name)
    return (TITLES[rung], *_cells(cost), *_cells(times), None if seed is None else seed.ratio)


def _switch_row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    details = ("voluntary_per_message", "involuntary_per_message", "migrations_per_message")
    switches = estimate(climb.values(rung, SWITCHES.name))
    return (TITLES[rung], *_cells(switches), *(climb.detail(rung, name) for name in details))


def _cycle_row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    cycles, seed = estimate(climb.values(rung, CYCLES.name)), SEED.get(rung)
    times = _times_dds(climb, rung, CYCLES.name)
    return (TITLES[rung], *_cells(cycles), *_cells(times), None if seed is None else seed.cycles)


def _times_dds(climb: Climb, rung: Rung, quantity: str) -> Estimate | None:
    """Returns the ratio to DDS alone; for DDS itself 1, without an interval."""
    times = ratio(climb.values(rung, quantity), climb.values(Rung.DDS, quantity))
    return Estimate(1.0, None, None) if rung is Rung.DDS and times is not None else times


def _detail_row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    rounds = climb.rounds[rung]
    return (
        TITLES[rung],
        len(rounds),
        sum(bool(each.failure) for each in rounds),
        climb.detail(rung, "system_percent"),
        climb.detail(rung, "load_percent"),
        climb.detail(rung, "lost_percent"),
    )


def _cells(found: Estimate | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)


def figure_of(climbs: Sequence[Climb]) -> Figure | None:
    """Returns bars of CPU time per message, by rung and layer; ``None`` if nothing was measured."""
    rungs = [rung for rung in Rung if any(climb.values(rung, CPU.name) for climb in climbs)]
    if not rungs:
        return None
    return Figure(
        name="cpu_per_message",
        title="CPU time a message, by rung",
        x=Axis(title="rung", names=tuple(TITLES[rung] for rung in rungs)),
        y=Axis(title="CPU time a message", unit="µs"),
        curves=tuple(curve for climb in climbs if (curve := _curve(climb, rungs)) is not None),
        shape=Shape.BAR,
    )


def _curve(climb: Climb, rungs: Sequence[Rung]) -> Curve | None:
    found = [(place, estimate(climb.values(rung, CPU.name))) for place, rung in enumerate(rungs)]
    points = tuple(Point(place, cost.value, cost.low, cost.high) for place, cost in found if cost is not None)
    return Curve(climb.layer.label, points) if points else None


_NAME: Final = "cpu_cost"


def available(spec: CpuCostSpec) -> Availability:
    """Reports if any of the requested layers can run here."""
    return layers_available(spec.layer, spec.rmws)


def measure(spec: CpuCostSpec, progress: Progress) -> Study:
    """Measures the ladder of each layer."""
    started_at = datetime.now(UTC).isoformat()
    layers, notes = choose_layers(spec.layer, spec.rmws)
    progress.expect(len(layers) * len(spec.chosen_rungs) * spec.rounds * spec.starts)
    climbs = []
    for number, layer in enumerate(layers):
        ladder = Ladder(spec=spec, layer=layer, first_block=number * spec.starts, progress=progress)
        climbs.append(climb_of(spec, layer, list(ladder.measure())))
    return compose(spec, climbs, notes=notes, started_at=started_at)


def climb_of(spec: CpuCostSpec, layer: Layer, measured: Sequence[RungRound]) -> Climb:
    """Groups a layer's measurements by rung."""
    rounds: dict[Rung, list[Round]] = {rung: [] for rung in spec.chosen_rungs}
    for each in measured:
        rounds[each.rung].append(to_round(each, spec))
    return Climb(layer, rounds)


def compose(spec: CpuCostSpec, climbs: Sequence[Climb], *, notes: Sequence[str], started_at: str) -> Study:
    """Builds the study of all layers."""
    layers = [climb.layer for climb in climbs]
    figure = figure_of(climbs)
    no_cycles = why_not_counted(Event.CPU_CYCLES, os.getpid())
    return Study(
        instrument="cpu-cost",
        name=_NAME,
        layer=layer_name(layers),
        middleware=middleware_name(layers),
        started_at=started_at,
        settings=_settings(spec),
        quantities=tuple(each for each in QUANTITIES if not (no_cycles and each is CYCLES)),
        rounds=tuple(each for climb in climbs for rounds in climb.rounds.values() for each in rounds),
        tables=tuple(tables_of(climbs)),
        figures=() if figure is None else (figure,),
        notes=(*notes, *_notes(climbs, no_cycles)),
        versions=versions_of(layers),
    )


def _settings(spec: CpuCostSpec) -> dict[str, Setting]:
    return {
        "topics": spec.topics,
        "subscribers": spec.subscribers,
        "nodes": spec.nodes,
        "rate_hz": spec.rate_hz,
        "size_bytes": spec.size_bytes,
        "seconds": spec.seconds,
        "rounds": spec.rounds,
        "starts": spec.starts,
    }


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
    yield "the seed's nodes (ROS 2 Dashing) had a DDS participant each: compare its 10.6 with many participants"


INSTRUMENT: Final = Instrument(
    name=_NAME, spec=CpuCostSpec, quantities=QUANTITIES, available=available, measure=measure
)
