"""The ladder as tables for each layer, and as a bar chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from pytest_ldos.instruments.cost_layers import Layer
from pytest_ldos.instruments.cpu_cost.numbers import CPU, CYCLES, SWITCHES, ByStart, Estimate, estimate, ratio
from pytest_ldos.instruments.cpu_cost.rungs import SEED, TITLES, Rung
from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Round, Shape, Table

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
        """Returns the mean over the rounds, because the median of a rare event is zero."""
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
