"""The arm under a flood of 4000 messages a second."""

import pytest


@pytest.mark.msg_load
def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
    with dds_flood() as flood:
        trials = ldos_trials(panda_stack)
    assert flood.proof.rate_hz >= 0.99 * flood.spec.total_hz
    ldos_gate.check(trials)
