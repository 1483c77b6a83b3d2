"""Values of the allow-list's tables, each of the type and the form that it must have.

Raises:
    Refused: in each function, where it has not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from lab.runner.refusal import Refused, quoted


def require_keys(table: Mapping[str, Any], where: str, *, needed: set[str], known: set[str]) -> None:
    """Those that are needed are there, and none that is neither needed nor known."""
    missing, unknown = sorted(needed - table.keys()), sorted(table.keys() - needed - known)
    if missing:
        raise Refused(f"{where} has no {', '.join(missing)}")
    if unknown:
        raise Refused(f"{where} has unknown keys: {quoted(', '.join(unknown))}")


def read_value(table: Mapping[str, Any], key: str, kind: type) -> Any:
    """A value of exactly this type: ``true`` is no number."""
    value = table[key]
    if type(value) is not kind:
        raise Refused(f"{key} of the allow-list is not of type {kind.__name__}")
    return value


def read_number(table: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
    if key not in table and default is not None:
        return default
    value = table[key]
    if type(value) not in {int, float} or math.isnan(value):
        raise Refused(f"{key} of the allow-list is no number")
    return float(value)


def read_text(table: Mapping[str, Any], key: str, form: re.Pattern[str], *, default: str | None = None) -> str:
    if key not in table and default is not None:
        return default
    value = str(read_value(table, key, str))
    if form.fullmatch(value) is None:
        raise Refused(f"{key} of the allow-list cannot be {quoted(value)}")
    return value


def read_list(table: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    values = read_value(table, key, list)
    if any(type(value) is not kind for value in values):
        raise Refused(f"{key} of the allow-list is no list of {kind.__name__}")
    return list(values)


def read_texts(table: Mapping[str, Any], key: str, form: re.Pattern[str]) -> tuple[str, ...]:
    """At least one."""
    values = read_list(table, key, str)
    if not values:
        raise Refused(f"{key} of the allow-list is empty")
    for value in values:
        if form.fullmatch(value) is None:
            raise Refused(f"{key} of the allow-list cannot hold {quoted(value)}")
    return tuple(values)
