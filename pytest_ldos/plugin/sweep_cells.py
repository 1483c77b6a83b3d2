"""Cells of a test's sweep, by its marks: ``@pytest.mark.ldos_sweep(ADDRESS, VALUES)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.plugin.marks import CELL_FIXTURE, SWEEP_MARK

if TYPE_CHECKING:
    from pytest_ldos.campaign.cells import Axis, Value
    from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True)
class SweepCell:
    """The cell that one test of a sweep measures.

    Attributes:
        axes: all axes of the sweep.
        assignments: values of this cell by address.
        id: ``rate_hz=500-cpus=2``.
        moment: its place in the order of measurement.
    """

    axes: tuple[Axis, ...]
    assignments: Mapping[str, Value]
    id: str
    moment: int


def cells_of(marks: Sequence[pytest.Mark], base: ScenarioSpec) -> list[SweepCell]:
    """The cells that a test's marks ask for, in the order of the grid.

    Args:
        marks: the outermost first.

    Raises:
        ConfigurationError: a mark is no axis, or its setting cannot have a value.
    """
    from pytest_ldos.campaign.cells import Grid, running_order

    grid = Grid(base=base, axes=tuple(_axis(mark) for mark in marks))
    moments = {name: moment for moment, (name, _) in enumerate(running_order(grid, 1))}
    return [
        SweepCell(grid.axes, cell.assignments, cell.label.replace(", ", "-"), moments[cell.name])
        for cell in grid.outline.cells
    ]


def in_cell(item: pytest.Item, spec: ScenarioSpec) -> ScenarioSpec:
    """The scenario of a test with the values of its cell; unchanged for a test that has none."""
    cell = cell_of(item)
    if cell is None:
        return spec
    from pytest_ldos.campaign.cells import at_cell

    return at_cell(spec, cell.assignments)


def _axis(mark: pytest.Mark) -> Any:
    from pytest_ldos.campaign.cells import Axis

    if len(mark.args) != 2 or mark.kwargs or not isinstance(mark.args[0], str):
        shown = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
        raise ConfigurationError(
            f"@pytest.mark.{SWEEP_MARK}({shown}) is no axis",
            remedy=f'write it as @pytest.mark.{SWEEP_MARK}("dds_flood.rate_hz", [500, 1000, 2000])',
        )
    return Axis.of(mark.args[0], mark.args[1])


def cell_of(item: pytest.Item) -> SweepCell | None:
    """The cell that a test measures; ``None`` for tests that are part of no sweep."""
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get(CELL_FIXTURE) if callspec is not None else None
    return found if isinstance(found, SweepCell) else None


def sweep_name(item: pytest.Item, cell: SweepCell) -> str:
    """The name of a test's sweep: the test's own without its cell's."""
    from pytest_ldos.campaign.sweep_folder import name_for

    before, _, ids = item.nodeid.partition("[")
    others = ids.removesuffix("]").replace(_as_pytest_shows(cell.id), "").strip("-")
    return name_for(f"{before}-{others}" if others else before)


def _as_pytest_shows(name: str) -> str:
    """The id of a test's parameters as pytest writes it in the node's id."""
    return name.encode("unicode_escape").decode("ascii")


def in_running_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, with those of each sweep in running order at the places that they have."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        cell = cell_of(item)
        if cell is not None:
            places.setdefault(sweep_name(item, cell), []).append(place)
    ordered = list(items)
    for own in places.values():
        members = sorted((items[place] for place in own), key=_moment)
        for place, item in zip(own, members, strict=True):
            ordered[place] = item
    return ordered


def _moment(item: pytest.Item) -> int:
    cell = cell_of(item)
    return 0 if cell is None else cell.moment
