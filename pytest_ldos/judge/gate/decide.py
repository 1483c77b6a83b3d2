"""The decision: measurement validity first, then failures and expectations, then all metrics together.

The MDE decides whether this host can judge a metric; the observed effect does not. A regression that is large enough to
be certain is reported in any case.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from scipy.special import ndtri

from pytest_ldos.base.series import Better, Series
from pytest_ldos.base.stats.rank_tests import POWER, fewest_trials, smallest_detectable_shift
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import (
    IN_PLACE_OF,
    USUALLY_SHOWN,
    Case,
    Policy,
    fails_more_often,
    find_failures,
    find_rise,
    missed_expectations,
)
from pytest_ldos.judge.gate.comparison import compare_metrics
from pytest_ldos.judge.gate.contrast import log_to_effect
from pytest_ldos.judge.gate.reasons import Reason, by_weight
from pytest_ldos.judge.gate.verdict import Comparison, MayFailMore, MoreTrials, Verdict, is_underpowered, worst
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial import record
from pytest_ldos.measure.trial.record import Look, TrialSet
from pytest_ldos.scenario.metrics import place_of


def _difference(metric: Metric, head: TrialSet, base: TrialSet) -> why.Incomparable | None:
    """The difference, if a user's metric has the name of an earlier one, or if the sources differ."""
    name, theirs = metric.name, next((each for each in base.metrics if each.name == metric.name), metric)
    if metric.unit != theirs.unit:
        return why.OtherUnit(name, metric.unit, theirs.unit)
    if metric.better != theirs.better:
        return why.OtherDirection(name, metric.better, theirs.better)
    here, there = ({source.name for source in record.sources_of(trials, metric)} for trials in (head, base))
    if not here or not there or (here == there and len(here) == 1):
        return None
    return why.OtherSources(name, tuple(sorted(here)), tuple(sorted(there)))


def _find_lost(case: Case, policy: Policy, *, but: Collection[str]) -> Iterator[Reason]:
    """Metrics that the run lost, goals that only one side has, and required metrics of which neither has a value."""
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if name not in but and len(theirs) and not len(ours):
            yield why.LostMetric(
                name, next(iter(record.missing_reasons(case.head, metric).values()), "no trial measured it")
            )
    heads, bases = _goals(case)
    if heads & bases:  # trials of other goals are not compared
        yield from map(why.NewGoal, sorted(heads - bases))
        yield from map(why.LostGoal, sorted(bases - heads))
    for name in policy.required or ():
        if not any(len(each.get(name, ())) for each in (case.head_series, case.base_series)):
            yield why.RequiredMetric(name)


def _why_nothing_compares(case: Case) -> why.EmptyBaseline | why.NothingInCommon | why.OtherGoals:
    if not case.base.trials:
        return why.EmptyBaseline()
    heads, bases = _goals(case)
    return why.NothingInCommon() if heads & bases else why.OtherGoals(tuple(sorted(heads)), tuple(sorted(bases)))


def _goals(case: Case) -> list[set[str]]:
    return [{trial.goal for trial in trials.trials} for trials in (case.head, case.base)]


def _explain_underpowered(comparisons: Sequence[Comparison], case: Case) -> Iterator[Reason]:
    """Reasons for underpowered metrics; those with equally many values and the same cause share one."""

    def kind(found: Comparison) -> tuple[bool, bool, int, int]:
        return not found.base_needs, _is_enough(found), found.head_count, found.base_count

    for _, group in groupby(sorted(filter(is_underpowered, comparisons), key=kind), key=kind):
        alike = list(group)
        first = alike[0]
        counts = tuple(each.metric for each in alike), first.head_count, first.base_count
        if first.base_needs:
            yield why.TooFewInBaseline(*counts, max(each.base_needs for each in alike))
        elif _is_enough(first):
            yield why.TooFewComparable(*counts, _why_unusable(case, first.metric))
        else:
            yield why.TooFewTrials(*counts, max(map(_required, alike)))


def _required(found: Comparison) -> int:
    """Trials required on both sides for a change to be significant; 0 if unknown."""
    return fewest_trials(tail=found.tail) if found.tail > 0 else 0


def _is_enough(found: Comparison) -> bool:
    """True if both sides have enough trials, so that values are what is missing."""
    return 0 < _required(found) <= min(found.head_count, found.base_count)


def _why_unusable(case: Case, metric: str) -> why.Unusable:
    both = head, base = case.series(metric)
    if any(2 * len(each.finite) < len(each) for each in both):
        return why.Unusable.FAILED
    pairs = [{block // 2 for block in each.blocks} if case.is_interleaved else set() for each in both]
    is_paired = set(head.strata) == set(base.strata) and pairs[0] == pairs[1]
    return why.Unusable.UNKNOWN_NOISE if is_paired else why.Unusable.UNPAIRED


USUALLY_REQUIRED: Final = frozenset({"T1", "T1mean", "T2x", "T3mean", "T4", "T5mean", "call"})
"""Metrics required on every host that can judge them, unless the project names others; T1 if T1mean is not judged."""

_MARGIN: Final = 1.5
"""Margin between a predicted MDE and its bound, because spreads are estimated from few trials."""


def _set_aside(found: Comparison, comparisons: Sequence[Comparison], case: Case, policy: Policy) -> Comparison:
    """The comparison, with `NOT_JUDGED` instead of `INCONCLUSIVE` for a metric that this host cannot judge.

    A metric is `SHOWN` if others of the same quantity are judged in its place and it is not suspicious.
    """
    inconclusive = (Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED)
    judged = {each.metric for each in comparisons if each.verdict not in inconclusive}
    instead = IN_PLACE_OF.get(found.metric, ())
    is_replaced = bool(instead) and judged.issuperset(instead)
    is_open = found.verdict is Verdict.INCONCLUSIVE
    is_aside = is_replaced and found.metric in USUALLY_SHOWN and found.verdict is not Verdict.REGRESSED
    if not (is_open or is_aside) or _is_required(found, case, policy, is_replaced=is_replaced):
        return found
    if is_replaced and not found.is_suspicious:
        return replace(found, location=Verdict.SHOWN, more_trials_because=None)
    if not is_open:
        return found
    more = None if is_replaced else found.more_trials_because
    return replace(found, location=Verdict.NOT_JUDGED, more_trials_because=more)


def _accept(found: Comparison, case: Case, policy: Policy) -> Comparison:
    """The comparison, with `ACCEPTED` for a regressed location unless its interval is beyond the accepted change."""
    accepted = policy.accepted.get(found.metric)
    if accepted is None or not found.is_acceptable:
        return found
    is_lower = case.metrics[found.metric].better is Better.LOWER
    is_within = found.low - 1 <= accepted.size if is_lower else found.high - 1 >= accepted.size
    return replace(found, location=Verdict.ACCEPTED) if is_within else found


def _is_required(found: Comparison, case: Case, policy: Policy, *, is_replaced: bool) -> bool:
    """True if the verdict must wait for this metric.

    If the project names none, it must if its samples are too small or begin at zero, which is not due to the host, or
    if this host can judge it according to the calibration, so that something disturbed this run. Counts from the
    settings, such as page faults and misses, begin at zero in most stacks, and are not required.
    """
    if policy.required is not None:
        return found.metric in policy.required
    metric = case.metrics[found.metric]
    if math.isinf(found.mde) or (found.is_from_zero and not metric.asked_as):
        return True
    if found.metric not in USUALLY_REQUIRED or is_replaced:
        return False
    return _MARGIN * math.log1p(_usual_mde(found, case, policy)) <= math.log1p(metric.largest_tolerable_mde)


def _usual_mde(found: Comparison, case: Case, policy: Policy) -> float:
    """The MDE of such a comparison according to the host's calibration; infinite if unknown."""
    noise = policy.noise(case.head.scenario, found.metric)
    if noise is None or not found.head_count or not found.base_count:
        return math.inf
    starts = (len(set(series.blocks)) for series in case.series(found.metric))
    between = noise.start_sd**2 * sum(1 / max(1, count) for count in starts)
    if not case.is_interleaved:
        between += 2 * max(noise.run_sd**2 - noise.start_sd**2, 0.0)
    variance = noise.trial_sd**2 * (1 / found.head_count + 1 / found.base_count) + between
    half_width = -float(ndtri(found.tail)) * math.sqrt(variance)
    return log_to_effect(smallest_detectable_shift(half_width, tail=found.tail, floor=math.log1p(found.floor)))


def _enough_trials(found: Comparison, bound: float) -> int:
    """Trials of each version, with starts in proportion, for an MDE of `bound`; 0 if no number is enough."""
    if math.isinf(found.mde) or found.floor >= bound:
        return 0
    certainty = float(ndtri(POWER))
    both = certainty - float(ndtri(found.tail))
    reach, floor, wanted = (math.log1p(effect) for effect in (found.mde, found.floor, bound))
    error = min(reach / both, (reach - floor) / certainty)
    enough = min(wanted / both, (wanted - floor) / certainty)
    return math.ceil(2 * Look(found.head_count, found.base_count).information * (error / enough) ** 2)


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
    incomparable: Mapping[str, why.Incomparable] = field(default_factory=dict)
    more_trials_because: tuple[MoreTrials, ...] = ()
    head_series: Mapping[str, Series] = field(default_factory=dict)
    base_series: Mapping[str, Series] = field(default_factory=dict)

    def comparison(self, metric: str) -> Comparison | None:
        return next((each for each in self.comparisons if each.metric == metric), None)

    @property
    def acceptable(self) -> Mapping[str, float]:
        """Sizes of changes for the worse that can be accepted (see `Accepted`), by metric."""
        rises = (each for each in self.reasons if isinstance(each, why.FailuresRose))
        sizes = [(SUCCESS_RATE, each.head_failures / each.head_trials) for each in rises]
        return dict([*((each.metric, each.ratio - 1) for each in self.comparisons if each.is_acceptable), *sizes])

    @property
    def base_needs(self) -> int:
        """Number of trials with which a stored baseline must be recorded again; 0 if it has enough."""
        return max((each.base_needs for each in self.comparisons), default=0)


def decide(head: TrialSet, base: TrialSet, policy: Policy) -> GateResult:
    """Compares a scenario of a run with its baseline, independently of the run's other scenarios."""
    case = Case.of(head, base)
    own = replace(_judge_alone(head, policy), head_series=case.head_series, base_series=case.base_series)
    if own.verdict is Verdict.INVALID:
        return own
    if base.distortion:
        return replace(own, verdict=Verdict.INVALID, reasons=(why.OfBase(why.Distorted(base.distortion)), *own.reasons))
    differences = {name: _difference(metric, head, base) for name, metric in case.metrics.items()}
    incomparable = {name: reason for name, reason in differences.items() if reason is not None}
    own = replace(own, incomparable=incomparable)
    return _weigh(case, own, compare_metrics(case, policy, but=incomparable), policy)


def _weigh(case: Case, own: GateResult, compared_all: Sequence[Comparison], policy: Policy) -> GateResult:
    comparisons = [_accept(_set_aside(each, compared_all, case, policy), case, policy) for each in compared_all]
    head, base, incomparable = case.head, case.base, own.incomparable
    rise = find_rise(head, base, policy)
    reasons: list[Reason] = [*own.reasons, *([rise] if rise else [])]
    known = {*incomparable, *(each.metric for each in comparisons)}
    lost = [*_find_lost(case, policy, but=known)]
    others = ((name, *case.series(name)) for name in case.metrics if name not in known and base.trials)
    new = [why.NewMetric(name) for name, ours, theirs in others if len(ours) and not len(theirs)]
    reasons += [*_find_changes(comparisons, case, policy), *incomparable.values(), *lost, *new]
    verdicts = [own.verdict, *(each.verdict for each in comparisons)]
    if rise:
        verdicts.append(why.VERDICT_OF[type(rise)])
    if lost:
        verdicts.append(Verdict.INCONCLUSIVE)
    # A baseline of an earlier version may lack built-in metrics that refine another.
    if any(each.metric not in METRICS or not METRICS[each.metric].refines for each in new):
        verdicts.append(Verdict.NO_BASELINE)
    if incomparable:
        verdicts.append(Verdict.NOT_COMPARABLE)
    elif not comparisons:
        verdicts.append(Verdict.INCONCLUSIVE)
        reasons.append(_why_nothing_compares(case))
    elif all(each.verdict in {Verdict.NOT_JUDGED, Verdict.SHOWN} for each in comparisons):
        verdicts.append(Verdict.INCONCLUSIVE)
    verdict = worst(verdicts)
    more: list[MoreTrials] = []
    if verdict is Verdict.REGRESSED:
        reasons += [why.AcceptedUnreadable(policy.accepted_unreadable)] if policy.accepted_unreadable else []
    else:
        more += [MayFailMore()] if fails_more_often(head, base) and not rise else []
        more += [each.more_trials_because for each in comparisons if each.more_trials_because is not None]
    return replace(
        own,
        verdict=verdict,
        reasons=by_weight(reasons),
        comparisons=tuple(comparisons),
        more_trials_because=tuple(more),
    )


def judge_alone(head: TrialSet, policy: Policy) -> GateResult:
    """The verdict on a run without a baseline: validity of its measurement, and its success rate."""
    return replace(_judge_alone(head, policy), head_series=record.all_series(head))


def _judge_alone(head: TrialSet, policy: Policy) -> GateResult:
    if invalid := measurement_faults(head, policy):
        return GateResult(head.scenario, Verdict.INVALID, tuple(invalid))
    if missed := missed_expectations(head, policy):
        return GateResult(head.scenario, Verdict.REGRESSED, (*missed, *find_failures(head)))
    if head.incomplete:
        return GateResult(head.scenario, Verdict.INVALID, (why.NotFinished(head.incomplete),))
    return GateResult(head.scenario, Verdict.PASSED, ())


def measurement_faults(head: TrialSet, policy: Policy) -> list[Reason]:
    """Reasons why the measurement of a run is invalid, regardless of the arm's performance; empty if it is valid."""
    if not head.trials:
        return [why.NoTrials(head.incomplete)]
    if head.distortion:
        return [why.Distorted(head.distortion)]
    faults: list[Reason] = [*load_faults(head)]
    allowed = policy.largest_invalid_share * len(head.trials)
    for metric in head.metrics:
        invalid = record.invalid_trials(head, metric)
        if place_of(metric.asked_as)[1]:  # not recorded is not 0
            invalid |= record.missing_reasons(head, metric)
        if len(invalid) > allowed:
            faults.append(why.Untrusted(metric.name, len(invalid), len(head.trials), next(iter(invalid.values()))))
    return faults


def load_faults(head: TrialSet) -> list[why.LoadNotReached]:
    return [why.LoadNotReached(str(load["shortfall"])) for load in head.loads if load["shortfall"]]


def _find_changes(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> Iterator[Reason]:
    """One reason for each metric that did not pass; metrics with too few trials share one."""
    for each in comparisons:
        yield from (why.ShapeRegressed(each, found.shape) for found in each.findings if found.is_regressed)
        if each.location is Verdict.ACCEPTED:
            yield why.AcceptedChange(each, policy.accepted[each.metric])
        elif each.location in {Verdict.REGRESSED, Verdict.IMPROVED}:
            yield why.Moved(each)
        elif each.verdict is Verdict.INCONCLUSIVE and not is_underpowered(each):
            yield why.NotClear(each, _usual_mde(each, case, policy))
    for each in comparisons:
        if each.verdict is Verdict.NOT_JUDGED:
            bound = case.metrics[each.metric].largest_tolerable_mde
            # Runs at different times differ however many trials they have.
            trials = _enough_trials(each, bound) if case.is_interleaved else 0
            may_be_worse, is_running = each.p_value <= policy.doubt, case.head.spec.stack.ros2.is_running
            yield why.NotJudged(each, bound, trials, may_be_worse=may_be_worse, is_running=is_running)
    yield from _explain_underpowered(comparisons, case)
