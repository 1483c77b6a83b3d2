"""One scenario: the metrics that conftest.py registers are measured and gated like T1 to T5."""

from __future__ import annotations

import pytest


@pytest.mark.baseline
def test_reach(ldos_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(ldos_stack, goals="reach"))
