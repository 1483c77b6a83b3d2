"""The decision: measurement validity first, then failures, then all metrics together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.holm import HolmStep, step_down
from pytest_ldos.base.stats.rank_sum import fewest_trials, lower_quantile
from pytest_ldos.base.stats.spending import Fractions
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.comparison import Comparison, judge
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.expectations import missed_expectations
from pytest_ldos.judge.gate.levels import fractions_of, level
from pytest_ldos.judge.gate.more_trials import MayFailMore, MoreTrials
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import (
    Distorted,
    EmptyBaseline,
    Incomparable,
    LoadNotReached,
    LostGoal,
    LostMetric,
    Moved,
    NewGoal,
    NewMetric,
    NotClear,
    NotFinished,
    NothingInCommon,
    NoTrials,
    OfBase,
    OtherGoals,
    Reason,
    TooFewInBaseline,
    TooFewTrials,
    Untrusted,
)
from pytest_ldos.judge.gate.sources import find_incomparable
from pytest_ldos.judge.gate.success import fails_more_often, find_failures, find_rises, measure_rise
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import invalid_trials, metrics_of, missing_reasons, to_series

MOST_LOPSIDED: Final = 2
"""Multiple of the trials required on both sides beyond which more on one side hardly make up for few on the other."""

Pair = tuple[TrialSet, TrialSet]
"""Head and base of one scenario."""


@dataclass(frozen=True)
class GateResult:
    """The verdict on one scenario.

    Attributes:
        reasons: explain the verdict, the most important first.
        comparisons: one for each metric that both versions have; empty without a baseline.
        incomparable: why other metrics that both versions have were not compared, by name.
        undecided: why more trials would help; empty if the result is clear, whatever the verdict.
    """

    scenario: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    comparisons: tuple[Comparison, ...] = ()
    incomparable: Mapping[str, Incomparable] = field(default_factory=dict)
    undecided: tuple[MoreTrials, ...] = ()

    def comparison(self, metric: str) -> Comparison | None:
        """The comparison of one metric, or ``None``."""
        return next((each for each in self.comparisons if each.metric == metric), None)

    @property
    def base_needs(self) -> int:
        """Number of trials that a stored baseline must be recorded again with; 0 if it has enough."""
        return max((each.base_needs for each in self.comparisons), default=0)


def decide(head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
    """Compares a scenario of a run with its baseline."""
    return decide_run([(head, base)], policy)[0]


def decide_run(pairs: Sequence[Pair], policy: Policy) -> list[GateResult]:
    """Compares all scenarios of a run with their baselines; they share the run's probability of a false alarm."""
    alone = [_beside_distorted(judge_alone(head, policy), base) for head, base in pairs]
    measured = [pair for pair, own in zip(pairs, alone, strict=True) if own.verdict is not Verdict.INVALID]
    incomparable = [find_incomparable(*pair) for pair in measured]
    rises, comparisons = find_rises(measured, policy), _compare_metrics(measured, incomparable, policy)
    found = zip(rises, comparisons, incomparable, strict=True)
    return [
        own if own.verdict is Verdict.INVALID else _weigh(pair, own, *next(found))
        for pair, own in zip(pairs, alone, strict=True)
    ]


def _beside_distorted(own: GateResult, base: TrialSet) -> GateResult:
    """The result of the run itself, made invalid if the base's times are distorted and cannot be compared."""
    if not base.distortion or own.verdict is Verdict.INVALID:
        return own
    return replace(own, verdict=Verdict.INVALID, reasons=(OfBase(Distorted(base.distortion)), *own.reasons))


def _weigh(
    pair: Pair,
    own: GateResult,
    rise: bool,
    comparisons: Sequence[Comparison],
    incomparable: Mapping[str, Incomparable],
) -> GateResult:
    """Combines all findings on one scenario into one verdict."""
    head, base = pair
    reasons: list[Reason] = [*own.reasons, *([measure_rise(head, base)] if rise else [])]
    compared = {each.metric for each in comparisons}
    lost = [*_lost_metrics(head, base, but={*compared, *incomparable}), *_lost_goals(head, base)]
    new = _new_metrics(head, base, but={*compared, *incomparable})
    reasons += [*_find_changes(comparisons), *incomparable.values(), *lost, *new]
    verdicts = [own.verdict, *(each.verdict for each in comparisons)]
    if rise:
        verdicts.append(Verdict.REGRESSED)
    if lost:
        verdicts.append(Verdict.INCONCLUSIVE)
    if new:
        verdicts.append(Verdict.NO_BASELINE)
    if incomparable:
        verdicts.append(Verdict.NOT_COMPARABLE)
    elif not comparisons:
        verdicts.append(Verdict.INCONCLUSIVE)
        reasons.append(_why_nothing_compares(head, base))
    verdict = worst(verdicts)
    undecided = () if verdict is Verdict.REGRESSED else _why_undecided(head, base, comparisons)
    return GateResult(head.scenario, verdict, tuple(reasons), tuple(comparisons), incomparable, undecided)


def _why_undecided(head: TrialSet, base: TrialSet, comparisons: Sequence[Comparison]) -> tuple[MoreTrials, ...]:
    """Reasons why more trials would help."""
    failures = [MayFailMore()] if fails_more_often(head, base) else []
    return (*failures, *(each.undecided for each in comparisons if each.undecided is not None))


def judge_alone(head: TrialSet, policy: Policy) -> GateResult:
    """The verdict on a run without a baseline: validity of its measurement, and its success rate."""
    invalid = measurement_faults(head, policy)
    if invalid:
        return GateResult(head.scenario, Verdict.INVALID, tuple(invalid))
    missed = missed_expectations(head, policy)
    if missed:
        return GateResult(head.scenario, Verdict.REGRESSED, (*missed, *find_failures(head)))
    if head.incomplete:
        return GateResult(head.scenario, Verdict.INVALID, (NotFinished(head.incomplete),))
    return GateResult(head.scenario, Verdict.PASSED, ())


def measurement_faults(head: TrialSet, policy: Policy) -> list[Reason]:
    """Reasons not to trust the measurement of a run, regardless of the arm's performance; empty if valid."""
    if not head.trials:
        return [NoTrials(head.incomplete)]
    if head.distortion:
        return [Distorted(head.distortion)]
    faults: list[Reason] = [*load_faults(head)]
    allowed = policy.largest_invalid_share * len(head.trials)
    for metric in head.metrics:
        invalid = invalid_trials(head, metric)
        if len(invalid) > allowed:
            faults.append(Untrusted(metric.name, len(invalid), len(head.trials), next(iter(invalid.values()))))
    return faults


def load_faults(head: TrialSet) -> list[LoadNotReached]:
    """Shortfalls of the loads that were requested; empty if all were reached."""
    return [LoadNotReached(str(load["shortfall"])) for load in head.loads if load["shortfall"]]


@dataclass(frozen=True)
class _Question:
    """A hypothesis test: did one metric of one scenario become worse?"""

    pair: Pair
    metric: Metric
    series: tuple[Series, Series]
    contrasted: Contrast
    noise: MetricNoise | None
    fractions: Fractions

    @classmethod
    def of(cls, pair: Pair, metric: Metric, series: tuple[Series, Series], policy: Policy) -> _Question:
        head, base = pair
        in_turns = _in_turns(head, base)
        noise = policy.noise(head.scenario, metric.name)
        contrasted = contrast(metric, *series, in_turns=in_turns, noise=noise)
        return cls(pair, metric, series, contrasted, noise, fractions_of(head, base))

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
            self.series,
            self.contrasted,
            tail=level(step.alpha, self.fractions),
            rejected=step.rejected,
            may_improve=not fails_more_often(*self.pair),
            noise=self.noise,
            policy=policy,
        )
        needs = self._base_needs(found, step.alpha)
        return replace(found, base_needs=needs, undecided=None) if needs else found

    def _base_needs(self, found: Comparison, alpha: float) -> int:
        """Computes `Comparison.base_needs`; `alpha` bounds what any look may spend."""
        head, base = self.pair
        if not _is_blind(found) or _in_turns(head, base):
            return 0
        needs = fewest_trials(tail=alpha)
        most = min(max(head.spec.max_trials, len(head.trials)), MOST_LOPSIDED * needs)
        is_hopeless = found.base_count < needs and not lower_quantile(most, found.base_count, alpha)
        return needs if is_hopeless else 0


def _in_turns(head: TrialSet, base: TrialSet) -> bool:
    return bool(head.session) and head.session == base.session


def _is_blind(comparison: Comparison) -> bool:
    """True if the samples are too small to detect any change."""
    return comparison.verdict is Verdict.INCONCLUSIVE and math.isinf(comparison.detectable)


def _compare_metrics(
    pairs: Sequence[Pair], incomparable: Sequence[Collection[str]], policy: Policy
) -> list[list[Comparison]]:
    """Compares every comparable metric of every scenario; Holm's procedure covers all of them."""
    questions = {
        (number, metric.name): _Question.of(pair, metric, series, policy)
        for number, pair in enumerate(pairs)
        for metric, series in _comparable_series(*pair, but=incomparable[number])
    }
    # Interleaved versions are compared within pairs of blocks; a metric without a common pair is dropped.
    questions = {
        key: each for key, each in questions.items() if each.contrasted.head.size and each.contrasted.base.size
    }
    scenarios = max(policy.scenarios, len(pairs))
    shares = {key: question.metric.error_share / scenarios for key, question in questions.items()}
    steps = step_down(shares, lambda key, alpha: questions[key].is_rejected(alpha), alpha=policy.family_alpha)
    found: list[list[Comparison]] = [[] for _ in pairs]
    for key, step in steps.items():
        found[key[0]].append(questions[key].judge(step, policy))
    return found


def _comparable_series(
    head: TrialSet, base: TrialSet, *, but: Collection[str]
) -> Iterator[tuple[Metric, tuple[Series, Series]]]:
    """Metrics measured in the same way on both sides, for at least one common goal."""
    for name, metric in metrics_of(head, base).items():
        ours, theirs = to_series(head, metric), to_series(base, metric)
        if name not in but and set(ours.strata) & set(theirs.strata):
            yield metric, (ours, theirs)


def _lost_metrics(head: TrialSet, base: TrialSet, *, but: Collection[str]) -> Iterator[LostMetric]:
    """Metrics that the baseline has and the run lost, each with the reason.

    Args:
        but: metrics to leave out.
    """
    for name, metric in metrics_of(head, base).items():
        if name not in but and len(to_series(base, metric)) and not len(to_series(head, metric)):
            yield LostMetric(name, next(iter(missing_reasons(head, metric).values()), "no trial measured it"))


def _new_metrics(head: TrialSet, base: TrialSet, *, but: Collection[str]) -> list[NewMetric]:
    """Metrics that the run has and the baseline lacks; see `_lost_metrics`."""
    return [
        NewMetric(name)
        for name, metric in metrics_of(head, base).items()
        if name not in but and base.trials and len(to_series(head, metric)) and not len(to_series(base, metric))
    ]


def _lost_goals(head: TrialSet, base: TrialSet) -> list[NewGoal | LostGoal]:
    """Goals that only one side has, if there are common ones: their trials are not compared."""
    heads, bases = _goals(head), _goals(base)
    if not heads & bases:
        return []
    return [*map(NewGoal, sorted(heads - bases)), *map(LostGoal, sorted(bases - heads))]


def _why_nothing_compares(head: TrialSet, base: TrialSet) -> EmptyBaseline | NothingInCommon | OtherGoals:
    if not base.trials:
        return EmptyBaseline()
    heads, bases = _goals(head), _goals(base)
    return NothingInCommon() if heads & bases else OtherGoals(tuple(sorted(heads)), tuple(sorted(bases)))


def _goals(trials: TrialSet) -> set[str]:
    return {trial.goal for trial in trials.trials}


def _find_changes(comparisons: Sequence[Comparison]) -> Iterator[Reason]:
    """One reason for each metric that did not pass; metrics with too few trials share one."""
    for each in comparisons:
        if each.verdict is not Verdict.PASSED and not _is_blind(each):
            yield NotClear(each) if each.verdict is Verdict.INCONCLUSIVE else Moved(each)
    blind = [each for each in comparisons if _is_blind(each)]
    hopeless, hopeful = ([each for each in blind if bool(each.base_needs) is wanted] for wanted in (True, False))
    if hopeless:
        yield TooFewInBaseline(*_counts(hopeless), max(each.base_needs for each in hopeless))
    if hopeful:
        tails = [each.tail for each in hopeful if each.tail > 0]
        yield TooFewTrials(*_counts(hopeful), fewest_trials(tail=min(tails)) if tails else 0)


def _counts(comparisons: Sequence[Comparison]) -> tuple[tuple[str, ...], int, int]:
    """The metrics, and the trials of head and base."""
    first = comparisons[0]
    return tuple(each.metric for each in comparisons), first.head_count, first.base_count
