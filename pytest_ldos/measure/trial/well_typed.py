"""Checks values read from a file against their type annotations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

_LARGEST: Final = 2**63
"""Integers below it are counts, times and durations; larger ones overflow in computations."""

_LONGEST_SHOWN: Final = 60


def require_well_typed(value: Any, hint: Any, what: str) -> None:
    """Checks a value, and all values in it, against a type annotation.

    Floats must be finite, integers must fit into 64 bits, and booleans are no numbers.

    Args:
        what: name of the value in the error.

    Raises:
        ValueError: a value is of another type; the message names the first.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        _require_one_of(value, arguments, what)
    elif origin is tuple:
        _require(isinstance(value, tuple), value, what)
        for number, each in enumerate(value):
            require_well_typed(each, arguments[0], f"{what}[{number}]")
    elif origin is Mapping:
        _require(isinstance(value, Mapping), value, what)
        for name, each in value.items():
            require_well_typed(name, arguments[0], f"a name in {what}")
            require_well_typed(each, arguments[1], f"{what}[{_shown(name)}]")
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
        _require(isinstance(value, hint), value, what)
        for name, part in _hints(value.__class__).items():
            require_well_typed(getattr(value, name), part, f"{what}.{name}")
    else:
        _require(_is_plain(value, hint), value, what)


def _require_one_of(value: object, hints: tuple[Any, ...], what: str) -> None:
    for hint in hints:
        try:
            return require_well_typed(value, hint, what)
        except ValueError:
            continue
    raise ValueError(f"{what} is {_shown(value)}")


def _is_plain(value: object, hint: Any) -> bool:
    if hint is float:
        return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
    return _is_whole(value) if hint is int else isinstance(value, hint)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


@cache
def _hints(kind: type) -> dict[str, Any]:
    found = get_type_hints(kind)
    return {each.name: found[each.name] for each in dataclasses.fields(kind)}


def _require(condition: bool, value: object, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} is {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and not _is_whole(value) and not isinstance(value, bool):
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
