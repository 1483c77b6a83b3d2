"""Marks of tests that need a program or a part of ours; each is looked for once a process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from pytest_ldos.host.availability import Availability
from pytest_ldos.measure.load.stress_ng import stress_ng_available
from pytest_ldos.record.lttng import lttng_available
from pytest_ldos.robot.stack.embedded.backend import embedded_available

lttng_here = cache(lttng_available)
embedded_here = cache(embedded_available)


def needs(available: Callable[[], Availability]) -> pytest.MarkDecorator:
    """Skips a test with the reason if what it needs is not there."""
    found = available()
    return pytest.mark.skipif(not found.ok, reason=found.reason or "available")


needs_lttng = needs(lttng_here)
needs_embedded = needs(embedded_here)
needs_stress_ng = needs(stress_ng_available)
