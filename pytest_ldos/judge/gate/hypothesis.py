"""Compares all metrics of a run's scenarios: one hypothesis each, and one probability of error for all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pytest_ldos.base.stats.holm import HolmStep, step_down
from pytest_ldos.base.stats.rank_sum import fewest_trials, lower_quantile
from pytest_ldos.base.stats.spending import Fractions
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import Comparison, judge
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.levels import fractions_of, level
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.success import fails_more_often
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import Metric

MOST_LOPSIDED: Final = 2
"""Multiple of the trials required on both sides beyond which more on one side hardly make up for few on the other."""


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis test: did one metric of one scenario become worse?"""

    case: Case
    metric: Metric
    contrasted: Contrast
    noise: MetricNoise | None
    fractions: Fractions

    @classmethod
    def of(cls, case: Case, metric: Metric, policy: Policy) -> Hypothesis:
        noise = policy.noise(case.head.scenario, metric.name)
        contrasted = contrast(metric, *case.series(metric.name), is_interleaved=case.is_interleaved, noise=noise)
        return cls(case, metric, contrasted, noise, fractions_of(case.head, case.base))

    def is_rejected(self, alpha: float) -> bool:
        """True if the hypothesis of no change for the worse is rejected at level `alpha`, over all looks together."""
        tail = level(alpha, self.fractions)
        widened = self.contrasted.shift(tail=tail)
        if self.contrasted.extra.matters(widened):
            # A rank test's p-value has a minimum: completely separated samples, however far apart, go no lower.
            return widened.low > 0
        return self.contrasted.p_value <= tail

    def judge(self, step: HolmStep, policy: Policy) -> Comparison:
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
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, more_trials_because=None) if needs else found

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
    scenarios = max(policy.scenarios, len(cases))
    shares = {key: hypothesis.metric.error_share / scenarios for key, hypothesis in hypotheses.items()}
    steps = step_down(shares, lambda key, alpha: hypotheses[key].is_rejected(alpha), alpha=policy.family_alpha)
    found: list[list[Comparison]] = [[] for _ in cases]
    for key, step in steps.items():
        found[key[0]].append(hypotheses[key].judge(step, policy))
    return found


def _comparable_metrics(case: Case) -> Iterator[Metric]:
    """Metrics measured in the same way on both sides, for at least one common goal."""
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if name not in case.incomparable and set(ours.strata) & set(theirs.strata):
            yield metric


def is_blind(comparison: Comparison) -> bool:
    """True if the samples are too small to detect any change."""
    return comparison.verdict is Verdict.INCONCLUSIVE and math.isinf(comparison.mde)
