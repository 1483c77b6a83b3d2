"""Marks of instruments: ``@pytest.mark.ldos_latency(…)``."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import nearest, suggest
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.plugin.marks import mark_name


def asked_instruments(item: pytest.Item) -> dict[str, pytest.Mark]:
    """The marks of a test by instrument; the closest where one has several."""
    names = {mark_name(name): name for name in MODULES}
    return {names[mark.name]: mark for mark in reversed(list(item.iter_markers())) if mark.name in names}


def instrument_mark(item: pytest.Item) -> tuple[str, pytest.Mark]:
    """The instrument that a test asks for, and its mark.

    Raises:
        ConfigurationError: it asks for none, or for several.
    """
    found = asked_instruments(item)
    if len(found) > 1:
        asked = " and ".join(sorted(map(mark_name, found)))
        raise ConfigurationError(f"{item.nodeid} is marked with {asked}", remedy="write a test for each")
    if not found:
        names = list(map(mark_name, MODULES))
        written = (mark.name for mark in item.iter_markers() if nearest(mark.name, names))
        remedy = suggest(next(written, ""), names)
        raise ConfigurationError(f"{item.nodeid} has no mark of an instrument", remedy=remedy)
    ((asked_for, mark),) = found.items()
    return asked_for, mark
