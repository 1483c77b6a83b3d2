"""Numbers as people write them where a field says what its number is in: ``2kHz``, ``64KiB``, ``50%``."""

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
"""Units that may stand behind a number, by the unit that ends a field's name."""

UNIT_SUFFIXES: Final = tuple(_FACTORS)
"""What a field's name may end with, and an address may leave out."""


def in_unit_of(field: str, text: str) -> str | int | float:
    """A number in the unit that ends a field's name; the text as it is where it is none, or such a field is not."""
    plain = text.strip().lower()
    factors = _FACTORS.get(field.rpartition("_")[2], {})
    unit = next((each for each in sorted(factors, key=len, reverse=True) if plain.endswith(each)), "")
    try:
        number = float(plain.removesuffix(unit)) * factors.get(unit, 1)
    except ValueError:
        return text
    return _exact(number) if factors and math.isfinite(number) else text


def _exact(number: float) -> int | float:
    """A whole number as such, without what computing in binary fractions adds."""
    rounded = round(number, 9)
    return int(rounded) if rounded.is_integer() else rounded
