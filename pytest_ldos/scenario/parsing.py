"""Parses values from a source: text, or values of TOML and markers."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def parse_word(kind: type[StrEnum], value: Any) -> StrEnum:
    """One of several words.

    Raises:
        ValueError: it is not one of them; the message lists them.
    """
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"one of {', '.join(kind)}") from None


def parse_truth(value: Any) -> bool:
    """A boolean, also from text.

    Raises:
        ValueError: it is not a boolean; the message states the required form.
    """
    word = value.lower() if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    if not isinstance(word, str) or word not in _TRUE | _FALSE:
        raise ValueError("true or false")
    return word in _TRUE


def parse_number(kind: type[int | float], value: Any, what: str) -> int | float:
    """A number, also from text.

    Raises:
        ValueError: it is not a number; the message is `what`, the required form.
    """
    exact = kind is not int or not isinstance(value, float) or value.is_integer()
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not exact:
        raise ValueError(what)
    try:
        return kind(value)
    except (ValueError, OverflowError):
        raise ValueError(what) from None
