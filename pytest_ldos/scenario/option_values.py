"""Converts the text or TOML value of an option."""

from __future__ import annotations

from typing import Any

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.options import Option


def parse_value(option: Option, value: Any, source: str) -> Any:
    """Parses the value of an option from a source.

    Raises:
        ConfigurationError: names the source, the value and the required form.
    """
    try:
        return option.parse(value)
    except ValueError as error:
        raise ConfigurationError(f"{source} is {value!r}", remedy=f"it must be {error}") from None
