"""Metrics that are not compared or not judged: other sources, lost, new, too few values, too much variation.

The MDE decides whether this host can judge a metric; the observed effect does not. A regression that is large enough to
be certain is reported in any case.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final

from scipy.special import ndtri

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.rank_tests import POWER, fewest_trials, smallest_detectable_shift
from pytest_ldos.judge.baseline.calibration import MetricNoise
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.comparison import Comparison, is_underpowered
from pytest_ldos.judge.gate.contrast import log_to_effect
from pytest_ldos.judge.gate.policy import IN_PLACE_OF, USUALLY_SHOWN, Policy
from pytest_ldos.judge.gate.reasons import (
    EmptyBaseline,
    Incomparable,
    LostGoal,
    LostMetric,
    NewGoal,
    NewMetric,
    NotClear,
    NothingInCommon,
    NotJudged,
    OtherDirection,
    OtherGoals,
    OtherSources,
    OtherUnit,
    RequiredMetric,
    TooFewComparable,
    TooFewInBaseline,
    TooFewTrials,
    Unusable,
)
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Look, TrialSet, metrics_of, missing_reasons, sources_of


def find_incomparable(head: TrialSet, base: TrialSet) -> dict[str, Incomparable]:
    """Reasons why metrics cannot be compared, by name: other sources in the traces, or another unit or direction.

    Metrics that one side did not measure at all are not included.
    """
    found = {name: _difference(metric, head, base) for name, metric in metrics_of(head, base).items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def _difference(metric: Metric, head: TrialSet, base: TrialSet) -> Incomparable | None:
    return _other_meaning(metric, base) or _other_sources(metric, head, base)


def _other_meaning(metric: Metric, base: TrialSet) -> OtherUnit | OtherDirection | None:
    """Detects a user's metric registered under the name of an earlier, different one."""
    theirs = next((each for each in base.metrics if each.name == metric.name), metric)
    if metric.unit != theirs.unit:
        return OtherUnit(metric.name, metric.unit, theirs.unit)
    return OtherDirection(metric.name, metric.better, theirs.better) if metric.better != theirs.better else None


def _other_sources(metric: Metric, head: TrialSet, base: TrialSet) -> OtherSources | None:
    ours, theirs = ({source.name for source in sources_of(trials, metric)} for trials in (head, base))
    if not ours or not theirs or (ours == theirs and len(ours) == 1):
        return None
    return OtherSources(metric.name, tuple(sorted(ours)), tuple(sorted(theirs)))


def lost_metrics(case: Case, *, but: Collection[str]) -> Iterator[LostMetric]:
    """Metrics that the baseline has and the run lost, each with the reason.

    Args:
        but: metrics to leave out.
    """
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if name not in but and len(theirs) and not len(ours):
            yield LostMetric(name, next(iter(missing_reasons(case.head, metric).values()), "no trial measured it"))


def new_metrics(case: Case, *, but: Collection[str]) -> list[NewMetric]:
    """Metrics that the run has and the baseline lacks; see `lost_metrics`."""
    both = ((name, *case.series(name)) for name in case.metrics if name not in but and case.base.trials)
    return [NewMetric(name) for name, ours, theirs in both if len(ours) and not len(theirs)]


def is_companion(metric: str) -> bool:
    """True for built-in metrics that refine another: a baseline of an earlier version may lack them."""
    return metric in METRICS and bool(METRICS[metric].refines)


def lost_goals(case: Case) -> list[NewGoal | LostGoal]:
    """Goals that only one side has, if there are common ones; their trials are not compared."""
    heads, bases = _goals(case.head), _goals(case.base)
    if not heads & bases:
        return []
    return [*map(NewGoal, sorted(heads - bases)), *map(LostGoal, sorted(bases - heads))]


def why_nothing_compares(case: Case) -> EmptyBaseline | NothingInCommon | OtherGoals:
    if not case.base.trials:
        return EmptyBaseline()
    heads, bases = _goals(case.head), _goals(case.base)
    return NothingInCommon() if heads & bases else OtherGoals(tuple(sorted(heads)), tuple(sorted(bases)))


def _goals(trials: TrialSet) -> set[str]:
    return {trial.goal for trial in trials.trials}


Underpowered = TooFewComparable | TooFewInBaseline | TooFewTrials


def explain_underpowered(comparisons: Sequence[Comparison], case: Case) -> Iterator[Underpowered]:
    """Reasons for underpowered metrics; those with equally many values and the same cause share one."""
    found = sorted(filter(is_underpowered, comparisons), key=_kind)
    for _, group in groupby(found, key=_kind):
        yield _explain_few(list(group), case)


def _kind(found: Comparison) -> tuple[bool, bool, int, int]:
    return not found.base_needs, _is_enough(found), found.head_count, found.base_count


def _is_enough(found: Comparison) -> bool:
    """True if both sides have enough trials, so that values are what is missing."""
    return 0 < _required(found) <= min(found.head_count, found.base_count)


def _required(found: Comparison) -> int:
    """Trials required on both sides for a change to be significant; 0 if unknown."""
    return fewest_trials(tail=found.tail) if found.tail > 0 else 0


def _why_unusable(head: Series, base: Series, *, is_interleaved: bool) -> Unusable:
    if any(2 * len(each.finite) < len(each) for each in (head, base)):
        return Unusable.FAILED
    pairs = [{block // 2 for block in each.blocks} for each in (head, base)] if is_interleaved else [set(), set()]
    is_paired = set(head.strata) == set(base.strata) and pairs[0] == pairs[1]
    return Unusable.UNKNOWN_NOISE if is_paired else Unusable.UNPAIRED


def _explain_few(alike: Sequence[Comparison], case: Case) -> Underpowered:
    first = alike[0]
    counts = tuple(each.metric for each in alike), first.head_count, first.base_count
    if first.base_needs:
        return TooFewInBaseline(*counts, max(each.base_needs for each in alike))
    if _is_enough(first):
        return TooFewComparable(*counts, _why_unusable(*case.series(first.metric), is_interleaved=case.is_interleaved))
    return TooFewTrials(*counts, max(map(_required, alike)))


USUALLY_REQUIRED: Final = frozenset({"T1", "T1mean", "T2x", "T3mean", "T4", "T5mean", "call"})
"""Metrics required on every host that can judge them, unless the project names others; T1 if T1mean is not judged."""

_MARGIN: Final = 1.5
"""Margin between a predicted MDE and its bound, because spreads are estimated from few trials."""


def set_aside(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> list[Comparison]:
    """The comparisons, with `NOT_JUDGED` instead of `INCONCLUSIVE` for metrics that this host cannot judge.

    A metric is `SHOWN` if others of the same quantity are judged in its place and it is not suspicious.
    """
    return [_set_aside(each, stand_ins(each.metric, comparisons), case, policy) for each in comparisons]


def _set_aside(found: Comparison, instead: Sequence[str], case: Case, policy: Policy) -> Comparison:
    is_open = found.verdict is Verdict.INCONCLUSIVE
    is_aside = bool(instead) and found.metric in USUALLY_SHOWN and found.verdict is not Verdict.REGRESSED
    if not (is_open or is_aside) or _is_required(found, instead, case, policy):
        return found
    if instead and not found.is_suspicious:
        return dataclasses.replace(found, location=Verdict.SHOWN, more_trials_because=None)
    if not is_open:
        return found
    more = None if instead else found.more_trials_because
    return dataclasses.replace(found, location=Verdict.NOT_JUDGED, more_trials_because=more)


def stand_ins(metric: str, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """The metrics in place of one, if all of them are judged."""
    inconclusive = (Verdict.INCONCLUSIVE, Verdict.NOT_JUDGED)
    judged = {each.metric for each in comparisons if each.verdict not in inconclusive}
    instead = IN_PLACE_OF.get(metric, ())
    return tuple(instead) if judged.issuperset(instead) else ()


def _is_required(found: Comparison, instead: Sequence[str], case: Case, policy: Policy) -> bool:
    """True if the verdict must wait for this metric.

    If the project names none, it must if its samples are too small or begin at zero, which is not due to the host, or
    if this host can judge it according to the calibration, so that something disturbed this run. Counts from the
    settings, such as page faults and misses, begin at zero in most stacks, and are not required.
    """
    if policy.required is not None:
        return found.metric in policy.required
    if math.isinf(found.mde) or (found.is_from_zero and not case.metrics[found.metric].asked_as):
        return True
    if found.metric not in USUALLY_REQUIRED or instead:
        return False
    usual = usual_mde(found, case, policy)
    return _MARGIN * math.log1p(usual) <= math.log1p(_bound(found, case))


def usual_mde(found: Comparison, case: Case, policy: Policy) -> float:
    """The MDE of such a comparison according to the host's calibration; infinite if unknown."""
    noise = policy.noise(case.head.scenario, found.metric)
    if noise is None or not found.head_count or not found.base_count:
        return math.inf
    error = math.sqrt(_variance(noise, case, found))
    half_width = -float(ndtri(found.tail)) * error
    shift = smallest_detectable_shift(half_width, tail=found.tail, floor=math.log1p(found.floor))
    return log_to_effect(shift)


def _variance(noise: MetricNoise, case: Case, found: Comparison) -> float:
    """Variance of the estimated shift between equal versions."""
    between = noise.start_sd**2 * sum(1 / max(1, count) for count in _starts(found, case))
    if not case.is_interleaved:
        between += 2 * max(noise.run_sd**2 - noise.start_sd**2, 0.0)
    return noise.trial_sd**2 * (1 / found.head_count + 1 / found.base_count) + between


def unmeasured(case: Case, policy: Policy) -> list[RequiredMetric]:
    """Required metrics of which neither version has a value."""
    values = (case.head_series, case.base_series)
    names = policy.required or ()
    return [RequiredMetric(name) for name in names if not any(len(each.get(name, ())) for each in values)]


def explain_set_aside(comparisons: Sequence[Comparison], case: Case, policy: Policy) -> Iterator[NotJudged]:
    """Reasons for metrics that are not judged."""
    return (_explain(each, case, policy) for each in comparisons if each.verdict is Verdict.NOT_JUDGED)


def _explain(found: Comparison, case: Case, policy: Policy) -> NotJudged:
    """The reason why a metric is not judged, with the number of trials that would be enough."""
    bound = _bound(found, case)
    # Runs at different times differ however many trials they have.
    trials = _enough_trials(found, bound) if case.is_interleaved else 0
    return NotJudged(found, bound, trials, may_be_worse=found.p_value <= policy.doubt)


def _starts(found: Comparison, case: Case) -> list[int]:
    """Number of starts of head and of base that have values of a metric."""
    return [len(set(series.blocks)) for series in case.series(found.metric)]


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


def explain_inconclusive(found: Comparison, case: Case, policy: Policy) -> NotClear:
    """The reason why a required metric is inconclusive, with this host's usual MDE."""
    return NotClear(found, usual_mde(found, case, policy))


def _bound(found: Comparison, case: Case) -> float:
    return case.metrics[found.metric].largest_tolerable_mde
