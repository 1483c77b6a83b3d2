"""Shares and times as people write them."""

from __future__ import annotations

import math
import re
from typing import Final

from pytest_ldos.base.errors import ConfigurationError

_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}


def parse_share(text: str, *, what: str) -> float:
    """``15%`` or ``0.15``.

    Raises:
        ConfigurationError: it is no positive number.
    """
    plain = text.strip()
    try:
        value = float(plain.removesuffix("%").strip()) / (100 if plain.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 15% or 0.15")
    return value


def parse_duration_s(text: str, *, what: str) -> float:
    """``90s``, ``10min`` or ``1.5h``; a number alone is seconds.

    Raises:
        ConfigurationError: it is no time.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)?\s*", text)
    if match is None:
        raise ConfigurationError(f"{what} is {text!r}", remedy="write it as 90s, 10min or 1h")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_confidence(text: str) -> float:
    """The value of ``--confidence``.

    Raises:
        ConfigurationError: it is no share between one half and 1.
    """
    confidence = parse_share(text, what="--confidence")
    if not 0.5 < confidence < 1:
        raise ConfigurationError(f"--confidence is {text!r}", remedy="it must lie between 0.5 and 1, as 0.9 or 90%")
    return confidence
