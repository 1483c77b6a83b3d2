"""Marks of instruments: ``@pytest.mark.ldos_latency(…)``."""

from __future__ import annotations

import re
from typing import Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, nearest, suggest
from pytest_ldos.campaign.instruments import MODULES
from pytest_ldos.plugin.marks import mark_name, marks_of
from pytest_ldos.scenario.settings import OWN_NAME

_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def asked_instruments(item: pytest.Item) -> dict[str, pytest.Mark]:
    """The marks of a test by instrument; arguments missing from the closest mark come from the next one."""
    names = {mark_name(name): name for name in MODULES}
    found: dict[str, pytest.Mark] = {}
    for mark in reversed([each for each in marks_of(item) if each.name in names]):
        name = names[mark.name]
        found[name] = found[name].combined_with(mark) if name in found else mark
    return found


def instrument_mark(item: pytest.Item) -> tuple[str, pytest.Mark]:
    """The instrument requested by a test, and its mark.

    Raises:
        ConfigurationError: it requests none, or several.
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


def study_name(item: pytest.Item) -> str:
    """The name of a test's baseline, from its mark, or the instrument's.

    Raises:
        ConfigurationError: it has no mark of an instrument, or several.
    """
    instrument, mark = instrument_mark(item)
    return _NO_WORD.sub("_", str(mark.kwargs.get(OWN_NAME) or instrument))
