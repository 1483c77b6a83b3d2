"""The same test as for the Panda: what differs is in pyproject.toml."""

import pytest


@pytest.mark.baseline
def test_reach(ldos_stack, ldos_trials, ldos_gate):
    trials = ldos_trials(ldos_stack, goals="reach")
    ldos_gate.check(trials)
