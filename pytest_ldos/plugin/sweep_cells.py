"""From the marks of a test to the cells of its sweep: ``@pytest.mark.ldos_sweep(ADDRESS, VALUES)``."""

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
    """What one test of a sweep is called with.

    Attributes:
        axes: of the sweep.
        assignments: of this cell, value by address.
        id: ``rate_hz=500-cpus=2``.
        moment: its place in the order in which the cells are to be measured.
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
        ConfigurationError: a mark is not as it must be, or a value is one that its setting cannot have.
    """
    from pytest_ldos.campaign.cells import Grid, running_order

    grid = Grid(base=base, axes=tuple(_axis(mark) for mark in marks))
    moments = {name: moment for moment, (name, _) in enumerate(running_order(grid, 1))}
    return [
        SweepCell(grid.axes, cell.assignments, cell.label.replace(", ", "-"), moments[cell.name])
        for cell in grid.outline.cells
    ]


def in_cell(item: pytest.Item, spec: ScenarioSpec) -> ScenarioSpec:
    """The scenario of a test as its cell has it; of other tests, as it is."""
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
    """Of the sweep that a test is one cell of: the test's own name, without the cell's."""
    from pytest_ldos.campaign.sweep_folder import name_for

    before, _, ids = item.nodeid.partition("[")
    others = ids.removesuffix("]").replace(_as_pytest_shows(cell.id), "").strip("-")
    return name_for(f"{before}-{others}" if others else before)


def _as_pytest_shows(name: str) -> str:
    """The name of a test's parameters as it stands in the test's node."""
    return name.encode("unicode_escape").decode("ascii")


def in_running_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests; those of each sweep, at the places that they have, in the order in which they are to run."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        cell = cell_of(item)
        if cell is not None:
            places.setdefault(sweep_name(item, cell), []).append(place)
    ordered = list(items)
    for mine in places.values():
        members = sorted((items[place] for place in mine), key=_moment)
        for place, item in zip(mine, members, strict=True):
            ordered[place] = item
    return ordered


def _moment(item: pytest.Item) -> int:
    cell = cell_of(item)
    return 0 if cell is None else cell.moment
