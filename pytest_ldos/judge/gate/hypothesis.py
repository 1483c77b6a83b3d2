"""Compares all metrics of a scenario: one hypothesis an aspect, and one probability of error for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pytest_ldos.base.stats.holm import HolmStep, step_down
from pytest_ldos.base.stats.rank_sum import fewest_trials, lower_quantile
from pytest_ldos.base.stats.spending import Fractions
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.baseline.known_runs import KnownRuns
from pytest_ldos.judge.gate.aspects import Finding, Shape
from pytest_ldos.judge.gate.budget import LOCATION, aspect_shares, metric_shares, only_shown
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import SCREENED, Comparison, floor_of, judge
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.levels import fractions_of, level
from pytest_ldos.judge.gate.more_trials import MayHaveChanged, MoreTrials
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.shape import shapes_of
from pytest_ldos.judge.gate.success import fails_more_often
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.unchanged import Between, known_of
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.scenario.words import StimulusKind

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
            # A rank test's p-value has a minimum: completely separated samples, however far apart, go no lower.
            return widened.low > 0
        return self.contrasted.p_value <= tail

    def judge(self, steps: Mapping[str, HolmStep], share: float, policy: Policy) -> Comparison:
        """The comparison.

        Args:
            steps: result of each aspect.
            share: of the metric in all probabilities of error.
        """
        step = steps[LOCATION]
        found = self._locate(step, SCREENED * share, policy)
        findings = tuple(self._find(shape, steps[shape.aspect.name], policy) for shape in self.shapes)
        found = replace(found, findings=findings, more_trials_because=_why_more_trials(found, findings))
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, more_trials_because=None) if needs else found

    def show(self, alpha: float, policy: Policy) -> Comparison:
        """The comparison of a metric that is not judged, with an interval of error `alpha` at each end."""
        found = self._locate(HolmStep(alpha=alpha, rejected=False), SCREENED * self.metric.error_share, policy)
        return replace(found, location=Verdict.SHOWN, more_trials_because=None, is_suspicious=False)

    def _locate(self, step: HolmStep, screened_at: float, policy: Policy) -> Comparison:
        return judge(
            self.metric,
            self.case.series(self.metric.name),
            self.contrasted,
            tails=(level(step.alpha, self.fractions), screened_at),
            rejected=step.rejected,
            may_improve=not fails_more_often(self.case.head, self.case.base),
            noise=self.noise,
            policy=policy,
        )

    def _find(self, shape: Shape, step: HolmStep, policy: Policy) -> Finding:
        is_large = shape.effect > floor_of(self.metric, self.noise, policy)
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


def compare_metrics(case: Case, policy: Policy) -> list[Comparison]:
    """Compares every comparable metric of a scenario; Holm's procedure covers all of them."""
    found = [Hypothesis.of(case, metric, policy) for metric in _comparable_metrics(case)]
    # Interleaved versions are compared within pairs of blocks; a metric without a common pair is dropped.
    hypotheses = {each.metric.name: each for each in found if each.contrasted.head.size and each.contrasted.base.size}
    shown = only_shown(hypotheses, policy.required or ())
    metrics = metric_shares(each.metric for name, each in hypotheses.items() if name not in shown)
    aspects = {name: aspect_shares(hypotheses[name].shapes) for name in metrics}
    alpha = policy.family_alpha / policy.scenarios
    steps = step_down(
        {(name, aspect): metrics[name] * share for name in aspects for aspect, share in aspects[name].items()},
        lambda test, alpha: hypotheses[test[0]].is_rejected(test[1], alpha),
        alpha=alpha,
    )
    return [
        each.show(alpha * each.metric.error_share, policy)
        if name in shown
        else each.judge({aspect: steps[name, aspect] for aspect in aspects[name]}, metrics[name], policy)
        for name, each in hypotheses.items()
    ]


def _of_record(case: Case, metric: Metric) -> Between | None:
    """Knowledge of the record of such trials: of arms that reach, on machines that have nothing else to do."""
    spec = case.head.spec
    others = (each.interference for each in (case.head, case.base))
    is_disturbed = bool(spec.loads) or any(each is not None and each.is_heavy for each in others)
    if is_disturbed or spec.stack.stimulus is not StimulusKind.MOVE_GROUP:
        return None
    return known_of(case.head.stack_kind, metric.name)


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
