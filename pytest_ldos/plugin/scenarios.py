"""The scenario of a test, tests made for scenarios, and cells of sweeps."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, Unavailable, refuse_unknown
from pytest_ldos.plugin.marks import CELL_FIXTURE, CHOICE_MARK, SCENARIO_FIXTURE, SCENARIO_MARK, SWEEP_MARK, marks_of
from pytest_ldos.scenario.scenario_table import PLUS, usual_name
from pytest_ldos.scenario.settings import OWN_NAME

if TYPE_CHECKING:
    from pytest_ldos.campaign.cells import Axis, Value
    from pytest_ldos.scenario.loads.spec import LoadSpec
    from pytest_ldos.scenario.model import ScenarioSpec


_NONE: Final = ""
"""Placeholder scenario of a test for combinations if none was requested."""

_WORD: Final = re.compile(r"[\w.+-]+")


def combinations_in(expression: str, known: Collection[str]) -> dict[str, list[str]]:
    """Combinations of known scenarios in ``-m``: spellings by their usual name."""
    found: dict[str, list[str]] = {}
    for word in dict.fromkeys(_WORD.findall(expression)):
        if PLUS in word and set(word.split(PLUS)) <= set(known):
            found.setdefault(usual_name(word, known), []).append(word)
    return found


def refuse_unknown_parts(expression: str, known: Collection[str]) -> None:
    """Refuses a combination in ``-m`` with a known and an unknown part.

    Raises:
        UsageError: names the nearest known one.
    """
    for word in _WORD.findall(expression):
        parts = word.split(PLUS)
        if PLUS in word and set(parts) & set(known):
            try:
                refuse_unknown(parts, known, "scenario in -m:")
            except ConfigurationError as error:
                from pytest_ldos.plugin.messages import usage_error

                raise usage_error(str(error)) from None


def scenario_mark(node: pytest.Item, names: Collection[str]) -> pytest.Mark | None:
    """The closest mark that names a test's scenario; ``ldos_scenario`` takes precedence."""
    marks = [mark for mark in marks_of(node) if _names_scenario(mark, names)]
    return min(marks, key=lambda mark: mark.name != SCENARIO_MARK, default=None)


def scenario_arguments(node: pytest.Item, names: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The scenario of a test, and the arguments of its marks.

    Arguments missing from the closest mark come from the next one for the same scenario: a parameter set may have a
    name, and its function everything else. The mark ``ldos_scenarios`` gives a name that includes the scenario's.

    Raises:
        ConfigurationError: it has no scenario mark, or one that names no scenario.
    """
    mark = scenario_mark(node, names)
    if mark is None:
        raise ConfigurationError(
            f"{node.nodeid} measures a stack but has no scenario", remedy=f"mark it with one of: {', '.join(names)}"
        )
    name = usual_name(scenario_name(mark), names)
    alike = [each for each in marks_of(node) if _names_scenario(each, names)]
    given = [mark.kwargs, *(each.kwargs for each in alike if usual_name(scenario_name(each), names) == name)]
    choice = next((each for each in marks_of(node) if each.name == CHOICE_MARK and OWN_NAME in each.kwargs), None)
    if choice is not None:
        own = choice.kwargs[OWN_NAME]
        given.append({OWN_NAME: own.replace("{scenario}", name.replace(PLUS, "-")) if isinstance(own, str) else own})
    return name, dict(ChainMap(*map(dict, given)))


def _names_scenario(mark: pytest.Mark, names: Collection[str]) -> bool:
    return mark.name == SCENARIO_MARK or set(mark.name.split(PLUS)) <= set(names)


def scenario_name(mark: pytest.Mark) -> str:
    """The scenario of a mark; ``ldos_scenario("a+b")`` names it in its argument.

    Raises:
        ConfigurationError: the mark names none.
    """
    if mark.name != SCENARIO_MARK:
        return mark.name
    if len(mark.args) != 1 or not isinstance(mark.args[0], str):
        remedy = f'@pytest.mark.{SCENARIO_MARK}("cpu_load+msg_load")'
        raise ConfigurationError(f"mark {SCENARIO_MARK} names no scenario", remedy=remedy)
    return mark.args[0]


def make_scenario_tests(metafunc: pytest.Metafunc, known: Sequence[str]) -> None:
    """Makes one test for each scenario, marked with its name, from a test that requests `ldos_scenario`.

    Its mark ``ldos_scenarios`` may select scenarios; ``+`` means the combinations in ``-m``. A test whose own mark
    names its scenario remains one test.

    Args:
        known: names of all scenarios.
    """
    if SCENARIO_FIXTURE not in metafunc.fixturenames or scenario_mark(metafunc.definition, known) is not None:
        return
    asked = combinations_in(str(metafunc.config.getoption("markexpr")), known)
    mark = metafunc.definition.get_closest_marker(CHOICE_MARK)
    chosen = (usual_name(name, known) for name in _chosen(mark.args if mark and mark.args else (*known, PLUS), asked))
    parameters = [
        pytest.param(name, marks=[_mark(each) for each in dict.fromkeys([name, *asked.get(name, ())])], id=name)
        for name in dict.fromkeys(chosen)
    ]
    if not parameters:
        nothing = "no combination of scenarios was asked for: pytest -m cpu_load+msg_load"
        parameters = [pytest.param(_NONE, marks=pytest.mark.skip(reason=nothing), id="none")]
    metafunc.parametrize(SCENARIO_FIXTURE, parameters, indirect=True)


def is_placeholder(item: pytest.Item) -> bool:
    """True for a test of combinations of scenarios if none was requested."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get(SCENARIO_FIXTURE) == _NONE


def _chosen(names: Iterable[str], asked: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from asked if name == PLUS else (name,)


def _mark(name: str) -> pytest.MarkDecorator:
    decorator: pytest.MarkDecorator = getattr(pytest.mark, name)
    return decorator


def require_loads(
    loads: Iterable[LoadSpec], spec: ScenarioSpec, environments: Sequence[Mapping[str, str] | None] = (None,)
) -> None:
    """Skips or ends the test, according to its scenario, if a load cannot be applied on this machine.

    Args:
        environments: of the measured versions; ``None`` for ours.

    Raises:
        Unavailable: with reason and remedy.
    """
    from pytest_ldos.measure.load.choose import load_available
    from pytest_ldos.plugin.messages import skip_with
    from pytest_ldos.scenario.words import WhenUnavailable

    for load, environment in product(loads, environments):
        available = load_available(load, spec.stack, environment)
        if available.ok:
            continue
        if spec.unavailable is WhenUnavailable.SKIP:
            skip_with(f"{load.KIND}: {available.reason} → {available.remedy}")
        raise Unavailable(f"{load.KIND} cannot be applied here: {available.reason}", remedy=available.remedy)


@dataclass(frozen=True)
class SweepCell:
    """The cell of one test of a sweep.

    Attributes:
        axes: all axes of the sweep.
        assignments: values of this cell by address.
        id: ``rate_hz=500-cpus=2``.
        moment: its position in the order of measurement.
    """

    axes: tuple[Axis, ...]
    assignments: Mapping[str, Value]
    id: str
    moment: int


def cells_of(marks: Sequence[pytest.Mark], base: ScenarioSpec) -> list[SweepCell]:
    """The cells requested by a test's marks, in the order of the grid.

    Args:
        marks: the outermost first.

    Raises:
        ConfigurationError: a mark is not an axis, or a value is invalid for its setting.
    """
    from pytest_ldos.campaign.cells import Grid, running_order

    grid = Grid(base=base, axes=tuple(_axis(mark) for mark in marks))
    moments = {name: moment for moment, (name, _) in enumerate(running_order(grid, 1))}
    return [
        SweepCell(grid.axes, cell.assignments, cell.label.replace(", ", "-"), moments[cell.name])
        for cell in grid.outline.cells
    ]


def in_cell(item: pytest.Item, spec: ScenarioSpec) -> ScenarioSpec:
    """The scenario of a test with the values of its cell, if it has one."""
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
            f"@pytest.mark.{SWEEP_MARK}({shown}) is not an axis",
            remedy=f'write it as @pytest.mark.{SWEEP_MARK}("dds_flood.rate_hz", [500, 1000, 2000])',
        )
    return Axis.of(mark.args[0], mark.args[1])


def cell_of(item: pytest.Item) -> SweepCell | None:
    """The cell of a test; ``None`` if it is not part of a sweep."""
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get(CELL_FIXTURE) if callspec is not None else None
    return found if isinstance(found, SweepCell) else None


def sweep_name(item: pytest.Item, cell: SweepCell) -> str:
    """The name of a test's sweep: the test's name without its cell."""
    from pytest_ldos.campaign.sweep import name_for

    before, _, ids = item.nodeid.partition("[")
    others = ids.removesuffix("]").replace(_as_pytest_shows(cell.id), "").strip("-")
    return name_for(f"{before}-{others}" if others else before)


def _as_pytest_shows(name: str) -> str:
    """The id of a test's parameters as in pytest's node id."""
    return name.encode("unicode_escape").decode("ascii")


def in_running_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests with those of each sweep in running order, at the same positions."""
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
