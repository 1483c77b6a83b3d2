"""Scenarios of the arm: pytest -m baseline, pytest -m busy_cell."""

import pytest


@pytest.mark.baseline
def test_reach(ldos_stack, ldos_trials, ldos_gate):
    trials = ldos_trials(ldos_stack, goals="reach")
    ldos_gate.check(trials)  # fails with the verdict's explanation


@pytest.mark.busy_cell
def test_reach_in_a_busy_cell(ldos_scenario):
    ldos_scenario()  # loads, trials and verdict, as pyproject.toml has them
