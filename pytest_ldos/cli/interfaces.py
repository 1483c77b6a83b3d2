"""Names of a stack's action and topics, as given on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.measure.metrics.model import Interfaces


def parse_interfaces(texts: Sequence[str], usual: Interfaces) -> Interfaces:
    """Interfaces of texts like ``action=/move_action``; the `usual` names for those that are not given.

    Raises:
        ConfigurationError: a text has no such form, or no interface is called so.
    """
    given = dict(_parse(text) for text in texts)
    refuse_unknown(given, {each.name for each in dataclasses.fields(Interfaces)}, "interface")
    return dataclasses.replace(usual, **given)


def _parse(text: str) -> tuple[str, str]:
    kind, separator, name = text.partition("=")
    if not separator:
        raise ConfigurationError(f"{text!r} names no interface", remedy="give one like action=/move_action")
    return kind, name
