"""The decision: measurement validity first, then failures and expectations, then all metrics together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.counts import Counts, failure_rise_p, failures_rose, mean_shortfall_p, shortfall_p
from pytest_ldos.base.stats.several_tests import spend
from pytest_ldos.judge.gate.case import Case, fails_more_often, failures_of, fractions_of, looks_of
from pytest_ldos.judge.gate.comparison import Comparison, MayFailMore, MoreTrials, compare_metrics, is_underpowered
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import (
    Distorted,
    FailuresRose,
    Incomparable,
    LoadNotReached,
    MissedDeadline,
    MissedSuccessRate,
    Moved,
    NotFinished,
    NoTrials,
    OfBase,
    Reason,
    ShapeRegressed,
    ShortOfSuccessRate,
    TrialsFailed,
    Untrusted,
    by_weight,
)
from pytest_ldos.judge.gate.unjudged import (
    explain_inconclusive,
    explain_set_aside,
    explain_underpowered,
    find_incomparable,
    is_companion,
    lost_goals,
    lost_metrics,
    new_metrics,
    set_aside,
    unmeasured,
    why_nothing_compares,
)
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.measure.metrics.segments import Kept
from pytest_ldos.measure.trial.record import TrialSet, all_series, invalid_trials
from pytest_ldos.scenario.metrics import DeadlineSpec

EXPECTATION_SHARE: Final = 0.2
"""Share of the success rates' probability of error spent here; the rest is for the comparison with the baseline."""

_NEVER: Final = Kept(0, 0)


def missed_expectations(head: TrialSet, policy: Policy) -> list[MissedSuccessRate | MissedDeadline]:
    """Expectations that were significantly missed, the success rate first."""
    whole = policy.family_alpha * EXPECTATION_SHARE / policy.scenarios
    alpha = _of_this_look(head, whole / (1 + len(head.spec.deadlines)))
    return [*_missed_rate(head, alpha), *_missed_deadlines(head, alpha)]


def falls_short(head: TrialSet) -> list[ShortOfSuccessRate]:
    """The shortfall of the success rate, significant or not; empty if there is none."""
    expected, trials = head.spec.success_rate, len(head.trials)
    return [ShortOfSuccessRate(head.successes, trials, expected)] if head.successes < expected * trials else []


def _of_this_look(head: TrialSet, alpha: float) -> float:
    """The part of `alpha` that the present look may spend; all looks together spend at most `alpha`."""
    now = len(head.trials)
    most = max(now, head.last_look.head if head.last_look else now)
    before = max((look.head for look in head.looks if look.head < now), default=0)
    return spend(alpha, now / most) - spend(alpha, before / most)


def _missed_rate(head: TrialSet, alpha: float) -> Iterator[MissedSuccessRate]:
    rate = head.spec.success_rate
    if shortfall_p(successes=head.successes, trials=len(head.trials), expected_rate=rate) < alpha:
        yield MissedSuccessRate(head.successes, len(head.trials), rate)


def _missed_deadlines(head: TrialSet, alpha: float) -> Iterator[MissedDeadline]:
    """Tests each deadline: as a rate over the trials if each trial passes the path at most once. Otherwise passages of
    one trial depend on each other, so the shares of the trials are tested instead.
    """
    for deadline in head.spec.deadlines:
        kept = kept_in_trials(head, deadline)
        keeping = sum(each.share >= deadline.share for each in kept)
        if all(each.passages <= 1 for each in kept):
            p_value = shortfall_p(successes=keeping, trials=len(kept), expected_rate=deadline.share)
        else:
            p_value = mean_shortfall_p([each.share for each in kept], deadline.share)
        if p_value < alpha:
            yield MissedDeadline(
                path=deadline.path,
                ms=deadline.ms,
                share=deadline.share,
                passages=sum(each.passages for each in kept),
                in_time=sum(each.in_time for each in kept),
                keeping=keeping,
                trials=len(kept),
            )


def kept_in_trials(trials: TrialSet, deadline: DeadlineSpec) -> list[Kept]:
    """Passages of each motion that met a deadline; a motion without an observed passage missed it."""
    return [trial.deadlines.get(deadline.path, _NEVER) for trial in trials.motions]


def find_failures(head: TrialSet) -> list[TrialsFailed]:
    """Failed trials, grouped by how they failed."""
    several = len({trial.goal for trial in head.trials}) > 1
    found: dict[tuple[str, int | None, str, str], list[int]] = {}
    for trial in head.trials:
        if not trial.succeeded:
            kind = trial.outcome.value, trial.moveit_code, trial.goal if several else "", trial.message
            found.setdefault(kind, []).append(trial.index + 1)
    return [TrialsFailed(tuple(numbers), *kind) for kind, numbers in found.items()]


def failures_became_more(head: TrialSet, base: TrialSet, policy: Policy) -> bool:
    """True if failures rose significantly, given the scenario's share of the run's probability of error."""
    looks = tuple(Counts(look.head, look.base) for look in looks_of(head, base))
    return failures_rose(
        head_failures=failures_of(head),
        base_failures=failures_of(base),
        looks=looks,
        fractions=fractions_of(head, base),
        alpha=policy.family_alpha * (1 - EXPECTATION_SHARE) / policy.scenarios,
    )


def measure_rise(head: TrialSet, base: TrialSet) -> FailuresRose:
    """The failures of both versions, with the p-value of their rise."""
    counts = {
        "base_failures": failures_of(base),
        "base_trials": len(base.trials),
        "head_failures": failures_of(head),
        "head_trials": len(head.trials),
    }
    return FailuresRose(**counts, p_value=failure_rise_p(**counts))


@dataclass(frozen=True)
class GateResult:
    """The verdict on one scenario.

    Attributes:
        reasons: explain the verdict, the most important first.
        comparisons: one for each metric that both versions have; empty without a baseline.
        incomparable: reasons why other metrics of both versions were not compared, by name.
        more_trials_because: why more trials would help; empty if the result is clear.
        head_series, base_series: values that the verdict is based on, by metric; the latter are empty without a base.
    """

    scenario: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    comparisons: tuple[Comparison, ...] = ()
    incomparable: Mapping[str, Incomparable] = field(default_factory=dict)
    more_trials_because: tuple[MoreTrials, ...] = ()
    head_series: Mapping[str, Series] = field(default_factory=dict)
    base_series: Mapping[str, Series] = field(default_factory=dict)

    def comparison(self, metric: str) -> Comparison | None:
        """The comparison of one metric, or ``None``."""
        return next((each for each in self.comparisons if each.metric == metric), None)

    @property
    def base_needs(self) -> int:
        """Number of trials with which a stored baseline must be recorded again; 0 if it has enough."""
        return max((each.base_needs for each in self.comparisons), default=0)


def decide(head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
    """Compares a scenario of a run with its baseline, independently of the run's other scenarios."""
    case = Case.of(head, base)
    own = replace(_judge_alone(head, policy), head_series=case.head_series, base_series=case.base_series)
    own = _with_distorted_base(own, base)
    if own.verdict is Verdict.INVALID:
        return own
    incomparable = find_incomparable(head, base)
    own = replace(own, incomparable=incomparable)
    return _weigh(case, own, compare_metrics(case, policy, but=incomparable), policy)


def _with_distorted_base(own: GateResult, base: TrialSet) -> GateResult:
    """The run's own result, or an invalid one if the base's times are distorted."""
    if not base.distortion or own.verdict is Verdict.INVALID:
        return own
    return replace(own, verdict=Verdict.INVALID, reasons=(OfBase(Distorted(base.distortion)), *own.reasons))


def _weigh(case: Case, own: GateResult, compared_all: Sequence[Comparison], policy: Policy) -> GateResult:
    """Combines all findings on one scenario into one verdict."""
    comparisons = set_aside(compared_all, case, policy)
    head, base, incomparable = case.head, case.base, own.incomparable
    rise = failures_became_more(head, base, policy)
    reasons: list[Reason] = [*own.reasons, *([measure_rise(head, base)] if rise else [])]
    compared = {each.metric for each in comparisons}
    lost = [*lost_metrics(case, but={*compared, *incomparable}), *lost_goals(case), *unmeasured(case, policy)]
    new = new_metrics(case, but={*compared, *incomparable})
    reasons += [*_find_changes(comparisons, case, policy), *incomparable.values(), *lost, *new]
    verdicts = [own.verdict, *(each.verdict for each in comparisons)]
    if rise:
        verdicts.append(Verdict.REGRESSED)
    if lost:
        verdicts.append(Verdict.INCONCLUSIVE)
    if any(not is_companion(each.metric) for each in new):
        verdicts.append(Verdict.NO_BASELINE)
    if incomparable:
        verdicts.append(Verdict.NOT_COMPARABLE)
    elif not comparisons:
        verdicts.append(Verdict.INCONCLUSIVE)
        reasons.append(why_nothing_compares(case))
    elif all(each.verdict in {Verdict.NOT_JUDGED, Verdict.SHOWN} for each in comparisons):
        verdicts.append(Verdict.INCONCLUSIVE)
    verdict = worst(verdicts)
    more_trials_because = () if verdict is Verdict.REGRESSED else _why_more_trials(head, base, comparisons)
    return replace(
        own,
        verdict=verdict,
        reasons=by_weight(reasons),
        comparisons=tuple(comparisons),
        more_trials_because=more_trials_because,
    )


def _why_more_trials(head: TrialSet, base: TrialSet, comparisons: Sequence[Comparison]) -> tuple[MoreTrials, ...]:
    """Reasons why more trials would help."""
    failures = [MayFailMore()] if fails_more_often(head, base) else []
    return (*failures, *(each.more_trials_because for each in comparisons if each.more_trials_because is not None))


def judge_alone(head: TrialSet, policy: Policy) -> GateResult:
    """The verdict on a run without a baseline: validity of its measurement, and its success rate."""
    return replace(_judge_alone(head, policy), head_series=all_series(head))


def _judge_alone(head: TrialSet, policy: Policy) -> GateResult:
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
    """Reasons why the measurement of a run is invalid, regardless of the arm's performance; empty if it is valid."""
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


def _find_changes(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> Iterator[Reason]:
    """One reason for each metric that did not pass; metrics with too few trials share one."""
    for each in comparisons:
        yield from (ShapeRegressed(each, found.shape) for found in each.findings if found.is_regressed)
        if each.location in {Verdict.REGRESSED, Verdict.IMPROVED}:
            yield Moved(each)
        elif each.verdict is Verdict.INCONCLUSIVE and not is_underpowered(each):
            yield explain_inconclusive(each, case, policy)
    yield from explain_set_aside(comparisons, case, policy)
    yield from explain_underpowered(comparisons, case)
