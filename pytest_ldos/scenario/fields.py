"""Fields of frozen specs: their descriptions, and their values from tables and texts, checked against their types.

Numbers may also be text, as on the command line. An unknown key (the nearest known one is named), or a value that is
invalid or of another type, raises `ConfigurationError`, which names the place, the value and the required form.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.files import field_types
from pytest_ldos.scenario.options import Option
from pytest_ldos.scenario.words import parse_number, parse_truth, parse_word

_KEY: Final = "described"


@dataclass(frozen=True)
class Described:
    """Description of a field.

    Attributes:
        meaning: help text; a default in words is at its end: ``[default: all]``.
        flags: of the command line, if not derived from the field's name: ``--rate``, ``--ipc/--no-ipc``.
        is_argument: True if the command takes it without a flag.
        is_path: True if the text names a file or folder; ``""`` for none.
        default: default of the command, if it differs from the field's.
    """

    meaning: str
    flags: tuple[str, ...] = ()
    is_argument: bool = False
    is_path: bool = False
    default: Any = None


def described(
    meaning: str, *flags: str, is_argument: bool = False, is_path: bool = False, default: Any = None
) -> Mapping[str, Described]:
    """Metadata of a field (``dataclasses.field``); see `Described`."""
    return {_KEY: Described(meaning, flags, is_argument=is_argument, is_path=is_path, default=default)}


def described_fields(spec: type) -> Mapping[str, Described]:
    return {each.name: each.metadata[_KEY] for each in dataclasses.fields(spec) if _KEY in each.metadata}


def parse_value(option: Option, value: Any, source: str) -> Any:
    try:
        return option.parse(value)
    except ValueError as error:
        raise ConfigurationError(f"{source} is {value!r}", remedy=f"it must be {error}") from None


Spec = TypeVar("Spec")


def build_spec(kind: type[Spec], values: Any, where: str) -> Spec:
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{where} is {values!r}", remedy="write it as a table")
    given = parse_fields(kind, values, where)
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    needed = {each.name for each in fields if each.default is missing and each.default_factory is missing}
    for name in sorted(needed - set(values)):
        raise ConfigurationError(f"{where} lacks {name}", remedy="add that key")
    return _made(kind, {name: given[name] for name in needed}, given, where)


def parse_fields(kind: type, values: Mapping[str, Any], where: str, *, what: str = "key {}") -> dict[str, Any]:
    types = field_types(kind)
    refuse_unknown(values, types, what.format(where))
    return {name: parse_field(types[name], value, f"{where} {name}") for name, value in values.items()}


def revise_spec(spec: Spec, changes: Mapping[str, Any], where: str) -> Spec:
    return _made(type(spec), vars(spec), parse_fields(type(spec), changes, where, what="argument of {}:"), where)


def _made(kind: type[Spec], before: Mapping[str, Any], given: Mapping[str, Any], where: str) -> Spec:
    """Builds a spec; an error names the first key that is refused in the same way when added alone, if there is one."""
    try:
        return kind(**{**before, **given})
    except ConfigurationError as error:
        names = () if _refusal(kind, {**before}) == error.message else given
        alone = (name for name in names if _refusal(kind, {**before, name: given[name]}) == error.message)
        place = " ".join([where, *itertools.islice(alone, 1)])
        raise ConfigurationError(f"{place}: {error.message}", remedy=error.remedy) from None


def _refusal(kind: type, fields: Mapping[str, Any]) -> str:
    try:
        kind(**fields)
    except ConfigurationError as error:
        return error.message
    return ""


def parse_field(kind: Any, value: Any, where: str) -> Any:
    """A value of a type; a table is read as a dataclass, and a list of tables as several."""
    if NoneType in get_args(kind):
        if value is None:
            return None
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return build_spec(kind, value, where)
    member = next(iter(get_args(kind)), None)
    if isinstance(value, list) and isinstance(member, type) and dataclasses.is_dataclass(member):
        return tuple(build_spec(member, each, f"{where} {number}") for number, each in enumerate(value, 1))
    try:
        return _parse(kind, value)
    except ValueError as error:
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"it must be {error}") from None


def _parse(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return parse_word(kind, value)
    if kind is bool:
        return parse_truth(value)
    if kind in (int, float):
        return parse_number(kind, value, "a whole number" if kind is int else "a number")
    if get_origin(kind) in (tuple, Mapping):
        return _parse_items(kind, value)
    is_either = kind == int | str
    if is_either and isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("a whole number or a text" if is_either else "a text")
    return int(value) if is_either and value.isdecimal() else value


_ITEMS: Final = {str: "texts", int: "whole numbers", float: "finite numbers"}


def _parse_items(kind: Any, value: Any) -> tuple[Any, ...] | dict[str, Any]:
    kinds = get_args(kind)
    if get_origin(kind) is tuple:
        count = "" if ... in kinds else f"{len(kinds)} "
        is_list = isinstance(value, list | tuple) and len(value) == (len(kinds) if count else len(value))
        if not is_list or not all(_is_item(kinds[0], each) for each in value):
            raise ValueError(f"a list of {count}{_ITEMS.get(kinds[0], 'tables')}")
        return tuple(map(kinds[0], value))
    if kinds[1] in {float, Any}:
        if not isinstance(value, dict) or not all(_is_item(kinds[1], each) for each in value.values()):
            raise ValueError("a table of finite numbers" if kinds[1] is float else "a table")
        return {str(key): each if kinds[1] is Any else float(each) for key, each in value.items()}
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        raise ValueError("a table of texts or numbers")
    return {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in value.items()}


def _is_item(kind: Any, value: Any) -> bool:
    if kind is float:
        return type(value) in {int, float} and abs(value) <= sys.float_info.max
    return kind is Any or type(value) is kind


_FACTORS: Final[Mapping[str, Mapping[str, float]]] = {
    "hz": {"khz": 1e3, "hz": 1},
    "bytes": {"kib": 1 << 10, "mib": 1 << 20, "kb": 1e3, "mb": 1e6, "b": 1},
    "mb": {"gb": 1e3, "mb": 1},
    "mbps": {"gbps": 1e3, "mbps": 1},
    "ms": {"us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3},
    "s": {"ms": 1e-3, "min": 60, "s": 1},
    "percent": {"%": 1},
}
"""Allowed units after a number, by the unit at the end of the field's name."""

UNIT_SUFFIXES: Final = tuple(_FACTORS)
"""Unit suffixes of field names; an address may omit them."""


def in_unit_of(field: str, text: str) -> str | int | float:
    """Converts a number to the unit of the field; other text, and that of a field without a unit, is unchanged."""
    plain = text.strip().lower()
    factors = _FACTORS.get(field.rpartition("_")[2], {})
    unit = next((each for each in sorted(factors, key=len, reverse=True) if plain.endswith(each)), "")
    try:
        number = float(plain.removesuffix(unit)) * factors.get(unit, 1)
    except ValueError:
        return text
    if not factors or not math.isfinite(number):
        return text
    rounded = round(number, 9)  # without floating-point noise
    return int(rounded) if rounded.is_integer() else rounded
