"""The arm under a load of CPU-bound processes, one on each CPU."""

import pytest


@pytest.mark.cpu_load
def test_reach_under_cpu_load(panda_stack, cpu_load, ldos_trials, ldos_gate):
    with cpu_load() as load:
        trials = ldos_trials(panda_stack)
    assert load.proof.used_percent > 0
    ldos_gate.check(trials)
