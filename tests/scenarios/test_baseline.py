"""The arm alone: every reach succeeds, and no metric got worse."""

import pytest


@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    trials = ldos_trials(panda_stack)
    ldos_gate.check(trials)
