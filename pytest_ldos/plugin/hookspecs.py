"""Hooks that a conftest.py or another plugin may implement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ldos.api import OwnMetric


def pytest_ldos_metrics() -> Iterable[OwnMetric]:
    """Return metrics of your own, which are measured, recorded, judged and reported for each trial like T1 to T5.

    Called when a measuring test begins, in its conftest.py files and in all plugins.
    Import `pytest_ldos.api` within the function, so that runs which measure nothing remain fast::

        def pytest_ldos_metrics():
            from pytest_ldos import api

            return [api.OwnMetric(name="plan_points", title="points of the plan", unit="",
                                  better=api.Better.LOWER, measure=count_points)]

    A name that is taken, or a value that is not an `OwnMetric`, fails the test before it measures.
    """
    raise NotImplementedError
