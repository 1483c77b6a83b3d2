"""Settings from all sources, strongest first: command line, environment, marker, TOML, defaults.

Every pytest run with the plugin installed loads this module, and looks for settings above its tests.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.scenario import scenario_table
from pytest_ldos.scenario.fields import build_spec, parse_field, parse_value
from pytest_ldos.scenario.loads import LOAD_SPECS
from pytest_ldos.scenario.metrics import MetricSpec, parse_metrics, usual_metrics
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.options import (
    CI_WAIT_S,
    OPTIONS,
    OTHER_VARIABLES,
    OWN_FILE,
    PER_SCENARIO,
    PROJECT_FILE,
    has_table,
    settings_file_in,
)

_WHERE: Final = "[[tool.ldos.paths]]"


def parse_paths(tables: Any) -> tuple[PathSpec, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigurationError("[tool.ldos] paths must be tables", remedy=f"write each path as {_WHERE}")
    where = (f"{_WHERE} {table.get('name', '')}".rstrip() for table in tables)
    paths = tuple(build_spec(PathSpec, table, place) for table, place in zip(tables, where, strict=True))
    names = [path.name for path in paths]
    for name in names:
        require(names.count(name) == 1, f"two paths are called {name!r}", remedy="give each its own name")
    return paths


TABLES: Final = frozenset({"stack", "scenarios", "gate", "paths", "base", "stimulus", "metrics", "ci"})
LARGEST_EFFECT: Final = 5.0
"""Largest relative effect; a larger number was meant as percent."""

OWN_NAME: Final = "name"

_GATE: Final = {"alpha": float, "floors": Mapping[str, float], "relevant_effect": float, "required": tuple[str, ...]}
GATE_KEYS: Final = frozenset(_GATE)


@dataclass(frozen=True)
class TomlSettings:
    """The ``[tool.ldos]`` table, checked.

    Attributes:
        options: of all scenarios.
        scenarios: built-in and own ones, by name.
        gate: `GATE_KEYS`.
        paths: declared paths, and built-in paths unless their names are declared.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    scenarios: Mapping[str, scenario_table.ScenarioTable] = field(
        default_factory=lambda: scenario_table.BUILT_IN_SCENARIOS
    )
    stack: StackSpec = field(default_factory=StackSpec)
    gate: Mapping[str, Any] = field(default_factory=dict)
    paths: tuple[PathSpec, ...] = BUILT_IN_PATHS
    base: scenario_table.BaseSpec = field(default_factory=scenario_table.BaseSpec)
    metrics: tuple[MetricSpec, ...] = ()


@dataclass(frozen=True)
class Sources:
    """All sources of settings.

    Attributes:
        root: the project's folder, to which paths in settings and environment are relative.
        file: source of `toml`, if any.
    """

    command_line: Mapping[str, Any]
    environment: Mapping[str, Any]
    toml: TomlSettings
    root: Path = Path()
    file: Path | None = None

    def folder(self, name: str) -> Path:
        return self.root / Path(self.value(name))

    def wait_s(self, environment: Mapping[str, str]) -> float:
        """Longest time to wait for the machine, seconds: as set, or `CI_WAIT_S` if ``CI`` is set."""
        asked = self.value("wait")
        return float(asked if asked is not None else CI_WAIT_S if environment.get("CI") else 0)

    def is_strict(self, environment: Mapping[str, str]) -> bool:
        """True if a run without a verdict fails: as set, or if ``CI`` is set."""
        asked = self.value("strict")
        return bool(environment.get("CI") if asked is None else asked)

    def value(
        self, name: str, *, marker: Mapping[str, Any] | None = None, table: scenario_table.ScenarioTable | None = None
    ) -> Any:
        """Value of an option from the strongest source that has it."""
        of_scenario = table.options if table else {}
        for source in (self.command_line, self.environment, marker or {}, of_scenario, self.toml.options):
            if name in source:
                return source[name]
        return OPTIONS[name].default

    def is_given(self, name: str) -> bool:
        """True if a source other than a scenario's sets the option."""
        return any(name in source for source in (self.command_line, self.environment, self.toml.options))

    def scenario_names(self) -> list[str]:
        return list(self.toml.scenarios)

    def scenario(self, name: str, marker: Mapping[str, Any]) -> ScenarioSpec:
        """A scenario, or several joined with ``+``.

        Args:
            marker: keyword arguments of the test's mark; ``name`` replaces the scenario's name in records and
                baselines.

        Raises:
            ConfigurationError: an unknown name or argument (the nearest known one is named), or scenarios that
                contradict each other.
        """
        name, table = scenario_table.find_scenario(name, self.toml.scenarios)
        refuse_unknown(marker, {*PER_SCENARIO, OWN_NAME}, f"argument of marker {name}:")
        given = {
            key: parse_value(OPTIONS[key], value, f"{key} of marker {name}")
            for key, value in marker.items()
            if key != OWN_NAME
        }
        values = {key: self.value(key, marker=given, table=table) for key in PER_SCENARIO}
        loads = tuple(table.loads[kind] for kind in LOAD_SPECS if kind in table.loads)
        own = (
            scenario_table.require_own_name(marker[OWN_NAME], name, self.toml.scenarios) if OWN_NAME in marker else name
        )
        try:
            return ScenarioSpec(name=own, loads=loads, deadlines=table.deadlines, stack=self.stack_spec(), **values)
        except ConfigurationError as error:
            raise ConfigurationError(f"scenario '{name}': {error.message}", remedy=error.remedy) from None

    def stack_spec(self) -> StackSpec:
        """The stack under test; options override kind, ``sim`` and ``rmw`` in its table."""
        given = {name: value for name in ("sim", "rmw") if (value := self.value(name)) is not None}
        stack = self.toml.stack
        kind = self.value("stack") or stack.kind
        return dataclasses.replace(stack, kind=kind, ros2=dataclasses.replace(stack.ros2, **given))


def read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    by_variable = {option.variable: option for option in OPTIONS.values()}
    given = {name: value for name, value in environment.items() if name.startswith("LDOS_")}
    refuse_unknown(given, {*by_variable, *OTHER_VARIABLES}, "environment variable")
    return {
        by_variable[name].name: parse_value(by_variable[name], value, f"environment variable {name}")
        for name, value in given.items()
        if name in by_variable
    }


def read_sources(
    found: Path | None, *, root: Path, here: Path, command_line: Mapping[str, Any], environment: Mapping[str, Any]
) -> Sources:
    """All sources of a project's settings.

    Args:
        found: settings file; see `find_settings_file`.
        root: the project's folder if there is no settings file.
        here: folder to which paths on the command line are relative.
        command_line, environment: values by option name; ``config`` names a file to read instead.

    Raises:
        ConfigurationError: see `read_toml`.
    """
    root = root if found is None else found.parent
    places = ((here, command_line), (root, environment))
    named = next((place / given["config"] for place, given in places if "config" in given), None)
    return Sources(command_line, environment, read_toml(root, named), root=root, file=named or found)


def read_toml(root: Path, file: Path | None = None) -> TomlSettings:
    """Reads the settings of `file`, or of a folder, if any: ``ldos.toml``, or ``[tool.ldos]`` in ``pyproject.toml``.

    Raises:
        ConfigurationError: invalid TOML, an unknown key (the nearest known one is named), or settings in both files.
    """
    read = settings_file_in(root) if file is None else root / file
    if read is None:
        return TomlSettings()
    if file is None and read.name == OWN_FILE and has_table(root / PROJECT_FILE):
        raise ConfigurationError(
            f"both {read} and [tool.ldos] in {root / PROJECT_FILE} hold settings",
            remedy="put all of them into one of the two",
        )
    document = _read_document(read)
    table = document.get("tool", {}).get("ldos", {}) if read.name == PROJECT_FILE else document
    try:
        return parse_table(table, folder=read.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{read}: {error.message}", remedy=error.remedy) from None


def _read_document(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file} is not UTF-8: {error}", remedy="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from None


def parse_table(table: Mapping[str, Any], *, folder: Path = Path()) -> TomlSettings:
    refuse_unknown(table, {*OPTIONS, *TABLES} - {"config"}, "key [tool.ldos]")
    options = {name: value for name, value in table.items() if name not in TABLES}
    own_paths = parse_paths(table.get("paths", []))
    declared = {path.name for path in own_paths}
    all_paths = (*own_paths, *(path for path in BUILT_IN_PATHS if path.name not in declared))
    build_spec(scenario_table.CiSpec, _table(table, "ci"), "[tool.ldos.ci]")  # read by CI, from the base
    stack = scenario_table.parse_stack(table.get("stack", {}), folder=folder, stimuli=table.get("stimulus"))
    settings = TomlSettings(
        options={name: parse_value(OPTIONS[name], value, f"[tool.ldos] {name}") for name, value in options.items()},
        scenarios=scenario_table.parse_scenarios(_table(table, "scenarios")),
        stack=stack,
        gate=_parse_gate(_table(table, "gate")),
        paths=all_paths,
        base=scenario_table.parse_base(_table(table, "base")),
        metrics=parse_metrics(table.get("metrics", usual_metrics(stack.driver, own_paths)), all_paths),
    )
    for name, scenario in settings.scenarios.items():
        paths = [path.name for path in settings.paths]
        refuse_unknown([each.path for each in scenario.deadlines], paths, f"path in deadlines of scenario {name}:")
    return settings


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"[tool.ldos] {name} is {found!r}", remedy=f"write it as a table, [tool.ldos.{name}]")
    return found


def _parse_gate(values: Mapping[str, Any]) -> dict[str, Any]:
    refuse_unknown(values, GATE_KEYS, "key [tool.ldos.gate]")
    found = {name: parse_field(_GATE[name], value, f"[tool.ldos.gate] {name}") for name, value in values.items()}
    effects = {"relevant_effect": found.get("relevant_effect", 0)}
    effects |= {f"floors.{metric}": floor for metric, floor in found.get("floors", {}).items()}
    for name, effect in effects.items():
        require(
            not effect > LARGEST_EFFECT,
            f"[tool.ldos.gate] {name} is {effect:g}, which is {100 * effect:g} %",
            remedy=f"write 0.15 for 15 %; it can be {LARGEST_EFFECT:g} at most",
        )
    return found
