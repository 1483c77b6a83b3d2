"""Parses the tables ``[tool.ldos.scenarios.NAME]``, ``[tool.ldos.stack]`` and ``[tool.ldos.base]``.

An unknown key (the nearest known one is named), or a value that is invalid or of another type, raises
`ConfigurationError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.files import field_types
from pytest_ldos.scenario.fields import build_spec, parse_field, parse_fields, parse_value
from pytest_ldos.scenario.loads import LOAD_SPECS, CpuLimitSpec, CpuLoadSpec, DdsFloodSpec, LoadSpec
from pytest_ldos.scenario.metrics import DeadlineSpec, parse_deadlines
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, StackSpec
from pytest_ldos.scenario.options import OPTIONS, PER_SCENARIO
from pytest_ldos.scenario.stimuli import StimuliSpec
from pytest_ldos.scenario.words import SCENARIO_DESCRIPTIONS, StackKind, StimulusKind

_WHERE: Final = "[tool.ldos.base]"
_OURS: Final = "each build has a folder of its own, chosen by what it is built from"
_REFUSED: Final = {
    "--symlink-install": "links to sources would change what is installed as soon as these change; files are copied",
    "--build-base": _OURS,
    "--install-base": _OURS,
    "--log-base": _OURS,
    "--base-paths": f"{_WHERE} workspace names the folders",
    "--packages-up-to": f"{_WHERE} packages_up_to names the packages",
}
"""Options of ``colcon build`` that must not be given, each with the reason."""


@dataclass(frozen=True, kw_only=True)
class BaseSpec:
    """Setup of a revision in a checkout of it, and build of its ROS 2 workspace.

    Attributes:
        setup: command that makes its environment; empty for a virtual environment with the dependencies in the
            revision's pyproject.toml, or for none with the `ros2` stack.
        python: its interpreter, below the project's folder.
        workspace: folders of ROS packages, below the project's folder; one as a text, several as a list. Empty for
            ``src`` if the project has it, or else the project's folder.
        build: command that builds them: ``colcon build`` with options other than those of location and selection.
        packages_up_to: packages to build with their dependencies in the workspace; empty for all.
    """

    setup: tuple[str, ...] = ()
    python: str = ".venv/bin/python"
    workspace: tuple[str, ...] = ()
    build: tuple[str, ...] = ("colcon", "build", "--cmake-args", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF")
    packages_up_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(bool(self.python), f"{_WHERE} python is empty", remedy="name the interpreter that setup makes")
        for folder in self.workspace:
            is_below = bool(folder) and not PurePosixPath(folder).is_absolute() and ".." not in folder.split("/")
            require(is_below, f"{_WHERE} workspace {folder!r} is not below the project", remedy='as in "ros_ws"')
        calls = [PurePosixPath(word).name == "colcon" for word in self.build]
        require(
            any(calls) and "build" in self.build[calls.index(True) :],
            f"{_WHERE} build is {list(self.build)!r}, which does not call colcon build",
            remedy='write it as ["colcon", "build", "--cmake-args", "-DCMAKE_BUILD_TYPE=Release"]',
        )
        for word in self.build:
            reason = _REFUSED.get(word.partition("=")[0])
            require(reason is None, f"{_WHERE} build must not have {word}", remedy=reason or "")

    def workspaces(self, project: Path) -> tuple[str, ...]:
        usual = "src" if (project / "src").is_dir() else "."
        return self.workspace or (usual,)

    @property
    def verb_at(self) -> int:
        """Index of ``build`` in the command; the options before it are colcon's own."""
        first = next(index for index, word in enumerate(self.build) if PurePosixPath(word).name == "colcon")
        return self.build.index("build", first)


@dataclass(frozen=True, kw_only=True)
class CiSpec:
    """Files whose changes are not measured: a pull request that changes only such files is green without a measurement.

    Attributes:
        paths: patterns below the project's folder: ``*`` within a name, ``**`` across folders. The base's list counts.
            No build and no test may read such files.
    """

    paths: tuple[str, ...] = ("docs/**", "*.md")


_REMEDIES: Final = {
    "setup": 'write the command as a list of its words, as in ["make", "setup"]',
    "build": 'write the command as a list of its words, as in ["colcon", "build"]',
    "workspace": 'name one folder, as in "ros_ws", or several as a list',
    "packages_up_to": 'it must be a list of names, as in ["arm_bringup"]',
}


def parse_base(values: Mapping[str, Any]) -> BaseSpec:
    types = field_types(BaseSpec)
    refuse_unknown(values, types, f"key {_WHERE}")
    found = {}
    for name, value in values.items():
        try:
            given = [value] if name == "workspace" and isinstance(value, str) else value
            found[name] = parse_field(types[name], given, f"{_WHERE} {name}")
        except ConfigurationError as error:
            raise ConfigurationError(error.message, remedy=_REMEDIES.get(name, error.remedy)) from None
    return BaseSpec(**found)


PLUS: Final = "+"
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*(\+[A-Za-z][\w.-]*)*", re.ASCII)
_OWN_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_TAKEN_ENDINGS: Final = (".pinned", ".calibration")
"""Suffixes of other files next to a baseline."""


@dataclass(frozen=True, kw_only=True)
class ScenarioTable:
    """A scenario as data.

    Attributes:
        options: settings of this scenario only, by name.
        loads: by kind.
    """

    description: str = "a scenario of this project"
    options: Mapping[str, Any] = field(default_factory=dict)
    loads: Mapping[str, LoadSpec] = field(default_factory=dict)
    deadlines: tuple[DeadlineSpec, ...] = ()


_LOADS_OF_BUILT_IN: Final[Mapping[str, tuple[LoadSpec, ...]]] = {
    "cpu_load": (CpuLoadSpec(),),
    "msg_load": (DdsFloodSpec(),),
    "cpu_limit": (CpuLimitSpec(),),
}

BUILT_IN_SCENARIOS: Final[Mapping[str, ScenarioTable]] = {
    name: ScenarioTable(description=description, loads={load.KIND: load for load in _LOADS_OF_BUILT_IN.get(name, ())})
    for name, description in SCENARIO_DESCRIPTIONS.items()
}


def parse_scenarios(tables: Mapping[str, Any]) -> Mapping[str, ScenarioTable]:
    """Parses all scenarios: the built-in ones, updated from `tables`, and those defined there."""
    own = {name: _parse(name, values, BUILT_IN_SCENARIOS.get(name)) for name, values in tables.items()}
    known = {name: table for name, table in {**BUILT_IN_SCENARIOS, **own}.items() if PLUS not in name}
    for name in (each for each in own if PLUS in each):
        refuse_unknown(name.split(PLUS), known, f"scenario in '{name}':")
        usual = usual_name(name, known)
        require(usual not in known, f"there are two tables for scenario '{usual}'", remedy="join them into one")
        known[usual] = own[name]
    return known


def usual_name(name: str, known: Iterable[str]) -> str:
    """The common name of all spellings of a combination: its parts in the order of `known`; other names unchanged."""
    order = list(known)
    parts = name.split(PLUS)
    return PLUS.join(sorted(parts, key=order.index)) if set(parts) <= set(order) else name


def require_own_name(name: object, scenario: str, known: Iterable[str]) -> str:
    """Checks a test's own name for its baseline, used in place of its scenario's: a file name of no other scenario."""
    own = name if isinstance(name, str) and _OWN_NAME.fullmatch(name) and not name.endswith(_TAKEN_ENDINGS) else ""
    require(
        bool(own),
        f"the name {name!r} for scenario '{scenario}' cannot be that of a baseline",
        remedy="use letters, digits, _, - and ., at most 100; not .pinned or .calibration at the end",
    )
    require(
        own == scenario or own not in set(known),
        f"the name '{own}' for scenario '{scenario}' is that of another scenario, whose baseline it would share",
        remedy="give it a name that no scenario has",
    )
    return own


def _parse(name: str, values: Any, before: ScenarioTable | None) -> ScenarioTable:
    where = f"[tool.ldos.scenarios.{name}]"
    require(
        _NAME.fullmatch(name) is not None and not name.endswith(_TAKEN_ENDINGS),
        f"{where}: {name!r} cannot be a marker",
        remedy="use letters, digits, _, - and .; names of known scenarios with + between them combine these",
    )
    if not isinstance(values, dict):
        raise ConfigurationError(f"{where} is {values!r}", remedy="write it as a table")
    refuse_unknown(values, {*PER_SCENARIO, "description", "loads", "deadlines"}, f"key {where}")
    start = before or ScenarioTable()
    return ScenarioTable(
        description=str(values.get("description", start.description)),
        options={
            key: parse_value(OPTIONS[key], values[key], f"{where} {key}") for key in values if key in PER_SCENARIO
        },
        loads=parse_loads(values["loads"], f"{where[:-1]}.loads]") if "loads" in values else start.loads,
        deadlines=parse_deadlines(values["deadlines"], where) if "deadlines" in values else start.deadlines,
    )


def parse_loads(tables: Any, where: str) -> Mapping[str, LoadSpec]:
    """Parses a table of loads, by kind; ``true`` stands for a load with its defaults."""
    if not isinstance(tables, dict):
        raise ConfigurationError(f"{where} is {tables!r}", remedy="write it as a table, with a key for each load")
    refuse_unknown(tables, LOAD_SPECS, f"load {where}")
    return {
        kind: build_spec(LOAD_SPECS[kind], {} if values is True else values, f"{where} {kind}")
        for kind, values in tables.items()
    }


def find_scenario(name: str, known: Mapping[str, ScenarioTable]) -> tuple[str, ScenarioTable]:
    """Finds a scenario or a combination of scenarios; returns it with the name shared by all its spellings.

    Raises `ConfigurationError` if a part is unknown or named twice, or two parts contradict each other.
    """
    parts = name.split(PLUS)
    single = [each for each in known if PLUS not in each]
    refuse_unknown(parts, single, "scenario")
    require(len(set(parts)) == len(parts), f"scenario '{name}' names a part twice")
    usual = usual_name(name, single)
    if len(parts) == 1:
        return name, known[name]
    return usual, _combine(usual, [known[part] for part in usual.split(PLUS)], known.get(usual))


def _combine(name: str, parts: Sequence[ScenarioTable], own: ScenarioTable | None) -> ScenarioTable:
    table = own or ScenarioTable()
    return ScenarioTable(
        description=" and ".join(part.description for part in parts) if own is None else table.description,
        options={**_join(name, [part.options for part in parts], but=table.options), **table.options},
        loads=table.loads or _join(name, [part.loads for part in parts], key="loads"),
        deadlines=table.deadlines or _laxest(deadline for part in parts for deadline in part.deadlines),
    )


_OF_SEVERAL: Final[Mapping[str, Callable[[Iterable[Any]], Any]]] = {
    "trials": max,
    "max_trials": max,
    "warmup": max,
    "success_rate": min,
}


def _join(name: str, parts: Sequence[Mapping[str, Any]], *, but: Collection[str] = (), key: str = "") -> dict[str, Any]:
    """Joins the options, or the loads (`key`), of parts that do not contradict each other."""
    joined: dict[str, Any] = {}
    for each, value in ((each, value) for part in parts for each, value in part.items() if each not in but):
        choose = _OF_SEVERAL.get(each)
        before = joined.setdefault(each, value)
        require(
            choose is not None or before == value,
            f"the parts of scenario '{name}' contradict each other in {each}",
            remedy=f'choose one: {key or each} in [tool.ldos.scenarios."{name}"]',
        )
        joined[each] = choose((before, value)) if choose else before
    return joined


def _laxest(deadlines: Iterable[DeadlineSpec]) -> tuple[DeadlineSpec, ...]:
    laxest: dict[str, DeadlineSpec] = {}
    for each in deadlines:
        before = laxest.get(each.path, each)
        laxest[each.path] = replace(each, ms=max(before.ms, each.ms), share=min(before.share, each.share))
    return tuple(laxest.values())


_STACK: Final = "[tool.ldos.stack]"
_PATHS: Final = frozenset({"goals", "launch_file", "path", "problems", "topology"})


def parse_stack(values: Any, *, folder: Path, stimuli: Any = None) -> StackSpec:
    """Parses the stack under test: a table, or its kind alone, and the table ``[tool.ldos.stimulus]``, if any.

    Files in them are relative to `folder`.
    """
    if not isinstance(values, dict):
        kind = parse_field(StackKind, values, "[tool.ldos] stack")
        return StackSpec(kind=kind, stimuli=_parse_stimuli(stimuli or {}, folder))
    common = field_types(StackSpec).keys() - {"faults", "ros2", "stimuli"}
    refuse_unknown(values, {*common, *field_types(Ros2Spec), "faults"}, f"key {_STACK}")
    faults = values.get("faults", {})
    if not isinstance(faults, dict):
        raise ConfigurationError(
            f"{_STACK} faults is {faults!r}", remedy="it must be a table, [tool.ldos.stack.faults]"
        )
    own = {name: _text_of_cpus(values[name]) if name == "cpus" else values[name] for name in values if name in common}
    own = _parse_table(StackSpec, own, folder)
    ros2 = _parse_table(Ros2Spec, {name: values[name] for name in values if name not in {*common, "faults"}}, folder)
    if own.get("stimulus", StimulusKind.MOVE_GROUP) is not StimulusKind.MOVE_GROUP:
        ros2.setdefault("controllers", ())  # the Panda's controllers do not apply to other stacks
    return StackSpec(
        **own,
        stimuli=_parse_stimuli(stimuli or {}, folder),
        faults=FaultSpec(**parse_fields(FaultSpec, faults, "[tool.ldos.stack.faults]")),
        ros2=Ros2Spec(**ros2),
    )


def _text_of_cpus(value: Any) -> Any:
    """A list of CPUs, or a table of such lists by process, as the text of `StackSpec.cpus`."""
    if isinstance(value, dict):
        lists = {name: str(each) if type(each) is int else _text_of_cpus(each) for name, each in value.items()}
        return " ".join(f"{name}={each}" for name, each in lists.items()) or lists
    return ",".join(map(str, value)) or value if isinstance(value, list) else value


def _parse_stimuli(tables: Any, folder: Path) -> StimuliSpec:
    if not isinstance(tables, dict):
        raise ConfigurationError(f"[tool.ldos] stimulus is {tables!r}", remedy="set it in [tool.ldos.stack]")
    kinds = field_types(StimuliSpec)
    refuse_unknown(tables, kinds, "table [tool.ldos.stimulus]:")
    parsed = {}
    for name, table in tables.items():
        where = f"[tool.ldos.stimulus.{name}]"
        if not isinstance(table, dict):
            raise ConfigurationError(f"[tool.ldos.stimulus] {name} is {table!r}", remedy=f"it must be a table, {where}")
        parsed[name] = kinds[name](**_parse_table(kinds[name], table, folder, where=where))
    return StimuliSpec(**parsed)


def _parse_table(kind: type, values: Mapping[str, Any], folder: Path, *, where: str = _STACK) -> dict[str, Any]:
    found = parse_fields(kind, values, where)
    paths = {name: _path(found[name], folder) for name in _PATHS & found.keys()}
    command = {"command": tuple(_path(word, folder) for word in found["command"])} if "command" in found else {}
    return {**found, **paths, **command}


def _path(value: str, folder: Path) -> str:
    """The absolute path of a file or folder in the project; other texts, such as ``PACKAGE/FILE``, unchanged."""
    file = folder / value
    return str(file.resolve()) if value and file.exists() else value
