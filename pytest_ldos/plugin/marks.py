"""The plugin's own marks and fixtures by name, and who asks for a measurement.

Every pytest run in whose environment the plugin is installed loads this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from pytest_ldos.campaign.instruments import MODULES

SCENARIO_MARK: Final = "ldos_scenario"
CHOICE_MARK: Final = "ldos_scenarios"
SWEEP_MARK: Final = "ldos_sweep"

SCENARIO_FIXTURE: Final = "ldos_scenario"
CELL_FIXTURE: Final = "ldos_cell"
STUDY_FIXTURE: Final = "ldos_study"
MEASURING_FIXTURE: Final = "ldos_stack"

CELL_ATTRIBUTE: Final = "ldos_cell"
"""Of the report of a test: what the cell that it measured gave, as JSON."""

SWEEP_ATTRIBUTE: Final = "ldos_sweep"
"""Of the report of a cell that was measured before: of which sweep, as JSON."""

_PREFIX: Final = "ldos_"
_KEYWORDS: Final = "(trials=…, max_trials=…, warmup=…, seeds=…, success_rate=…)"


def measures(test: Any) -> bool:
    """Whether a test, or what makes tests, asks for a stack or an instrument."""
    fixtures = getattr(test, "fixturenames", ())
    return MEASURING_FIXTURE in fixtures or STUDY_FIXTURE in fixtures


def makes_tests(metafunc: pytest.Metafunc) -> bool:
    """Whether one test function may stand for several measurements, or for one."""
    return measures(metafunc) or metafunc.definition.get_closest_marker(SWEEP_MARK) is not None


def describe_marks(scenarios: Mapping[str, str]) -> dict[str, str]:
    """All marks, with what they are for.

    Args:
        scenarios: descriptions of those that are known, by name.
    """
    return {
        **{f"{name}{_KEYWORDS}": f"scenario of pytest-ldos: {text}" for name, text in scenarios.items()},
        **_instrument_marks(),
        f"{SCENARIO_MARK}(name)": "the scenario of pytest-ldos that a test measures; 'a+b' is both at once",
        f"{SWEEP_MARK}(address, values)": "a test for each value of a setting of its scenario; several make a grid",
        f"{CHOICE_MARK}(*names)": "for which scenarios a test with the fixture ldos_scenario is made",
    }


def mark_name(instrument: str) -> str:
    return f"{_PREFIX}{instrument.replace('-', '_')}"


def _instrument_marks() -> dict[str, str]:
    return {
        f"{mark_name(name)}(**settings)": f"the fixture ldos_study measures as 'ldos {name.replace('_', '-')}' does"
        for name in MODULES
    }
