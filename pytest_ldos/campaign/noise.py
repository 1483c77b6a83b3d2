"""Estimates a host's noise from starts of one version."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.base.stats.variance_components import Components, Sample, estimate_components
from pytest_ldos.campaign.starts import Start
from pytest_ldos.judge.baseline.calibration import Calibration, MetricNoise
from pytest_ldos.measure.metrics.model import USUAL_FLOOR, Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import to_series

LEAST_FLOOR: Final = 0.01
"""Lower bound of all floors: a change of less than one percent is never a regression."""

_LARGEST_SHIFT: Final = 10.0


def to_calibration(template: TrialSet, starts: Sequence[Start]) -> Calibration:
    """A calibration from some starts on this host.

    Args:
        template: trial set with the scenario, stack, host and metrics of the trials.
    """
    return Calibration(
        scenario=template.scenario,
        stack_kind=template.stack_kind,
        fingerprint=template.fingerprint,
        made_at=template.started_at,
        commit=template.commit,
        starts=len(starts),
        trials=sum(len(start.trials) for start in starts),
        runs=len({start.run for start in starts}),
        metrics=learn_noise(template, starts),
    )


def learn_noise(template: TrialSet, starts: Sequence[Start]) -> dict[str, MetricNoise]:
    """The noise of each metric that was measured in two or more starts; others are absent.

    Args:
        template: trial set with the scenario, stack, host and metrics of the trials.
    """
    found = {metric.name: estimate_metric(metric, template, starts) for metric in template.metrics}
    floors = {metric.name: metric.usual_floor for metric in template.metrics}
    return {name: to_noise(each, usual_floor=floors[name]) for name, each in found.items() if each is not None}


def estimate_metric(metric: Metric, template: TrialSet, starts: Sequence[Start]) -> Components | None:
    """Variance components of one metric."""
    adjusted = adjust(metric, template, starts)
    runs = dict.fromkeys(start.run for start in starts)
    return estimate_components(
        [[_finite(values) for start, values in zip(starts, adjusted, strict=True) if start.run == run] for run in runs]
    )


def adjust(metric: Metric, template: TrialSet, starts: Sequence[Start]) -> list[Sample]:
    """The values of each start, with goal levels and covariates removed as in the gate.

    Goal levels are removed first, from covariates as well as from values, because only a covariate's
    relation to differences within a goal is its influence. Values are logarithms or, if any is zero or
    less, shares of the median. Failed trials are infinite or absent, as in the gate.
    """
    series = [to_series(dataclasses.replace(template, trials=start.trials), metric) for start in starts]
    values = _joined(each.values for each in series)
    goals = np.array([goal for each in series for goal in each.strata], dtype=np.str_)
    on_logs = is_on_logs(values)
    adjusted = _without_levels(np.log(values) if on_logs else values / _scale(values), goals)
    nothing = np.empty(0)
    for name in covariates_of(metric):
        causes = _joined(each.covariates[name] for each in series)
        leveled = _without_levels(np.log(causes) if on_logs else causes, goals)
        (adjusted, _), _ = remove_covariate((adjusted, nothing), (leveled, nothing))
    ends = np.cumsum([len(each) for each in series])
    return np.split(adjusted, ends[:-1])


def _joined(parts: Iterable[Sequence[float]]) -> Sample:
    return np.array([value for part in parts for value in part], dtype=np.float64)


def _without_levels(values: Sample, goals: npt.NDArray[np.str_]) -> Sample:
    """Values minus the mean of their goal; values that are not finite stay as they are."""
    leveled = values.copy()
    for goal in np.unique(goals):
        members = goals == goal
        finite = _finite(values[members])
        leveled[members] -= float(finite.mean()) if finite.size else 0.0
    return leveled


def covariates_of(metric: Metric) -> tuple[str, ...]:
    """Covariates of a metric, with those that the gate removes only if the versions do not differ in them."""
    return (*metric.adjust_for, *metric.adjust_where_alike)


def is_on_logs(values: Sample) -> bool:
    """True if all finite values are positive, so that changes are ratios."""
    return bool(np.all(_finite(values) > 0))


def _scale(values: Sample) -> float:
    finite = _finite(values)
    return max(abs(float(np.median(finite))), 1e-9) if finite.size else 1.0


def to_noise(components: Components, *, usual_floor: float = USUAL_FLOOR) -> MetricNoise:
    """Converts the variance components of a metric to the noise that a calibration stores."""
    return MetricNoise(
        trial_sd=components.trial_sd,
        start_sd=components.start_sd,
        start_df=components.start_df,
        run_sd=components.run_sd,
        run_df=components.run_df,
        floor=choose_floor(run_sd=components.run_sd, largest_run_sd=components.largest_run_sd, usual_floor=usual_floor),
    )


def choose_floor(*, run_sd: float, largest_run_sd: float, usual_floor: float = USUAL_FLOOR) -> float:
    """The relative effect below which nothing is reported.

    It is the metric's usual floor, with two exceptions. It is lower if three standard deviations
    between unchanged runs, at their upper bound, are less: such a change is not noise. It is higher
    if a single standard deviation is more: runs of one version differ by as much.
    """
    safe, usual = (_apart(deviations, sd) for deviations, sd in ((3.0, largest_run_sd), (1.0, run_sd)))
    return max(LEAST_FLOOR, min(usual_floor, safe), usual)


def _apart(deviations: float, run_sd: float) -> float:
    """Relative difference of two equal runs that are this many standard deviations apart."""
    return math.expm1(min(deviations * math.sqrt(2) * run_sd, _LARGEST_SHIFT))


def _finite(values: Sample) -> Sample:
    return values[np.isfinite(values)]
