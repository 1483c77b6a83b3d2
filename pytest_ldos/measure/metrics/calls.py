"""Latencies of a service's calls, of which a trial makes several.

Source: the stimulus ``service``, which times each call from its sending to its answer
(`robot.stack.ros2.service_caller`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pytest_ldos.base.series import Better, Missing
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.measured import MeasuredMetric
from pytest_ldos.measure.metrics.model import PRIMARY_SHARE, SECONDARY_SHARE, Measurement, Window
from pytest_ldos.measure.metrics.sources import STIMULUS

_MEAN: Final = "calls_mean_ms"
_P99: Final = "calls_p99_ms"
_TOLERABLE_OF_TAILS: Final = 2.0


def _number(name: str) -> Callable[[TrialContext, Window], Measurement]:
    """Measures one of the numbers that the stimulus reported, with the others as details."""

    def measure(context: TrialContext, _: Window) -> Measurement:
        found = context.outside.numbers.get(name)
        if found is None:
            return Measurement(Missing("no call of the trial was answered"))
        others = {other: value for other, value in context.outside.numbers.items() if other != name}
        return Measurement(found, others, STIMULUS)

    return measure


CALL: Final = MeasuredMetric(
    name="call",
    title="latency of a call",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    error_share=PRIMARY_SHARE,
    largest_tolerable_mde=0.3,
    score_weight=1.0,
    window=TrialContext.trial_window,
    measure=_number(_MEAN),
    definition="geometric mean over a trial's calls, request → response",
)

CALL_P99: Final = MeasuredMetric(
    name="call_p99",
    title="latency of a call, 99th percentile",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=_TOLERABLE_OF_TAILS,
    window=TrialContext.trial_window,
    measure=_number(_P99),
    definition="99th percentile over a trial's calls",
    refines="call",
)
