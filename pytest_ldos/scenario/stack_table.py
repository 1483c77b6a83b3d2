"""The ``[tool.ldos.stack]`` table, with keys of all stacks and of ROS 2's alone; or ``stack = "KIND"``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.scenario.fields import parse_field
from pytest_ldos.scenario.model import FaultSpec, StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.words import StackKind

_WHERE: Final = "[tool.ldos.stack]"
_PATHS: Final = frozenset({"goals", "launch_file"})


def parse_stack(values: Any, *, folder: Path) -> StackSpec:
    """Parses the stack under test: a table, or its kind alone; files in it are relative to `folder`.

    Raises:
        ConfigurationError: an unknown key (the nearest known one is named), a wrong type or value.
    """
    if not isinstance(values, dict):
        return StackSpec(kind=parse_field(StackKind, values, "[tool.ldos] stack"))
    common = _defaults(StackSpec())
    of_ros2 = _defaults(Ros2Spec())
    for name in ("faults", "ros2"):
        del common[name]
    refuse_unknown(values, {*common, *of_ros2, "faults"}, f"key {_WHERE}")
    return StackSpec(
        **_parse_all(values, common, folder),
        faults=_parse_faults(values.get("faults", {})),
        ros2=Ros2Spec(**_parse_all(values, of_ros2, folder)),
    )


def _defaults(spec: StackSpec | Ros2Spec) -> dict[str, Any]:
    return {each.name: getattr(spec, each.name) for each in dataclasses.fields(spec)}


def _parse_all(values: Mapping[str, Any], defaults: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {name: _parse(name, values[name], default, folder) for name, default in defaults.items() if name in values}


def _parse_faults(table: Any) -> FaultSpec:
    if not isinstance(table, dict):
        raise _refuse("faults", table, "a table, [tool.ldos.stack.faults]")
    refuse_unknown(table, {each.name for each in dataclasses.fields(FaultSpec)}, "key [tool.ldos.stack.faults]")
    return FaultSpec(**{name: parse_field(float, value, f"{_WHERE} {name}") for name, value in table.items()})


def _parse(name: str, value: Any, default: Any, folder: Path) -> Any:
    """Parses a value of the default's type."""
    match default:
        case StrEnum():
            return parse_field(type(default), value, f"{_WHERE} {name}")
        case str():
            text: str = parse_field(str, value, f"{_WHERE} {name}")
            return _path(text, folder) if name in _PATHS else text
        case bool():
            return parse_field(bool, value, f"{_WHERE} {name}")
        case tuple():
            return _texts(name, value)
        case dict():
            return _arguments(name, value)
    return parse_field(float, value, f"{_WHERE} {name}")


def _refuse(name: str, value: Any, wanted: str) -> ConfigurationError:
    return ConfigurationError(f"{_WHERE} {name} is {value!r}", remedy=f"it must be {wanted}")


def _path(value: str, folder: Path) -> str:
    """The absolute path of a file in the project; anything else, like ``PACKAGE/FILE``, unchanged."""
    file = folder / value
    return str(file.resolve()) if value and file.is_file() else value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _refuse(name, value, "a list of texts")
    return tuple(value)


def _arguments(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        raise _refuse(name, value, "a table of texts or numbers")
    return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}
