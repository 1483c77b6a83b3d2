"""The ``[tool.ldos.stack]`` table, with keys of all stacks and of ROS 2's alone; or ``stack = "KIND"``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.scenario.fields import parse_field
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.stimulus import StimuliSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind

_WHERE: Final = "[tool.ldos.stack]"
_PATHS: Final = frozenset({"goals", "launch_file", "path", "topology"})


def parse_stack(values: Any, *, folder: Path, stimuli: Any = None) -> StackSpec:
    """Parses the stack under test: a table, or its kind alone; files in it are relative to `folder`.

    Args:
        stimuli: the table ``[tool.ldos.stimulus]``, if there is one.

    Raises:
        ConfigurationError: an unknown key (the nearest known one is named), a wrong type or value.
    """
    if not isinstance(values, dict):
        return StackSpec(
            kind=parse_field(StackKind, values, "[tool.ldos] stack"), stimuli=_parse_stimuli(stimuli or {}, folder)
        )
    common = _defaults(StackSpec())
    of_ros2 = _defaults(Ros2Spec())
    for name in ("faults", "ros2", "stimuli"):
        del common[name]
    refuse_unknown(values, {*common, *of_ros2, "faults"}, f"key {_WHERE}")
    parsed = _parse_all(values, common, folder)
    ros2 = _parse_all(values, of_ros2, folder)
    if parsed.get("stimulus", StimulusKind.MOVE_GROUP) is not StimulusKind.MOVE_GROUP:
        ros2.setdefault("controllers", ())  # those of the Panda are nobody else's
    return StackSpec(
        **parsed,
        stimuli=_parse_stimuli(stimuli or {}, folder),
        faults=_parse_faults(values.get("faults", {})),
        ros2=Ros2Spec(**ros2),
    )


def _parse_stimuli(tables: Any, folder: Path) -> StimuliSpec:
    if not isinstance(tables, dict):
        raise ConfigurationError(f"[tool.ldos] stimulus is {tables!r}", remedy="set it in [tool.ldos.stack]")
    usual = _defaults(StimuliSpec())
    refuse_unknown(tables, usual, "table [tool.ldos.stimulus]:")
    return StimuliSpec(**{name: _parse_stimulus(usual[name], table, folder, name) for name, table in tables.items()})


def _parse_stimulus(usual: Any, table: Any, folder: Path, name: str) -> Any:
    where = f"[tool.ldos.stimulus.{name}]"
    if not isinstance(table, dict):
        raise ConfigurationError(f"[tool.ldos.stimulus] {name} is {table!r}", remedy=f"it must be a table, {where}")
    defaults = _defaults(usual)
    refuse_unknown(table, defaults, f"key {where}")
    return type(usual)(**_parse_all(table, defaults, folder, where=where))


def _defaults(spec: Any) -> dict[str, Any]:
    return {each.name: getattr(spec, each.name) for each in dataclasses.fields(spec)}


def _parse_all(
    values: Mapping[str, Any], defaults: Mapping[str, Any], folder: Path, *, where: str = _WHERE
) -> dict[str, Any]:
    found = {name: default for name, default in defaults.items() if name in values}
    return {name: _parse(name, values[name], default, folder, where) for name, default in found.items()}


def _parse_faults(table: Any) -> FaultSpec:
    if not isinstance(table, dict):
        raise _refuse("faults", table, "a table, [tool.ldos.stack.faults]")
    refuse_unknown(table, {each.name for each in dataclasses.fields(FaultSpec)}, "key [tool.ldos.stack.faults]")
    return FaultSpec(**{name: parse_field(float, value, f"{_WHERE} {name}") for name, value in table.items()})


def _parse(name: str, value: Any, default: Any, folder: Path, where: str) -> Any:
    """Parses a value of the default's type."""
    key = f"{where} {name}"
    match default:
        case str() if name in _PATHS:
            return _path(parse_field(str, value, key), folder)
        case tuple() if name == "success_codes":
            return _numbers(name, value, where)
        case tuple():
            texts = _texts(name, value, where)
            return tuple(_path(each, folder) for each in texts) if name == "command" else texts
        case dict():
            return _arguments(name, value)
    return parse_field(type(default), value, key)


def _refuse(name: str, value: Any, wanted: str, where: str = _WHERE) -> ConfigurationError:
    return ConfigurationError(f"{where} {name} is {value!r}", remedy=f"it must be {wanted}")


def _path(value: str, folder: Path) -> str:
    """The absolute path of a file or folder in the project; anything else, like ``PACKAGE/FILE``, unchanged."""
    file = folder / value
    return str(file.resolve()) if value and file.exists() else value


def _texts(name: str, value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _refuse(name, value, "a list of texts", where)
    return tuple(value)


def _numbers(name: str, value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise _refuse(name, value, "a list of whole numbers", where)
    return tuple(value)


def _arguments(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        raise _refuse(name, value, "a table of texts or numbers")
    return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}
