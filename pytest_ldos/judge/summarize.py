"""Computes the summaries of a run for its report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.base.stats.counts import share_interval
from pytest_ldos.base.stats.intervals import median_interval
from pytest_ldos.base.stats.rank_tests import median
from pytest_ldos.judge.gate.comparison import Comparison
from pytest_ldos.judge.gate.contrast import contrast
from pytest_ldos.judge.gate.decide import kept_in_trials
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import Deadline, Located, Score, Summary
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet, to_series


def summarize(metrics: Iterable[Metric], series: Mapping[str, Series]) -> dict[str, Summary]:
    """The summary of each metric that has values, by name."""
    found = ((metric, series.get(metric.name)) for metric in metrics)
    return {metric.name: _summary(metric, each) for metric, each in found if each is not None and each.values}


def _summary(metric: Metric, series: Series) -> Summary:
    finite = series.finite
    return Summary(
        median=median(finite) if finite else None,
        cv=coefficient_of_variation(series),
        adjusted_cv=adjusted_variation(metric, series),
        censored=len(series) - len(finite),
    )


def median_ratio(metric: Metric, found: Comparison, head: Summary | None, base: Summary | None) -> float | None:
    """Ratio of the medians, the worse over the better, if the metric passed although it exceeds the MDE.

    Medians are of all values as measured; the verdict compares them by goal and start, without covariates.
    """
    medians = (head and head.median), (base and base.median)
    worse, other = medians if metric.better is Better.LOWER else medians[::-1]
    if found.verdict is not Verdict.PASSED or not worse or not other or min(worse, other) <= 0:
        return None
    return worse / other if worse / other > 1 + found.mde else None


def coefficient_of_variation(series: Series) -> float:
    """Standard deviation over mean of the uncensored values; infinite for fewer than two."""
    values = np.array(series.finite)
    if len(values) < 2 or values.mean() == 0:
        return math.inf
    return float(values.std(ddof=1) / abs(values.mean()))


def adjusted_variation(metric: Metric, series: Series) -> float | None:
    """The coefficient of variation that remains after the metric's covariates are removed.

    ``None`` if nothing can be removed: no covariates, none that vary, or too few values.
    """
    values = np.array(series.values, dtype=np.float64)
    names = (*metric.adjust_for, *metric.adjust_where_alike)
    if not names or np.count_nonzero(np.isfinite(values)) < 4 or np.any(values <= 0):
        return None
    nothing = np.empty(0)
    logs, explained = np.log(values), 0.0
    for name in names:
        with np.errstate(divide="ignore"):
            causes = np.log(np.array(series.covariates[name], dtype=np.float64))
        (logs, _), share = remove_covariate((logs, nothing), (causes, nothing))
        explained += share
    if explained == 0.0:
        return None
    return float(np.std(logs[np.isfinite(logs)], ddof=1 + len(names)))


def summarize_deadlines(trials: TrialSet) -> tuple[Deadline, ...]:
    """The outcome of each deadline of the scenario."""
    kept = [(each, kept_in_trials(trials, each)) for each in trials.spec.deadlines]
    return tuple(
        Deadline(
            path=deadline.path,
            ms=deadline.ms,
            share=deadline.share,
            passages=sum(each.passages for each in found),
            in_time=sum(each.in_time for each in found),
            trials=sum(each.share >= deadline.share for each in found),
        )
        for deadline, found in kept
    )


def score_of(metrics: Iterable[Metric], comparisons: Iterable[Comparison]) -> Score:
    """The score of the metrics that have a weight."""
    ratios = {each.metric: each.ratio for each in comparisons if each.has_ratio and each.ratio < math.inf}
    scored = {metric.name: metric.score_weight for metric in metrics if metric.score_weight > 0}
    weights = {name: weight for name, weight in scored.items() if name in ratios}
    without = tuple(name for name in scored if name not in weights)
    if not weights:
        return Score(value=None, without=without)
    total = sum(weight * math.log(ratios[name]) for name, weight in weights.items())
    return Score(value=math.exp(total / sum(weights.values())), without=without)


CONFIDENCE: Final = 0.95
"""Confidence of intervals that describe a run; a verdict has its own."""


def locate(metric: Metric, trials: TrialSet, reference: TrialSet | None) -> Located:
    """The location of a metric, and its ratio to that of a reference."""
    series = to_series(trials, metric)
    if not series.values:
        return Located(median=None, low=None, high=None)
    low, high = median_interval(series.values, confidence=CONFIDENCE)
    ratios = (None, None, None) if reference is None else _ratio(metric, series, to_series(reference, metric))
    return Located(
        median=_finite(median(series.values)),
        low=_finite(low),
        high=_finite(high),
        ratio=ratios[0],
        ratio_low=ratios[1],
        ratio_high=ratios[2],
        values=len(series.values),
    )


def success_interval(failures: Sequence[bool]) -> tuple[float, float]:
    """Interval of the share of trials that succeeded."""
    return share_interval(failures.count(False), len(failures), confidence=CONFIDENCE)


def _ratio(metric: Metric, head: Series, base: Series) -> tuple[float | None, float | None, float | None]:
    """Head over base without removing covariates, because a load affects them as well."""
    plain = replace(metric, adjust_for=(), adjust_where_alike=())
    if not (base.values and any(map(math.isfinite, base.values)) and any(map(math.isfinite, head.values))):
        return None, None, None
    contrasted = contrast(plain, head, base, is_interleaved=False)
    if not (contrasted.head.size and contrasted.base.size):
        return None, None, None
    shift = contrasted.shift(tail=(1 - CONFIDENCE) / 2)
    low, high = (contrasted.ratio(each) if math.isfinite(each) else math.nan for each in (shift.low, shift.high))
    if contrasted.sign < 0:
        low, high = high, low
    return _finite(contrasted.ratio(shift.estimate)), _finite(low), _finite(high)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
