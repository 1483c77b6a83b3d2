"""The ladder as a table for each layer, and as bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from pytest_ldos.middleware.cost_layers import Layer
from pytest_ldos.middleware.cpu_cost.numbers import CPU, CYCLES, Estimate, estimate, ratio
from pytest_ldos.middleware.cpu_cost.rungs import SEED, TITLES, Rung
from pytest_ldos.middleware.study import Axis, Cell, Column, Curve, Figure, Point, Round, Shape, Table

_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="cpu_per_message", unit="µs", title="CPU/message"),
    Column(name="cpu_low", unit="µs", title="from"),
    Column(name="cpu_high", unit="µs", title="to"),
    Column(name="ratio", title="× DDS"),
    Column(name="ratio_low", title="from"),
    Column(name="ratio_high", title="to"),
    Column(name="seed_ratio", title="seed's ×"),
    Column(name="voluntary", title="voluntary switches"),
    Column(name="involuntary", title="involuntary"),
)
_DETAIL_COLUMNS: Final = (
    Column(name="rung"),
    Column(name="rounds"),
    Column(name="failed", title="without result"),
    Column(name="system", unit="%", title="of it in the kernel"),
    Column(name="load", unit="%", title="of a CPU"),
    Column(name="lost", unit="%"),
    Column(name="cycles_per_message", title="cycles/message"),
    Column(name="cycles_ratio", title="× DDS"),
    Column(name="seed_cycles", title="seed's cycles in 30 s"),
)


@dataclass(frozen=True)
class Climb:
    """What was measured of one layer.

    Attributes:
        rounds: by rung, also those that failed.
    """

    layer: Layer
    rounds: Mapping[Rung, Sequence[Round]]

    def values(self, rung: Rung, quantity: str) -> list[float]:
        """Of the rounds that have any."""
        found = (each.values.get(quantity) for each in self.rounds.get(rung, ()))
        return [value for value in found if isinstance(value, float)]

    def detail(self, rung: Rung, name: str) -> float | None:
        """Mean over the rounds; medians of rare events are zero."""
        found = [each.details[name] for each in self.rounds.get(rung, ()) if name in each.details]
        return fmean(found) if found else None


def tables_of(climbs: Sequence[Climb]) -> Iterator[Table]:
    """Two of each layer."""
    for climb in climbs:
        suffix = climb.layer.label.replace(" ", "_")
        yield Table(
            name=f"ladder_{suffix}",
            title=f"{climb.layer.label}: what a message costs with all its subscribers (medians, 95 % intervals)",
            columns=_COLUMNS,
            rows=tuple(_row(climb, rung) for rung in climb.rounds),
        )
        yield Table(
            name=f"ladder_details_{suffix}",
            title=f"{climb.layer.label}: of which, and how sure",
            columns=_DETAIL_COLUMNS,
            rows=tuple(_detail_row(climb, rung) for rung in climb.rounds),
        )


def _row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    cost = estimate(climb.values(rung, CPU.name))
    times = ratio(climb.values(rung, CPU.name), climb.values(Rung.DDS, CPU.name))
    if rung is Rung.DDS and times is not None:
        times = Estimate(1.0, None, None)
    seed = SEED.get(rung)
    return (
        TITLES[rung],
        *_cells(cost),
        *_cells(times),
        None if seed is None else seed.ratio,
        climb.detail(rung, "voluntary_per_message"),
        climb.detail(rung, "involuntary_per_message"),
    )


def _detail_row(climb: Climb, rung: Rung) -> tuple[Cell, ...]:
    rounds, seed = climb.rounds[rung], SEED.get(rung)
    cycles = climb.values(rung, CYCLES.name)
    times = ratio(cycles, climb.values(Rung.DDS, CYCLES.name))
    return (
        TITLES[rung],
        len(rounds),
        sum(bool(each.failure) for each in rounds),
        climb.detail(rung, "system_percent"),
        climb.detail(rung, "load_percent"),
        climb.detail(rung, "lost_percent"),
        median(cycles) if cycles else None,
        None if times is None else times.value,
        None if seed is None else seed.cycles,
    )


def _cells(found: Estimate | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)


def figure_of(climbs: Sequence[Climb]) -> Figure | None:
    """Bars of CPU time a message, by rung and layer; none where nothing was measured."""
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
