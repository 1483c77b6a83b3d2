"""A metric together with its measurement functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Metric, Window
from pytest_ldos.trace.ctf.stats import describe_losses


@dataclass(frozen=True, kw_only=True)
class MeasuredMetric(Metric):
    """See `Metric`.

    Attributes:
        window: span of time that the measurement rests on, or the reason why there is none.
        measure: measures the value in that window.
    """

    window: Callable[[TrialContext], Window | Missing | Invalid]
    measure: Callable[[TrialContext, Window], Measurement]

    def take(self, context: TrialContext) -> Measurement:
        """Measures a trial; the result is invalid if the trace lost events in the window."""
        window = self.window(context)
        if isinstance(window, Missing | Invalid):
            return Measurement(window)
        losses = describe_losses(context.model.stats.gaps_within(*window))
        if losses:
            return Measurement(Invalid(f"{losses} while it was measured"))
        return self.measure(context, window)
