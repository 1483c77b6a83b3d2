"""A metric together with its measurement functions, and with what documents and tables need of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Metric, Window
from pytest_ldos.trace.ctf.stats import describe_losses


@dataclass(frozen=True, kw_only=True)
class MeasuredMetric(Metric):
    """See `Metric`.

    Attributes:
        window: span of time that the measurement rests on, or the reason why there is none.
        measure: measures the value in that window.
        definition: from where to where it is measured, or the statistic, as Markdown.
        phases: first and last phase, if the goal client's stamps of the two check it.
        path: causal path whose latency it is; empty if it is none.
        refines: name of the metric that it is a part or the tail of; brief tables leave it out.
        stage: stage of a motion that it measures, for the search for what breaks first; empty for none.
        in_sweeps: True if tables of a sweep show it, and lines of progress.
    """

    window: Callable[[TrialContext], Window | Missing | Invalid]
    measure: Callable[[TrialContext, Window], Measurement]
    definition: str = ""
    phases: tuple[Phase, Phase] | None = None
    path: str = ""
    refines: str = ""
    stage: str = ""
    in_sweeps: bool = True

    def latency_ns(self, entered: Mapping[str, int] | Mapping[Phase, int]) -> int | None:
        """Returns the time between its phases, given when each was entered; ``None`` without two such phases."""
        if self.phases is None or not entered.keys() >= set(self.phases):
            return None
        first, last = self.phases
        return entered[last] - entered[first]

    def take(self, context: TrialContext) -> Measurement:
        """Measures a trial; the result is invalid if the trace lost events in the window."""
        window = self.window(context)
        if isinstance(window, Missing | Invalid):
            return Measurement(window)
        losses = describe_losses(context.model.stats.gaps_within(*window))
        if losses:
            return Measurement(Invalid(f"{losses} while it was measured"))
        return self.measure(context, window)
