"""Compares all metrics of a scenario: ratio, interval and minimum detectable effect (MDE) of each.

Each aspect is one hypothesis; all share one probability of error.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.rank_tests import fewest_trials, lower_quantile, smallest_detectable_shift
from pytest_ldos.base.stats.several_tests import Fractions, HolmStep, step_down
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.baseline.known_runs import KnownRuns
from pytest_ldos.judge.gate.case import Case, fails_more_often, fractions_of, level
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.policy import Policy, have_little, metric_shares
from pytest_ldos.judge.gate.shape import LOCATION, Aspect, Finding, Shape, aspect_shares, shapes_of
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.unchanged import Between, known_of
from pytest_ldos.measure.metrics.model import SECONDARY_SHARE, Metric


@dataclass(frozen=True)
class MayFailMore:
    """A larger share of head's trials failed, which may be chance."""


@dataclass(frozen=True)
class MayBeWorse:
    """A relevant change for the worse cannot be ruled out.

    Attributes:
        by: the largest relative effect that cannot be ruled out; infinite if there is no bound.
    """

    metric: str
    by: float


@dataclass(frozen=True)
class VariesTooMuch:
    """The minimum detectable effect is larger than tolerable for this metric."""

    metric: str


@dataclass(frozen=True)
class MayHaveChanged:
    """The spread or the tail of a metric may have grown, or it may have risen within the run."""

    metric: str
    aspect: Aspect


MoreTrials = MayFailMore | MayBeWorse | VariesTooMuch | MayHaveChanged


SCREENED: Final = 0.15
"""Share of unchanged runs in which some metric may be suspicious; such runs are measured again before a verdict."""


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
        unlike: covariates that were not removed, because they differ between the versions.
        more_trials_because: why more trials would help; ``None`` if the result is clear.
        base_needs: trials required of a stored baseline before more trials of head can help; 0 if it has enough.
        findings: on the other aspects that were tested.
        is_suspicious: True if it may be worse, by a test that errs in up to `SCREENED` of unchanged runs; a reason to
            measure again only.
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
        """True if the base's median is 0; a change is then a difference without a ratio."""
        return self.base_median == 0

    @property
    def has_ratio(self) -> bool:
        """True if head is a positive multiple of base, also at the lower end of the interval."""
        return not self.is_from_zero and self.ratio > 0 and not -math.inf < self.low < 0


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


def _median(series: Series) -> float:
    return float(np.median(series.finite)) if series.finite else math.inf


MOST_LOPSIDED: Final = 2
"""Multiple of the trials required on both sides beyond which more on one side hardly compensate for few on the
other."""


@dataclass(frozen=True)
class Hypothesis:
    """The null hypotheses on one metric of one scenario: neither its location nor its shape became worse."""

    case: Case
    metric: Metric
    contrasted: Contrast
    noise: MetricNoise | None
    fractions: Fractions
    shapes: tuple[Shape, ...]

    @classmethod
    def of(cls, case: Case, metric: Metric, policy: Policy) -> Hypothesis:
        noise = policy.noise(case.head.scenario, metric.name)
        here = policy.known or KnownRuns()
        contrasted = contrast(
            metric,
            *case.series(metric.name),
            is_interleaved=case.is_interleaved,
            noise=noise,
            prior=_of_record(case, metric),
            here=here.between.get(metric.name, Between()),
            base_runs=here.of_baseline,
        )
        shapes = tuple(shapes_of(case, metric))
        return cls(case, metric, contrasted, noise, fractions_of(case.head, case.base), shapes)

    def is_rejected(self, aspect: str, alpha: float) -> bool:
        """True if the hypothesis of no change for the worse is rejected at level `alpha`, over all looks together."""
        tail = level(alpha, self.fractions)
        if aspect != LOCATION:
            return any(each.p_value <= tail for each in self.shapes if each.aspect.name == aspect)
        widened = self.contrasted.shift(tail=tail)
        if self.contrasted.extra.matters(widened):
            # A rank test's p-value has a minimum, which completely separated samples reach at any distance.
            return widened.low > 0
        return self.contrasted.p_value <= tail

    def judge(self, steps: Mapping[str, HolmStep], share: float, policy: Policy) -> Comparison:
        """The comparison.

        Args:
            steps: result of each aspect.
            share: of the metric in all probabilities of error.
        """
        step = steps[LOCATION]
        found = self._locate(step, SCREENED * share / policy.scenarios, policy)
        findings = tuple(self._find(shape, steps[shape.aspect.name], policy) for shape in self.shapes)
        found = replace(found, findings=findings, more_trials_because=_which_more_trials(found, findings))
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, more_trials_because=None) if needs else found

    def _locate(self, step: HolmStep, screened_at: float, policy: Policy) -> Comparison:
        """The comparison of the location.

        Args:
            step: result of the multiple-testing procedure.
            screened_at: probability of error granted to a suspicion.
        """
        metric, contrasted, tail = self.metric, self.contrasted, level(step.alpha, self.fractions)
        head, base = self.case.series(metric.name)
        shift = contrasted.shift(tail=tail)
        floor = self._floor(policy)
        floor_shift = contrasted.to_shift(floor)
        mde = math.inf
        if contrasted.is_observed:
            at = screened_at if policy.screens and not contrasted.is_interleaved else tail
            bound = contrasted.shift(tail=at)
            mde = contrasted.to_effect(
                smallest_detectable_shift(bound.estimate - bound.low, tail=at, floor=floor_shift)
            )
        may_improve = not fails_more_often(self.case.head, self.case.base)
        if step.rejected and shift.low > 0 and shift.estimate > floor_shift:
            verdict = Verdict.REGRESSED
        elif may_improve and shift.high < 0 and -shift.estimate > floor_shift:
            verdict = Verdict.IMPROVED
        else:
            verdict = Verdict.PASSED if mde <= metric.largest_tolerable_mde else Verdict.INCONCLUSIVE
        low, high = sorted((contrasted.ratio(shift.low), contrasted.ratio(shift.high)))
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
            low=low,
            high=high,
            p_value=contrasted.p_value,
            tail=tail,
            floor=floor,
            mde=mde,
            explained=contrasted.explained,
            unlike=contrasted.unlike,
            is_suspicious=shift.estimate > floor_shift and contrasted.shift(tail=screened_at).low > 0,
            more_trials_because=_why_more_trials(metric, contrasted, verdict, floor, policy),
        )

    def _floor(self, policy: Policy) -> float:
        """The relative effect below which nothing is reported."""
        metric, noise, contrasted = self.metric, self.noise, self.contrasted
        if not contrasted.is_assumed or metric.name in policy.floors:
            return floor_of(metric, noise, policy)
        # The variation between runs is unknown; assume that of their trials, or the floor of a calibration.
        assumed = contrasted.to_effect(contrasted.spread if noise is None else contrasted.extra.deviation)
        return min(math.inf if noise is None else noise.floor, max(metric.usual_floor, assumed))

    def _find(self, shape: Shape, step: HolmStep, policy: Policy) -> Finding:
        is_large = shape.effect > floor_of(self.metric, self.noise, policy)
        return Finding(shape, level(step.alpha, self.fractions), is_large, step.rejected and is_large)

    def _base_needs(self, found: Comparison, alpha: float) -> int:
        """Computes `Comparison.base_needs`; `alpha` bounds what any look may spend."""
        head = self.case.head
        if not is_underpowered(found) or self.case.is_interleaved:
            return 0
        needs = fewest_trials(tail=alpha)
        most = min(max(head.spec.max_trials, len(head.trials)), MOST_LOPSIDED * needs)
        is_hopeless = found.base_count < needs and not lower_quantile(most, found.base_count, alpha)
        return needs if is_hopeless else 0


def compare_metrics(case: Case, policy: Policy, *, but: Collection[str]) -> list[Comparison]:
    """Compares every comparable metric of a scenario; Holm's procedure covers all of them.

    Args:
        but: metrics to leave out.
    """
    found = [Hypothesis.of(case, metric, policy) for metric in _comparable_metrics(case) if metric.name not in but]
    # Interleaved versions are compared within pairs of blocks; metrics without a common pair are dropped.
    hypotheses = {each.metric.name: each for each in found if each.contrasted.head.size and each.contrasted.base.size}
    little = have_little(hypotheses, policy.required or ())
    metrics = metric_shares(
        replace(each.metric, error_share=SECONDARY_SHARE) if name in little else each.metric
        for name, each in hypotheses.items()
    )
    aspects = {name: aspect_shares(hypotheses[name].shapes) for name in metrics}
    steps = step_down(
        {(name, aspect): metrics[name] * share for name in aspects for aspect, share in aspects[name].items()},
        lambda test, alpha: hypotheses[test[0]].is_rejected(test[1], alpha),
        alpha=policy.family_alpha / policy.scenarios,
    )
    return [
        each.judge({aspect: steps[name, aspect] for aspect in aspects[name]}, metrics[name], policy)
        for name, each in hypotheses.items()
    ]


def _of_record(case: Case, metric: Metric) -> Between | None:
    """The record's variances for such trials, which are of arms that reach goals, on idle machines."""
    spec = case.head.spec
    others = (each.interference for each in (case.head, case.base))
    is_disturbed = bool(spec.loads) or any(each is not None and each.is_heavy for each in others)
    if is_disturbed or not spec.stack.moves_arm:
        return None
    return known_of(case.head.stack_kind, metric.name)


def _which_more_trials(found: Comparison, findings: Iterable[Finding]) -> MoreTrials | None:
    """The location's reason for more trials, or that of the first aspect that may have changed."""
    suspects = (MayHaveChanged(found.metric, each.shape.aspect) for each in findings if each.is_suspect)
    return found.more_trials_because or next(suspects, None)


def _comparable_metrics(case: Case) -> Iterator[Metric]:
    """Metrics measured in the same way on both sides, for at least one common goal."""
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if set(ours.strata) & set(theirs.strata):
            yield metric


def is_underpowered(comparison: Comparison) -> bool:
    """True if the samples are too small to detect any change."""
    return comparison.verdict is Verdict.INCONCLUSIVE and math.isinf(comparison.mde)
