"""Compares all metrics of a run's scenarios: one hypothesis an aspect, and one probability of error for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_ldos.base.stats.holm import HolmStep, step_down
from pytest_ldos.base.stats.rank_sum import fewest_trials, lower_quantile
from pytest_ldos.base.stats.spending import Fractions
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.aspects import Finding, Shape
from pytest_ldos.judge.gate.budget import LOCATION, aspect_shares, metric_shares
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import Comparison, judge, least_floor
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.levels import fractions_of, level
from pytest_ldos.judge.gate.more_trials import MayHaveChanged, MoreTrials
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.shape import shapes_of
from pytest_ldos.judge.gate.success import fails_more_often
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import Metric

MOST_LOPSIDED: Final = 2
"""Multiple of the trials required on both sides beyond which more on one side hardly make up for few on the other."""


@dataclass(frozen=True)
class Hypothesis:
    """The hypotheses on one metric of one scenario: neither its location nor its shape became worse."""

    case: Case
    metric: Metric
    contrasted: Contrast
    noise: MetricNoise | None
    fractions: Fractions
    shapes: tuple[Shape, ...]

    @classmethod
    def of(cls, case: Case, metric: Metric, policy: Policy) -> Hypothesis:
        noise = policy.noise(case.head.scenario, metric.name)
        contrasted = contrast(metric, *case.series(metric.name), is_interleaved=case.is_interleaved, noise=noise)
        shapes = tuple(shapes_of(case, metric))
        return cls(case, metric, contrasted, noise, fractions_of(case.head, case.base), shapes)

    def is_rejected(self, aspect: str, alpha: float) -> bool:
        """True if the hypothesis of no change for the worse is rejected at level `alpha`, over all looks together."""
        tail = level(alpha, self.fractions)
        if aspect != LOCATION:
            return any(each.p_value <= tail for each in self.shapes if each.aspect.name == aspect)
        widened = self.contrasted.shift(tail=tail)
        if self.contrasted.extra.matters(widened):
            # A rank test's p-value has a minimum: completely separated samples, however far apart, go no lower.
            return widened.low > 0
        return self.contrasted.p_value <= tail

    def judge(self, steps: Mapping[str, HolmStep], policy: Policy) -> Comparison:
        """The comparison; `steps` has the result of each aspect."""
        step = steps[LOCATION]
        found = judge(
            self.metric,
            self.case.series(self.metric.name),
            self.contrasted,
            tail=level(step.alpha, self.fractions),
            rejected=step.rejected,
            may_improve=not fails_more_often(self.case.head, self.case.base),
            noise=self.noise,
            policy=policy,
        )
        findings = tuple(self._find(shape, steps[shape.aspect.name], policy) for shape in self.shapes)
        found = replace(found, findings=findings, more_trials_because=_why_more_trials(found, findings))
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, more_trials_because=None) if needs else found

    def _find(self, shape: Shape, step: HolmStep, policy: Policy) -> Finding:
        is_large = shape.effect > least_floor(self.metric, self.noise, policy)
        return Finding(shape, level(step.alpha, self.fractions), is_large, step.rejected and is_large)

    def _base_needs(self, found: Comparison, alpha: float) -> int:
        """Computes `Comparison.base_needs`; `alpha` bounds what any look may spend."""
        head = self.case.head
        if not is_blind(found) or self.case.is_interleaved:
            return 0
        needs = fewest_trials(tail=alpha)
        most = min(max(head.spec.max_trials, len(head.trials)), MOST_LOPSIDED * needs)
        is_hopeless = found.base_count < needs and not lower_quantile(most, found.base_count, alpha)
        return needs if is_hopeless else 0


def compare_metrics(cases: Sequence[Case], policy: Policy) -> list[list[Comparison]]:
    """Compares every comparable metric of every scenario; Holm's procedure covers all of them."""
    hypotheses = {
        (number, metric.name): Hypothesis.of(case, metric, policy)
        for number, case in enumerate(cases)
        for metric in _comparable_metrics(case)
    }
    # Interleaved versions are compared within pairs of blocks; a metric without a common pair is dropped.
    hypotheses = {
        key: each for key, each in hypotheses.items() if each.contrasted.head.size and each.contrasted.base.size
    }
    shares = _divide(hypotheses)
    scenarios = max(policy.scenarios, len(cases))
    steps = step_down(
        {test: share / scenarios for test, share in shares.items()},
        lambda test, alpha: hypotheses[test[:2]].is_rejected(test[2], alpha),
        alpha=policy.family_alpha,
    )
    found: list[list[Comparison]] = [[] for _ in cases]
    for key, each in hypotheses.items():
        found[key[0]].append(each.judge({aspect: steps[*key, aspect] for aspect in aspect_shares(each.shapes)}, policy))
    return found


def _divide(hypotheses: Mapping[tuple[int, str], Hypothesis]) -> dict[tuple[int, str, str], float]:
    """Share of each aspect of each metric in the probability of error of its scenario."""
    numbers = {number for number, _ in hypotheses}
    metrics = {
        number: metric_shares(each.metric for (of, _), each in hypotheses.items() if of == number) for number in numbers
    }
    return {
        (number, name, aspect): metrics[number][name] * share
        for (number, name), each in hypotheses.items()
        for aspect, share in aspect_shares(each.shapes).items()
    }


def _why_more_trials(found: Comparison, findings: Iterable[Finding]) -> MoreTrials | None:
    """The location's reason for more trials, or else that of the first aspect that may have changed."""
    suspects = (MayHaveChanged(found.metric, each.shape.aspect) for each in findings if each.is_suspect)
    return found.more_trials_because or next(suspects, None)


def _comparable_metrics(case: Case) -> Iterator[Metric]:
    """Metrics measured in the same way on both sides, for at least one common goal."""
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if name not in case.incomparable and set(ours.strata) & set(theirs.strata):
            yield metric


def is_blind(comparison: Comparison) -> bool:
    """True if the samples are too small to detect any change."""
    return comparison.verdict is Verdict.INCONCLUSIVE and math.isinf(comparison.mde)
