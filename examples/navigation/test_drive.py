"""Each trial drives to a goal with Nav2, and back."""

import pytest


@pytest.mark.baseline
def test_drive(ldos_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(ldos_stack, goals="room"))
