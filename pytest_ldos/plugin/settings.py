"""Settings of a session, and the requests in a test's marks: its scenario, its cell of a sweep, and its instrument."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, Unavailable, nearest, refuse_unknown, suggest
from pytest_ldos.instruments import MODULES
from pytest_ldos.plugin import options
from pytest_ldos.plugin.messages import refused_session, skip_with
from pytest_ldos.scenario.model import ScenarioSpec, WatchSpec
from pytest_ldos.scenario.scenario_table import PLUS, usual_name
from pytest_ldos.scenario.settings import OWN_NAME, Sources
from pytest_ldos.scenario.words import WhenUnavailable

if TYPE_CHECKING:
    from pytest_ldos.campaign.cells import Axis, Value
    from pytest_ldos.judge.baseline.store import BaselineStores
    from pytest_ldos.scenario.loads import LoadSpec


_NONE: Final = ""
"""Scenario of a test of combinations if none was requested."""

_WORD: Final = re.compile(r"[\w.+-]+")


def combinations_in(expression: str, known: Collection[str]) -> dict[str, list[str]]:
    """Combinations of known scenarios in ``-m``: spellings by their usual name."""
    found: dict[str, list[str]] = {}
    for word in dict.fromkeys(_WORD.findall(expression)):
        if PLUS in word and set(word.split(PLUS)) <= set(known):
            found.setdefault(usual_name(word, known), []).append(word)
    return found


def refuse_unknown_parts(expression: str, known: Collection[str]) -> None:
    """Refuses a combination in ``-m`` of known and unknown scenarios."""
    for word in _WORD.findall(expression):
        parts = word.split(PLUS)
        if PLUS in word and set(parts) & set(known):
            with refused_session():
                refuse_unknown(parts, known, "scenario in -m:")


def scenario_mark(node: pytest.Item, names: Collection[str]) -> pytest.Mark | None:
    """The closest mark that names a test's scenario; ``ldos_scenario`` takes precedence."""
    marks = [mark for mark in options.marks_of(node) if _names_scenario(mark, names)]
    return min(marks, key=lambda mark: mark.name != options.SCENARIO_MARK, default=None)


def scenario_arguments(node: pytest.Item, names: Collection[str]) -> tuple[str, dict[str, Any]]:
    """The scenario of a test, and the arguments of its marks.

    Arguments missing from the closest mark come from the next one for the same scenario: a parameter set may have a
    name, and its function everything else. The mark ``ldos_scenarios`` gives a name that includes the scenario's.
    """
    if (mark := scenario_mark(node, names)) is None:
        raise ConfigurationError(
            f"{node.nodeid} measures a stack but has no scenario", remedy=f"mark it with one of: {', '.join(names)}"
        )
    name = usual_name(scenario_name(mark), names)
    alike = [each for each in options.marks_of(node) if _names_scenario(each, names)]
    given = [mark.kwargs, *(each.kwargs for each in alike if usual_name(scenario_name(each), names) == name)]
    choice = next(
        (each for each in options.marks_of(node) if each.name == options.CHOICE_MARK and OWN_NAME in each.kwargs), None
    )
    if choice is not None:
        own = choice.kwargs[OWN_NAME]
        given.append({OWN_NAME: own.replace("{scenario}", name.replace(PLUS, "-")) if isinstance(own, str) else own})
    return name, dict(ChainMap(*map(dict, given)))


def _names_scenario(mark: pytest.Mark, names: Collection[str]) -> bool:
    return mark.name == options.SCENARIO_MARK or set(mark.name.split(PLUS)) <= set(names)


def scenario_name(mark: pytest.Mark) -> str:
    """The scenario of a mark; ``ldos_scenario("a+b")`` names it in its argument."""
    if mark.name != options.SCENARIO_MARK:
        return mark.name
    if len(mark.args) != 1 or not isinstance(mark.args[0], str):
        remedy = f'@pytest.mark.{options.SCENARIO_MARK}("cpu_load+msg_load")'
        raise ConfigurationError(f"mark {options.SCENARIO_MARK} names no scenario", remedy=remedy)
    return mark.args[0]


def make_scenario_tests(metafunc: pytest.Metafunc, known: Sequence[str]) -> None:
    """Makes one test for each scenario, marked with its name, from a test that requests `ldos_scenario`.

    Its mark ``ldos_scenarios`` may select scenarios; ``+`` means the combinations in ``-m``. A test whose own mark
    names its scenario remains one test.
    """
    if options.SCENARIO_FIXTURE not in metafunc.fixturenames or scenario_mark(metafunc.definition, known) is not None:
        return
    asked = combinations_in(str(metafunc.config.getoption("markexpr")), known)
    mark = metafunc.definition.get_closest_marker(options.CHOICE_MARK)
    names = mark.args if mark and mark.args else (*known, PLUS)
    chosen = (usual_name(each, known) for name in names for each in (asked if name == PLUS else (name,)))
    parameters = []
    for name in dict.fromkeys(chosen):
        marks = [getattr(pytest.mark, each) for each in dict.fromkeys([name, *asked.get(name, ())])]
        parameters.append(pytest.param(name, marks=marks, id=name))
    if not parameters:
        nothing = "no combination of scenarios was asked for: pytest -m cpu_load+msg_load"
        parameters = [pytest.param(_NONE, marks=pytest.mark.skip(reason=nothing), id="none")]
    metafunc.parametrize(options.SCENARIO_FIXTURE, parameters, indirect=True)


def is_placeholder(item: pytest.Item) -> bool:
    """True for a test of combinations if none was requested."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get(options.SCENARIO_FIXTURE) == _NONE


def require_loads(loads: Iterable[LoadSpec], spec: ScenarioSpec) -> None:
    """Skips or ends the test, as its scenario says, if a load cannot be applied."""
    from pytest_ldos.measure.load.protocol import load_available

    for load in loads:
        available = load_available(load, spec.stack)
        if available.ok:
            continue
        if spec.unavailable is WhenUnavailable.SKIP:
            skip_with(f"{load.KIND}: {available.reason} → {available.remedy}")
        raise Unavailable(f"{load.KIND} cannot be applied here: {available.reason}", remedy=available.remedy)


@dataclass(frozen=True)
class SweepCell:
    """The cell of one test of a sweep: values by address, ``rate_hz=500-cpus=2``, and its place in running order."""

    axes: tuple[Axis, ...]
    assignments: Mapping[str, Value]
    id: str
    moment: int


def cells_of(marks: Sequence[pytest.Mark], base: ScenarioSpec) -> list[SweepCell]:
    """The cells requested by marks, the outermost mark first, in the order of the grid."""
    from pytest_ldos.campaign.cells import Axis, Grid, running_order

    for mark in marks:
        if len(mark.args) != 2 or mark.kwargs or not isinstance(mark.args[0], str):
            shown = ", ".join([*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())])
            raise ConfigurationError(
                f"@pytest.mark.{options.SWEEP_MARK}({shown}) is not an axis",
                remedy=f'write it as @pytest.mark.{options.SWEEP_MARK}("dds_flood.rate_hz", [500, 1000, 2000])',
            )
    grid = Grid(base=base, axes=tuple(Axis.of(*mark.args) for mark in marks))
    moments = {name: moment for moment, (name, _) in enumerate(running_order(grid, 1))}
    return [
        SweepCell(grid.axes, cell.assignments, cell.label.replace(", ", "-"), moments[cell.name])
        for cell in grid.outline.cells
    ]


def in_cell(item: pytest.Item, spec: ScenarioSpec) -> ScenarioSpec:
    """The scenario of a test with the values of its cell, if it has one."""
    if (cell := cell_of(item)) is None:
        return spec
    from pytest_ldos.campaign.cells import at_cell

    return at_cell(spec, cell.assignments)


def cell_of(item: pytest.Item) -> SweepCell | None:
    callspec = getattr(item, "callspec", None)
    found = callspec.params.get(options.CELL_FIXTURE) if callspec is not None else None
    return found if isinstance(found, SweepCell) else None


def sweep_name(item: pytest.Item, cell: SweepCell) -> str:
    """The test's name without its cell."""
    from pytest_ldos.campaign.sweep import name_for

    before, _, ids = item.nodeid.partition("[")
    shown = cell.id.encode("unicode_escape").decode("ascii")  # as in pytest's node id
    others = ids.removesuffix("]").replace(shown, "").strip("-")
    return name_for(f"{before}-{others}" if others else before)


def in_running_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, those of each sweep in running order; others keep their places."""
    sweeps: dict[str, list[tuple[int, int]]] = {}
    for place, item in enumerate(items):
        if (cell := cell_of(item)) is not None:
            sweeps.setdefault(sweep_name(item, cell), []).append((cell.moment, place))
    ordered = list(items)
    for own in sweeps.values():
        for (_, place), (_, source) in zip(own, sorted(own), strict=True):
            ordered[place] = items[source]
    return ordered


@dataclass(frozen=True)
class Settings:
    """The settings of one pytest session.

    Attributes:
        root: folder of the settings file, or pytest's root without one.
        folder: folder to which paths on the command line are relative.
    """

    config: pytest.Config
    sources: Sources

    def value(self, name: str) -> Any:
        return self.sources.value(name)

    @property
    def root(self) -> Path:
        return self.sources.root

    @property
    def folder(self) -> Path:
        return self.config.invocation_params.dir

    @property
    def output(self) -> Path:
        return self.sources.folder("output")

    @property
    def is_strict(self) -> bool:
        return self.sources.is_strict(os.environ)

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    @property
    def watch_spec(self) -> WatchSpec:
        return WatchSpec(
            profile=self.value("profile"),
            profiler=self.value("profiler"),
            rate_hz=self.value("profile_rate"),
            syscalls=self.value("syscalls"),
        )

    def describe_file(self) -> str:
        file, folder = self.sources.file, self.folder
        if file is None:
            return f"ldos: no settings file above the tests; results are in {self.output}"
        shown = file.relative_to(folder) if file.is_relative_to(folder) else file
        return f"ldos: settings {shown}" + ("" if file.parent == self.root else f"; results are in {self.output}")

    def enforce_disk_limit(self, keep: Path) -> list[Path]:
        """Deletes the oldest traces beyond the limit, but none in `keep`; returns their places."""
        from pytest_ldos.measure.trial.artifacts import enforce_disk_limit

        return enforce_disk_limit(self.output, limit_bytes=int(self.value("traces_limit_mb") * 1_000_000), keep=keep)

    @property
    def stores(self) -> BaselineStores:
        from pytest_ldos.judge.baseline.store import BaselineStores

        return BaselineStores.of(self.sources)

    def short(self, path: Path) -> Path:
        """A path for display, relative to the project if it is in it."""
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path

    def markers(self) -> Mapping[str, str]:
        described = {name: table.description for name, table in self.sources.toml.scenarios.items()}
        for name, spellings in combinations_in(self.config.getoption("markexpr"), described).items():
            described |= {each: "several at once" for each in (name, *spellings) if each not in described}
        return options.describe_marks(described)

    def scenario_of(self, item: pytest.Item, sources: Sources | None = None) -> ScenarioSpec:
        """The scenario of a test by its mark, from the session's settings or from other sources."""
        name, arguments = scenario_arguments(item, self.sources.scenario_names())
        return (sources or self.sources).scenario(name, arguments)


def asked_instruments(item: pytest.Item) -> dict[str, pytest.Mark]:
    """The marks of a test by instrument; arguments missing from the closest mark come from the next one."""
    names = {options.mark_name(name): name for name in MODULES}
    found: dict[str, pytest.Mark] = {}
    for mark in reversed([each for each in options.marks_of(item) if each.name in names]):
        name = names[mark.name]
        found[name] = found[name].combined_with(mark) if name in found else mark
    return found


def instrument_mark(item: pytest.Item) -> tuple[str, pytest.Mark]:
    found = asked_instruments(item)
    if len(found) > 1:
        asked = " and ".join(sorted(map(options.mark_name, found)))
        raise ConfigurationError(f"{item.nodeid} is marked with {asked}", remedy="write a test for each")
    if not found:
        names = list(map(options.mark_name, MODULES))
        written = (mark.name for mark in item.iter_markers() if nearest(mark.name, names))
        remedy = suggest(next(written, ""), names)
        raise ConfigurationError(f"{item.nodeid} has no mark of an instrument", remedy=remedy)
    ((asked_for, mark),) = found.items()
    return asked_for, mark


def study_name(item: pytest.Item) -> str:
    """The name of a test's baseline: as in its mark, or the instrument's."""
    instrument, mark = instrument_mark(item)
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", str(mark.kwargs.get(OWN_NAME) or instrument))
