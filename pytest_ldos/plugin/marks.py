"""Names of the plugin's marks and fixtures, and detection of measuring tests.

Every pytest run with the plugin installed loads this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
"""Attribute of a test's report: the result of its cell, as JSON."""

SWEEP_ATTRIBUTE: Final = "ldos_sweep"
"""Attribute of the report of a previously measured cell: its sweep, as JSON."""

UNJUDGED_OUTPUT: Final = "ldos_unjudged"
"""Key in the output of a pytest-xdist worker: measuring tests without a verdict, with reasons."""

_PREFIX: Final = "ldos_"
_KEYWORDS: Final = "(name=…, trials=…, max_trials=…, warmup=…, seeds=…, success_rate=…, goals=…, unavailable=…)"


def measures(test: Any) -> bool:
    """True if a test, or a function from which tests are made, requests a stack or an instrument."""
    fixtures = getattr(test, "fixturenames", ())
    return MEASURING_FIXTURE in fixtures or STUDY_FIXTURE in fixtures


def marks_of(node: pytest.Item) -> Iterator[pytest.Mark]:
    """The marks of a test, the closest first: of its parameter set, function, class and module."""
    of_parameters = getattr(getattr(node, "callspec", None), "marks", ())
    yield from (each.mark if isinstance(each, pytest.MarkDecorator) else each for each in of_parameters)
    yield from node.iter_markers()


def makes_tests(metafunc: pytest.Metafunc) -> bool:
    """True if measuring tests are made from a test function."""
    return measures(metafunc) or metafunc.definition.get_closest_marker(SWEEP_MARK) is not None


def describe_marks(scenarios: Mapping[str, str]) -> dict[str, str]:
    """All marks and their descriptions.

    Args:
        scenarios: descriptions of the known scenarios, by name.
    """
    return {
        **{f"{name}{_KEYWORDS}": f"scenario of pytest-ldos: {text}" for name, text in scenarios.items()},
        **_instrument_marks(),
        f"{SCENARIO_MARK}(scenario, name=…)": "the scenario of pytest-ldos that a test measures; 'a+b' is both at once",
        f"{SWEEP_MARK}(address, values)": "a test for each value of a setting of its scenario; several make a grid",
        f"{CHOICE_MARK}(*scenarios, name='left-{{scenario}}')": "for which scenarios a test with the fixture "
        "ldos_scenario is made, by default all",
    }


def describe_skip(report: pytest.CollectReport | pytest.TestReport) -> str:
    """The reason for a skip, as pytest shows it."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return f"skipped: {str(why).removeprefix('Skipped: ')}"


def mark_name(instrument: str) -> str:
    return f"{_PREFIX}{instrument.replace('-', '_')}"


def _instrument_marks() -> dict[str, str]:
    return {
        f"{mark_name(name)}(name=…, **settings)": f"the fixture ldos_study measures as 'ldos {command}' does"
        for name, command in ((each, each.replace("_", "-")) for each in MODULES)
    }
