"""Compares all metrics of a scenario: location, spread, upper tail and rises within a run.

All hypotheses share one probability of error; a metric's part is divided by weight among its location and the other
tested aspects. These are tested of interleaved versions with enough starts and trials only, because the change of equal
versions' spread over time is unknown; a start is one observation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median
from typing import Final

import numpy as np

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats import adjust
from pytest_ldos.base.stats.counts import median_interval
from pytest_ldos.base.stats.rank_tests import fewest_trials, find_late_rise, lower_quantile, smallest_detectable_shift
from pytest_ldos.base.stats.several_tests import Fractions, HolmStep, step_down
from pytest_ldos.base.stats.starts import Starts, permutation_p, sum_by_start
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.judge.gate.case import Case, Policy, fails_more_often, fractions_of, have_little, level, metric_shares
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.verdict import (
    Comparison,
    Finding,
    LateRise,
    MayBeWorse,
    MayHaveChanged,
    MoreTrials,
    Shape,
    Spread,
    Tail,
    VariesTooMuch,
    Verdict,
    is_underpowered,
)
from pytest_ldos.judge.summary import CONFIDENCE, Located
from pytest_ldos.judge.unchanged import Between, KnownRuns, known_of
from pytest_ldos.measure.metrics.model import SECONDARY_SHARE, Metric
from pytest_ldos.measure.trial.record import TrialSet, to_series
from pytest_ldos.scenario.words import StimulusKind

LOCATION: Final = "location"


def aspect_shares(shapes: Iterable[Shape]) -> dict[str, float]:
    """Shares of a metric's location and of its other tested aspects, 1 in total."""
    weights = {LOCATION: 1.0, **{each.aspect.name: each.aspect.weight for each in shapes}}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


FEWEST_STARTS: Final = 9
"""Starts of each version with which a permutation test of starts can be significant: one of 48 620 permutations."""

FEWEST_TRIALS: Final = 20
"""Fewest trials of each version for spread and for rises within a run."""

FEWEST_OF_TAIL: Final = 5 * adjust.IN_TAIL
"""Fewest trials of each version for the upper tail, a tenth of both; with fewer, the spread shows more."""

_FAR: Final = 0.95
"""Quantile of the distances above the median that must rise by more than the floor for a spread to be reported."""


def shapes_of(case: Case, metric: Metric) -> Iterator[Shape]:
    if case.is_interleaved and all(
        _are_enough(case, FEWEST_TRIALS, len(series), len(set(series.blocks))) for series in case.series(metric.name)
    ):
        values = _Values.of(case, metric)
        yield from (shape for test in _TESTS if (shape := test(values)) is not None)


def _are_enough(case: Case, fewest: int, trials: int, starts: int) -> bool:
    """True if one version will have so many trials, from enough starts, at the last look."""
    share = fractions_of(case.head, case.base)[-1]
    return starts >= FEWEST_STARTS * share and trials >= fewest * share


@dataclass(frozen=True)
class _Values:
    """Finite values of a metric and their starts, without goal levels and covariates; larger is worse."""

    case: Case
    metric: Metric
    contrasted: Contrast
    samples: adjust.Samples
    starts: tuple[Starts, Starts]

    @classmethod
    def of(cls, case: Case, metric: Metric) -> _Values:
        # Levels of pairs are kept: removing them would mix each version's spread into the other's.
        found = contrast(metric, *case.series(metric.name), is_interleaved=False)
        known = np.isfinite(found.head), np.isfinite(found.base)
        starts = found.starts[0][known[0]], found.starts[1][known[1]]
        return cls(case, metric, found, (found.head[known[0]], found.base[known[1]]), starts)

    def reach(self, trials: int) -> bool:
        """True if each version will have so many trials, from enough starts, at the last look."""
        sizes = zip(self.samples, self.starts, strict=True)
        return all(_are_enough(self.case, trials, own.size, np.unique(starts).size) for own, starts in sizes)

    @cached_property
    def centered(self) -> adjust.Samples:
        return adjust.around_medians(self.samples)

    def p_value(self, score: Callable[[adjust.Samples], adjust.Samples]) -> float:
        """The larger p-value of both centerings: the common one is exact, the separate ones ignore the location."""
        centers = self.centered, adjust.around_common_median(self.samples)
        return max(permutation_p(*sum_by_start(score(each), self.starts)) for each in centers)

    @property
    def rise_of_far(self) -> float:
        """Relative rise of the distance above the median exceeded by one trial in twenty."""
        head, base = (float(np.quantile(each, _FAR)) for each in self.centered)
        return self.contrasted.to_effect(max(0.0, head - base))

    def differences(self) -> tuple[adjust.Numbers, Starts]:
        """Mean of head minus mean of base in each pair of starts, in order of time, and the pairs."""
        pairs = self.starts[0] // 2, self.starts[1] // 2
        common = np.intersect1d(*pairs)
        head, base = (
            np.array([values[of == pair].mean() for pair in common])
            for values, of in zip(self.samples, pairs, strict=True)
        )
        return head - base, common


def _test_spread(values: _Values) -> Shape | None:
    if not values.reach(FEWEST_TRIALS):
        return None
    head, base = (values.contrasted.to_effect(float(np.abs(each).mean())) for each in values.centered)
    return Shape(Spread(base, head), values.p_value(adjust.klotz_scores), values.rise_of_far)


def _test_tail(values: _Values) -> Shape | None:
    if not values.reach(FEWEST_OF_TAIL):
        return None
    head, base = (float(each.mean()) for each in adjust.tail_scores(values.centered))
    beyond = values.contrasted.to_effect(adjust.tail_threshold(values.centered))
    return Shape(Tail(base, head, beyond), values.p_value(adjust.tail_scores), values.rise_of_far)


def _test_late_rise(values: _Values) -> Shape | None:
    differences, pairs = values.differences()
    if not (differences.size and values.reach(FEWEST_TRIALS)):
        return None
    rise = find_late_rise(differences)
    series, _ = values.case.series(values.metric.name)
    numbers = zip(series.trials, series.blocks, strict=True)
    first = 1 + min(trial for trial, start in numbers if start // 2 == pairs[rise.place])
    aspect = LateRise(first, values.contrasted.ratio(rise.size))
    return Shape(aspect, rise.p_value, values.contrasted.to_effect(rise.size))


_TESTS: Final[tuple[Callable[[_Values], Shape | None], ...]] = (_test_spread, _test_tail, _test_late_rise)


SCREENED: Final = 0.15
"""Share of unchanged runs in which some metric may be suspicious; such runs are measured again before a verdict."""


def _why_more_trials(
    metric: Metric, contrasted: Contrast, verdict: Verdict, floor: float, policy: Policy
) -> MoreTrials | None:
    """The effect or variation that cannot be ruled out yet; ``None`` if none is relevant."""
    if verdict is Verdict.REGRESSED:
        return None
    possible = contrasted.to_effect(contrasted.shift(tail=policy.doubt).high)
    if possible > max(policy.relevant_effect, 2 * floor):
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
        contrasted = replace(contrasted, is_mean=case.head.spec.stack.stimulus is StimulusKind.PLAN)
        return cls(case, metric, contrasted, noise, fractions_of(case.head, case.base), tuple(shapes_of(case, metric)))

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
        """The comparison on all aspects; `share` is the metric's of all probabilities of error."""
        step = steps[LOCATION]
        found = self._locate(step, SCREENED * share / policy.scenarios, policy)
        findings = []
        for shape in self.shapes:
            of_shape = steps[shape.aspect.name]
            is_large = shape.effect > floor_of(self.metric, self.noise, policy)
            tail = level(of_shape.alpha, self.fractions)
            findings.append(Finding(shape, tail, is_large, of_shape.rejected and is_large))
        suspects = (MayHaveChanged(found.metric, each.shape.aspect) for each in findings if each.is_suspect)
        more = found.more_trials_because or next(suspects, None)
        found = replace(found, findings=tuple(findings), more_trials_because=more)
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, more_trials_because=None) if needs else found

    def _locate(self, step: HolmStep, screened_at: float, policy: Policy) -> Comparison:
        """The comparison of the location; `screened_at` is the probability of error of a suspicion."""
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
        metric, noise, contrasted = self.metric, self.noise, self.contrasted
        if not contrasted.is_assumed or metric.name in policy.floors:
            return floor_of(metric, noise, policy)
        # The variation between runs is unknown; assume that of their trials, or the floor of a calibration.
        assumed = contrasted.to_effect(contrasted.spread if noise is None else contrasted.extra.deviation)
        return min(math.inf if noise is None else noise.floor, max(metric.usual_floor, assumed))

    def _base_needs(self, found: Comparison, alpha: float) -> int:
        head = self.case.head
        if not is_underpowered(found) or self.case.is_interleaved:
            return 0
        needs = fewest_trials(tail=alpha)
        most = min(max(head.spec.max_trials, len(head.trials)), MOST_LOPSIDED * needs)
        is_hopeless = found.base_count < needs and not lower_quantile(most, found.base_count, alpha)
        return needs if is_hopeless else 0


def compare_metrics(case: Case, policy: Policy, *, but: Collection[str]) -> list[Comparison]:
    """Compares every metric with a common goal of both versions, except `but`; Holm's procedure covers all of them."""
    pairs = ((metric, case.series(name)) for name, metric in case.metrics.items() if name not in but)
    common = (metric for metric, (ours, theirs) in pairs if {*ours.strata} & {*theirs.strata})
    found = [Hypothesis.of(case, metric, policy) for metric in common]
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
    if spec.loads or case.head.is_disturbed or case.base.is_disturbed or not spec.stack.moves_arm:
        return None
    return known_of(case.head.stack_kind, metric.name)


def locate(metric: Metric, trials: TrialSet, reference: TrialSet | None) -> Located:
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
