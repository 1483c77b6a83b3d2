"""Comparison of one metric between two versions: ratio, interval and minimum detectable effect (MDE)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.adjust import remove_covariate
from pytest_ldos.base.stats.power import smallest_detectable_shift
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.aspects import Finding
from pytest_ldos.judge.gate.contrast import Contrast
from pytest_ldos.judge.gate.more_trials import MayBeWorse, MoreTrials, VariesTooMuch
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import Metric

SCREENED: Final = 0.15
"""Share of unchanged runs in which some metric may be suspicious: they are measured again, and nobody is convicted."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The gate's result for one metric.

    Attributes:
        location: verdict on the location alone.
        head_median, base_median: medians of the uncensored values, in the metric's unit.
        ratio, low, high: head over base, with the interval that the verdict is based on.
        p_value: one-sided, for a change for the worse.
        tail: probability of error of each end of the interval.
        floor: relative effect below which nothing is reported.
        mde: minimum detectable effect: the smallest relative effect that would have been
            reported with probability 0.8; infinite if the samples are too small.
        explained: share of variance explained by covariates and removed.
        unlike: covariates left in because they differ between the versions.
        more_trials_because: why more trials would help; ``None`` if the result is clear.
        base_needs: trials required of a stored baseline before more trials of head can help; 0 if it has enough.
        findings: on the other aspects that were tested.
        is_suspicious: True if it may be worse, by a test that may err in `SCREENED` of unchanged runs: worth another
            look, and no more.
    """

    metric: str
    title: str
    unit: str
    location: Verdict
    head_count: int
    base_count: int
    head_median: float
    base_median: float
    ratio: float
    low: float
    high: float
    p_value: float
    tail: float
    floor: float
    mde: float
    explained: float
    unlike: tuple[str, ...] = ()
    more_trials_because: MoreTrials | None = None
    base_needs: int = 0
    findings: tuple[Finding, ...] = ()
    is_suspicious: bool = False

    @property
    def verdict(self) -> Verdict:
        """Verdict on all aspects of the metric."""
        return Verdict.REGRESSED if any(each.is_regressed for each in self.findings) else self.location

    @property
    def is_from_zero(self) -> bool:
        """True if the base's median is 0: a change is then a difference, and has no ratio."""
        return self.base_median == 0

    @property
    def has_ratio(self) -> bool:
        """True if head is some positive multiple of base, also at a lower end of the interval."""
        return not self.is_from_zero and self.ratio > 0 and not -math.inf < self.low < 0


def judge(
    metric: Metric,
    series: tuple[Series, Series],
    contrasted: Contrast,
    *,
    tails: tuple[float, float],
    rejected: bool,
    may_improve: bool,
    noise: MetricNoise | None,
    policy: Policy,
) -> Comparison:
    """Returns the verdict on one metric.

    Args:
        series: head's and base's, for display.
        tails: probability of error granted to each end of this metric's interval, and to a suspicion.
        rejected: True if the multiple-testing procedure lets this metric count as a regression.
        may_improve: True if a change for the better may be reported as an improvement.
        noise: how much equal versions differ on this host.
    """
    (head, base), (tail, screened_at) = series, tails
    shift = contrasted.shift(tail=tail)
    floor = floor_of(metric, noise, policy)
    if contrasted.is_assumed and metric.name not in policy.floors:
        # Nobody knows how much runs differ: by up to about as much as their trials do, or as a calibration says.
        apart = contrasted.to_effect(contrasted.spread if noise is None else contrasted.extra.deviation)
        floor = min(math.inf if noise is None else noise.floor, max(metric.usual_floor, apart))
    floor_shift = contrasted.to_shift(floor)
    mde = math.inf
    if contrasted.is_observed:
        at = screened_at if policy.screens and not contrasted.is_interleaved else tail
        bound = contrasted.shift(tail=at)
        mde = contrasted.to_effect(smallest_detectable_shift(bound.estimate - bound.low, tail=at, floor=floor_shift))
    if rejected and shift.low > 0 and shift.estimate > floor_shift:
        verdict = Verdict.REGRESSED
    elif may_improve and shift.high < 0 and -shift.estimate > floor_shift:
        verdict = Verdict.IMPROVED
    else:
        verdict = Verdict.PASSED if mde <= metric.largest_tolerable_mde else Verdict.INCONCLUSIVE
    bounds = sorted((contrasted.ratio(shift.low), contrasted.ratio(shift.high)))
    return Comparison(
        metric=metric.name,
        title=metric.title,
        unit=metric.unit,
        location=verdict,
        head_count=len(head),
        base_count=len(base),
        head_median=_median(head),
        base_median=_median(base),
        ratio=contrasted.ratio(shift.estimate),
        low=bounds[0],
        high=bounds[1],
        p_value=contrasted.p_value,
        tail=tail,
        floor=floor,
        mde=mde,
        explained=contrasted.explained,
        unlike=contrasted.unlike,
        is_suspicious=shift.estimate > floor_shift and contrasted.shift(tail=screened_at).low > 0,
        more_trials_because=_why_more_trials(metric, contrasted, verdict, floor, policy),
    )


def _why_more_trials(
    metric: Metric, contrasted: Contrast, verdict: Verdict, floor: float, policy: Policy
) -> MoreTrials | None:
    """The effect or variation that cannot be ruled out yet; ``None`` if none is relevant."""
    if verdict is Verdict.REGRESSED:
        return None
    matters = max(policy.relevant_effect, 2 * floor)
    possible = contrasted.to_effect(contrasted.shift(tail=policy.doubt).high)
    if possible > matters:
        return MayBeWorse(metric.name, possible)
    return VariesTooMuch(metric.name) if verdict is Verdict.INCONCLUSIVE else None


def floor_of(metric: Metric, noise: MetricNoise | None, policy: Policy) -> float:
    """The relative effect below which nothing is reported: configured, learned by a calibration, or the usual one."""
    learned = metric.usual_floor if noise is None else min(noise.floor, metric.usual_floor)
    return policy.floors.get(metric.name, learned)


def coefficient_of_variation(series: Series) -> float:
    """Standard deviation over mean of the uncensored values; infinite for fewer than two."""
    values = np.array(series.finite)
    if len(values) < 2 or values.mean() == 0:
        return math.inf
    return float(values.std(ddof=1) / abs(values.mean()))


def adjusted_variation(metric: Metric, series: Series) -> float | None:
    """The coefficient of variation that remains after the metric's covariates are removed.

    ``None`` if there is nothing to remove: no covariates, none that vary, or too few values.
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


def _median(series: Series) -> float:
    return float(np.median(series.finite)) if series.finite else math.inf
