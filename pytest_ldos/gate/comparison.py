"""One metric of two versions: ratio, interval, and what could have been seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_ldos.gate.policy import UNCALIBRATED_FLOOR, Policy
from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.metrics.model import Metric
from pytest_ldos.series import Better, Series
from pytest_ldos.stats.adjust import remove_covariate, remove_strata
from pytest_ldos.stats.power import smallest_detectable_shift
from pytest_ldos.stats.rank_sum import Sample, estimate_shift, rank_sum_p


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the gate says of one metric.

    Attributes:
        head_median, base_median: of the uncensored values, in the metric's unit.
        head_cv, base_cv: coefficient of variation of the uncensored values.
        ratio, low, high: head over base, with the interval it was decided by.
        p_value: one-sided, of a change for the worse.
        tail: probability of error of each end of the interval.
        floor: relative effect below which nothing is reported.
        detectable: smallest relative effect that would have been reported with
            probability 0.8; infinite where the samples are too small.
        explained: share of variance that covariates took out.
    """

    metric: str
    title: str
    unit: str
    verdict: Verdict
    head_count: int
    base_count: int
    head_median: float
    base_median: float
    head_cv: float
    base_cv: float
    ratio: float
    low: float
    high: float
    p_value: float
    tail: float
    floor: float
    detectable: float
    explained: float


@dataclass(frozen=True)
class Contrast:
    """Two samples made comparable: adjusted, on a scale where a shift is an effect.

    Attributes:
        worse: turned so that larger is worse, whatever the metric's direction.
        scale: what a shift of one is worth as a relative effect; 0 on logarithms.
    """

    head: Sample
    base: Sample
    sign: float
    scale: float
    explained: float

    def ratio(self, shift: float) -> float:
        """Head over base for a shift on this scale."""
        if self.scale == 0.0:
            return math.exp(self.sign * shift) if math.isfinite(shift) else (math.inf if self.sign * shift > 0 else 0.0)
        return 1 + self.sign * shift * self.scale

    def shift(self, effect: float) -> float:
        """The shift that a relative effect is."""
        return math.log1p(effect) if self.scale == 0.0 else effect / self.scale

    @property
    def spread(self) -> float:
        """Standard deviation between single trials of one version, as a shift."""
        samples = [values[np.isfinite(values)] for values in (self.head, self.base)]
        degrees = sum(len(values) for values in samples) - len(samples)
        if degrees < 1 or any(len(values) == 0 for values in samples):
            return 0.0
        return math.sqrt(sum(float(np.sum((values - values.mean()) ** 2)) for values in samples) / degrees)

    @property
    def p_value(self) -> float:
        return rank_sum_p(self.head, self.base)


def contrast(metric: Metric, head: Series, base: Series) -> Contrast:
    """Adjusts two series for goals and covariates.

    Effects are ratios, so logarithms are compared; a series with values of zero or less
    (which latencies beyond a plan may have) is compared by differences, relative to the
    base's median.
    """
    samples = _columns(head.values), _columns(base.values)
    finite = np.concatenate([values[np.isfinite(values)] for values in samples])
    on_logs = bool(np.all(finite > 0))
    scale = 0.0 if on_logs else 1 / max(abs(_median(samples[1])), 1e-9)
    values = (_log(samples[0]), _log(samples[1])) if on_logs else samples
    explained = 0.0
    for name in metric.adjust_for:
        causes = _columns(head.covariates[name]), _columns(base.covariates[name])
        if on_logs:
            causes = _log(causes[0]), _log(causes[1])
        values, share = remove_covariate(values, causes)
        explained += share
    strata = np.array(head.strata, dtype=np.str_), np.array(base.strata, dtype=np.str_)
    adjusted = remove_strata(values, strata)
    sign = 1.0 if metric.better is Better.LOWER else -1.0
    return Contrast(sign * adjusted[0], sign * adjusted[1], sign, scale, explained)


def judge(
    metric: Metric, series: tuple[Series, Series], contrasted: Contrast, *, tail: float, rejected: bool, policy: Policy
) -> Comparison:
    """The verdict on one metric.

    Args:
        series: head's and base's, for what is displayed.
        tail: probability of error that this metric is held to.
        rejected: whether the family's procedure lets this metric call a regression.
    """
    head, base = series
    shift = estimate_shift(contrasted.head, contrasted.base, tail=tail)
    floor_shift = _floor_shift(metric, contrasted, policy)
    detectable_shift = smallest_detectable_shift(shift.estimate - shift.low, tail=tail, floor=floor_shift)
    detectable = _effect(contrasted, detectable_shift)
    if rejected and shift.low > 0 and shift.estimate > floor_shift:
        verdict = Verdict.REGRESSED
    elif shift.high < 0 and -shift.estimate > floor_shift:
        verdict = Verdict.IMPROVED
    else:
        verdict = Verdict.PASSED if detectable <= metric.largest_tolerable_mde else Verdict.INCONCLUSIVE
    bounds = sorted((contrasted.ratio(shift.low), contrasted.ratio(shift.high)))
    return Comparison(
        metric=metric.name,
        title=metric.title,
        unit=metric.unit,
        verdict=verdict,
        head_count=len(head),
        base_count=len(base),
        head_median=_median(_columns(head.finite)),
        base_median=_median(_columns(base.finite)),
        head_cv=coefficient_of_variation(head),
        base_cv=coefficient_of_variation(base),
        ratio=contrasted.ratio(shift.estimate),
        low=bounds[0],
        high=bounds[1],
        p_value=contrasted.p_value,
        tail=tail,
        floor=_effect(contrasted, floor_shift),
        detectable=detectable,
        explained=contrasted.explained,
    )


def _floor_shift(metric: Metric, contrasted: Contrast, policy: Policy) -> float:
    """Below it nothing is reported: as configured, or else the spread between single trials.

    Machines that make trials differ make runs differ too: on the same version, whole runs were
    seen apart by up to about as much as their trials are.
    """
    configured = policy.floors.get(metric.name)
    if configured is not None:
        return contrasted.shift(configured)
    return max(contrasted.shift(UNCALIBRATED_FLOOR), contrasted.spread)


def coefficient_of_variation(series: Series) -> float:
    """Standard deviation over mean of the uncensored values; infinite for fewer than two."""
    values = _columns(series.finite)
    if len(values) < 2 or values.mean() == 0:
        return math.inf
    return float(values.std(ddof=1) / abs(values.mean()))


def adjusted_variation(metric: Metric, series: Series) -> float | None:
    """The coefficient of variation that is left when the metric's covariates are taken out.

    ``None`` where there is nothing to take out: no covariates, none that vary, or too few values.
    """
    values = _columns(series.values)
    if not metric.adjust_for or np.count_nonzero(np.isfinite(values)) < 4 or np.any(values <= 0):
        return None
    nothing = _columns(())
    logs, explained = _log(values), 0.0
    for name in metric.adjust_for:
        causes = _log(_columns(series.covariates[name]))
        (logs, _), share = remove_covariate((logs, nothing), (causes, nothing))
        explained += share
    if explained == 0.0:
        return None
    return float(np.std(logs[np.isfinite(logs)], ddof=1 + len(metric.adjust_for)))


def _effect(contrasted: Contrast, shift: float) -> float:
    if not math.isfinite(shift):
        return math.inf
    return math.expm1(shift) if contrasted.scale == 0.0 else shift * contrasted.scale


def _columns(values: tuple[float, ...]) -> Sample:
    return np.array(values, dtype=np.float64)


def _log(values: Sample) -> npt.NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _median(values: Sample) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else math.inf
