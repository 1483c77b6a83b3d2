"""All metrics of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ldos.ctf.stats import describe_losses
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.metrics.agreement import find_disagreement
from pytest_ldos.metrics.catalogue import METRICS
from pytest_ldos.metrics.model import Context, Measurement, Metric
from pytest_ldos.metrics.reception import extract_reception
from pytest_ldos.series import Invalid, Missing


@dataclass(frozen=True)
class TrialMetrics:
    """What was measured of one trial.

    Attributes:
        measurements: by metric name.
        reception_ns: how long the feedback that began a phase was on its way, by name.
        cpu_work_ns: see `TrialSpan`.
    """

    measurements: Mapping[str, Measurement]
    reception_ns: Mapping[str, int]
    cpu_work_ns: int | None = None


def extract_trial(
    goal_id: str, model: ExecutionModel, *, stamps_ns: Mapping[str, int], nominal_period_ns: int
) -> TrialMetrics:
    """Measures one trial.

    Args:
        stamps_ns: the goal client's own, which the recording is checked against.
        nominal_period_ns: of the control loop.
    """
    trial = model.trials.get(goal_id)
    if trial is None:
        return _distrust("the trial's markers are not in the trace", model)
    disagreement = find_disagreement(trial, stamps_ns)
    if disagreement is not None:
        return _distrust(disagreement, model)
    context = Context(trial=trial, model=model, nominal_period_ns=nominal_period_ns)
    return TrialMetrics(
        measurements={name: _measure(metric, context) for name, metric in METRICS.items()},
        reception_ns=extract_reception(trial, model),
        cpu_work_ns=trial.cpu_work_ns,
    )


def extract_metrics(model: ExecutionModel, *, nominal_period_ns: int) -> dict[str, TrialMetrics]:
    """Measures every trial of a trace by its markers alone, by goal id."""
    return {
        goal_id: extract_trial(goal_id, model, stamps_ns={}, nominal_period_ns=nominal_period_ns)
        for goal_id in model.trials
    }


def _distrust(reason: str, model: ExecutionModel) -> TrialMetrics:
    """All metrics invalid, with what the trace lost if that may be why."""
    losses = describe_losses(model.stats.gaps)
    invalid = Invalid(f"{reason} ({losses} in this trace)" if losses else reason)
    return TrialMetrics(dict.fromkeys(METRICS, Measurement(invalid)), {})


def _measure(metric: Metric, context: Context) -> Measurement:
    window = metric.window(context)
    if isinstance(window, Missing):
        return Measurement(window)
    losses = describe_losses(context.model.stats.gaps_within(*window))
    if losses:
        return Measurement(Invalid(f"{losses} while it was measured"))
    return metric.measure(context, window)
