"""Converts the trials of a set to one series per metric.

Out of planning latencies comes the time for which programs outside the measurement had the planner's CPU. It is
subtracted as it was measured in each trial, so no more is taken out than was measured. It stays in where it is not
known of every trial of both versions: otherwise one would be compared without what the other still contains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pytest_ldos.base.series import CENSORED, Invalid, Missing, Series
from pytest_ldos.measure.metrics.latency import T1, T4
from pytest_ldos.measure.metrics.model import COVARIATES, PLANS_WAITED_FOR_STRANGERS, WAITED_FOR_STRANGERS, Metric
from pytest_ldos.measure.metrics.plans import T1_MEAN
from pytest_ldos.measure.metrics.sources import Source
from pytest_ldos.measure.trial.record import Trial, TrialSet

CONTAINED_IN: Final[Mapping[str, str]] = {
    T1.name: WAITED_FOR_STRANGERS,
    T1_MEAN.name: PLANS_WAITED_FOR_STRANGERS,
    T4.name: WAITED_FOR_STRANGERS,
}
"""Covariates that are a part of a metric's values, by metric."""


def to_series(trials: TrialSet, metric: Metric) -> Series:
    """Series of a metric over the trials.

    A failed trial counts as infinitely slow in latencies that a failure cuts short, so
    that failing fast never reads as getting faster; in other metrics it keeps its value. A latency
    that no successful trial has is not measured in this set, and its failed trials do not count either.
    Invalid values are left out; the caller must have counted them before (`invalid_trials`).
    """
    counted = trials.trials if not metric.censored_by_failure or _is_measured(trials, metric) else ()
    chosen = [(trial, value) for trial in counted if (value := _value(trial, metric)) is not None]
    causes = [trial.covariates_ms for trial, _ in chosen]
    return Series(
        name=metric.name,
        unit=metric.unit,
        better=metric.better,
        values=tuple(value for _, value in chosen),
        strata=tuple(trial.goal for trial, _ in chosen),
        blocks=tuple(trial.block for trial, _ in chosen),
        trials=tuple(trial.index for trial, _ in chosen),
        covariates={name: tuple(each.get(name, math.nan) for each in causes) for name in COVARIATES},
        questions=tuple(trial.question for trial, _ in chosen),
    )


def all_series(trials: TrialSet) -> dict[str, Series]:
    """Series of every metric, by name."""
    return {metric.name: to_series(trials, metric) for metric in trials.metrics}


def metrics_of(head: TrialSet, base: TrialSet) -> dict[str, Metric]:
    """Metrics of both sets, by name; where both describe one, the head's description is used."""
    return {metric.name: metric for metric in (*head.metrics, *base.metrics, *head.metrics)}


def sources_of(trials: TrialSet, metric: Metric) -> frozenset[Source]:
    """Sources of a metric's values; more than one if trials differ."""
    measured = (trial.measurements.get(metric.name) for trial in trials.trials)
    return frozenset(each.source for each in measured if each is not None and each.source is not None)


def invalid_trials(trials: TrialSet, metric: Metric) -> dict[int, str]:
    """Index and reason of each trial whose value of a metric cannot be trusted."""
    reasons = {}
    for trial in trials.trials:
        measurement = trial.measurements.get(metric.name)
        if measurement is not None and isinstance(measurement.value, Invalid):
            reasons[trial.index] = measurement.value.reason
    return reasons


def missing_reasons(trials: TrialSet, metric: Metric) -> dict[int, str]:
    """Index and reason of each successful trial that has no value of a metric."""
    reasons = {}
    for trial in trials.trials:
        measurement = trial.measurements.get(metric.name)
        if trial.succeeded and measurement is not None and isinstance(measurement.value, Missing):
            reasons[trial.index] = measurement.value.reason
    return reasons


def _is_measured(trials: TrialSet, metric: Metric) -> bool:
    values = [_value(trial, metric) for trial in trials.trials if trial.succeeded]
    return not values or any(value is not None for value in values)


def _value(trial: Trial, metric: Metric) -> float | None:
    if not trial.succeeded and metric.censored_by_failure:
        return CENSORED
    measurement = trial.measurements.get(metric.name)
    return None if measurement is None else measurement.number


def without_strangers(head: Series, base: Series) -> tuple[Series, Series]:
    """Series of one metric, less what strangers took if that is known of both."""
    part = CONTAINED_IN.get(head.name)
    if part is None or not all(_is_known(part, each) for each in (head, base)):
        return head, base
    return _less(part, head), _less(part, base)


def _is_known(part: str, series: Series) -> bool:
    taken = series.covariates.get(part, (math.nan,) * len(series))
    return all(0 <= some < value for value, some in zip(series.values, taken, strict=True) if math.isfinite(value))


def _less(part: str, series: Series) -> Series:
    pairs = zip(series.values, series.covariates[part], strict=True)
    return replace(series, values=tuple(value - some if math.isfinite(value) else value for value, some in pairs))
