"""Parses numbers with a unit, for fields whose name ends with their unit: ``2kHz``, ``64KiB``, ``50%``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

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
    """Converts a number to the unit of the field.

    Returns the text unchanged if it is no number, or if the field has no unit.
    """
    plain = text.strip().lower()
    factors = _FACTORS.get(field.rpartition("_")[2], {})
    unit = next((each for each in sorted(factors, key=len, reverse=True) if plain.endswith(each)), "")
    try:
        number = float(plain.removesuffix(unit)) * factors.get(unit, 1)
    except ValueError:
        return text
    return _exact(number) if factors and math.isfinite(number) else text


def _exact(number: float) -> int | float:
    """The number without floating-point noise; an `int` if it is whole."""
    rounded = round(number, 9)
    return int(rounded) if rounded.is_integer() else rounded
