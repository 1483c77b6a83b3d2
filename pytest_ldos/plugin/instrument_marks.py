"""Marks of instruments: ``@pytest.mark.ldos_latency(…)``."""

from __future__ import annotations

from typing import Final

import pytest

from pytest_ldos.campaign.instruments import MODULES

STUDY_FIXTURE: Final = "ldos_study"
_PREFIX: Final = "ldos_"


def mark_name(instrument: str) -> str:
    return f"{_PREFIX}{instrument.replace('-', '_')}"


def instrument_marks() -> dict[str, str]:
    """Marks of all instruments, with what they are for."""
    return {
        f"{mark_name(name)}(**settings)": f"the fixture ldos_study measures as {_command(name)} does"
        for name in MODULES
    }


def _command(instrument: str) -> str:
    return f"'ldos {instrument.replace('_', '-')}'"


def instrument_mark(item: pytest.Item) -> tuple[str, pytest.Mark] | None:
    """Which instrument a test asks for, and its mark."""
    marks = {mark_name(name): name for name in MODULES}
    return next(((marks[mark.name], mark) for mark in item.iter_markers() if mark.name in marks), None)
