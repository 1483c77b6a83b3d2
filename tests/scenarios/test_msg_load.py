"""The arm beside a flood of 4000 messages a second."""

import pytest


@pytest.mark.msg_load
def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
    with dds_flood(publishers=4, rate_hz=1000, size_bytes=1024) as flood:
        trials = ldos_trials(panda_stack, goals="reach")
    assert flood.proof.rate_hz >= 3960
    ldos_gate.check(trials)
