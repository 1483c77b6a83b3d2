"""Descriptions of a spec's fields, stored with the fields and used by command line, marks and reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.options import Option

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
    """Descriptions of a spec's described fields, by name."""
    return {each.name: each.metadata[_KEY] for each in dataclasses.fields(spec) if _KEY in each.metadata}


def parse_value(option: Option, value: Any, source: str) -> Any:
    """Parses the value of an option from a source.

    Raises:
        ConfigurationError: names the source, the value and the required form.
    """
    try:
        return option.parse(value)
    except ValueError as error:
        raise ConfigurationError(f"{source} is {value!r}", remedy=f"it must be {error}") from None
