"""One scenario whose trials are what work.py does."""

from __future__ import annotations

import pytest


@pytest.mark.baseline
def test_work(ldos_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(ldos_stack))
