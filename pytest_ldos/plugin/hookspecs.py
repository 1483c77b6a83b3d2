"""Hooks that this plugin calls: a conftest.py or another plugin may implement them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ldos.api import OwnMetric


def pytest_ldos_metrics() -> Iterable[OwnMetric]:
    """Metrics of your own, which are measured, recorded, judged and reported for each trial like T1 to T5.

    Called when a test that measures begins, in the conftest.py files that belong to it and in all plugins.
    Import `pytest_ldos.api` within the function, so that runs which measure nothing stay as fast as they were::

        def pytest_ldos_metrics():
            from pytest_ldos import api

            return [api.OwnMetric(name="plan_points", title="points of the plan", unit="",
                                  better=api.Better.LOWER, measure=count_points)]

    A name that is taken, or a value that is no `OwnMetric`, fails the test before anything is measured.
    """
    raise NotImplementedError
