"""The arm on one CPU."""

import pytest


@pytest.mark.cpu_limit
def test_reach_on_one_cpu(panda_stack, cpu_limit, ldos_trials, ldos_gate):
    with cpu_limit() as limit:
        trials = ldos_trials(panda_stack)
    assert not limit.proof.shortfall
    ldos_gate.check(trials)
