"""The added latency of a chain of five messages if it is recorded."""

from __future__ import annotations

import pytest


@pytest.mark.five_hops
def test_five_hops(ldos_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(ldos_stack))
