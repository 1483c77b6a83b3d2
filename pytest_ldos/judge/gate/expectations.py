"""Expectations of a scenario that hold regardless of the baseline: success rate, and deadlines of causal paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_ldos.base.stats.spending import spend
from pytest_ldos.base.stats.success import mean_shortfall_p, shortfall_p
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import MissedDeadline, MissedSuccessRate, ShortOfSuccessRate
from pytest_ldos.measure.metrics.deadlines import Kept
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.deadlines import DeadlineSpec

EXPECTATION_SHARE: Final = 0.2
"""Share of the success rates' probability of error spent here; the rest is for comparisons with the baseline."""

_NEVER: Final = Kept(0, 0)


def missed_expectations(head: TrialSet, policy: Policy) -> list[MissedSuccessRate | MissedDeadline]:
    """Missed expectations, the success rate first; empty if none is shown to be missed."""
    whole = policy.family_alpha * EXPECTATION_SHARE / policy.scenarios
    alpha = _of_this_look(head, whole / (1 + len(head.spec.deadlines)))
    return [*_missed_rate(head, alpha), *_missed_deadlines(head, alpha)]


def falls_short(head: TrialSet) -> list[ShortOfSuccessRate]:
    """The shortfall of the success rate, even if chance explains it; empty if there is none."""
    expected, trials = head.spec.success_rate, len(head.trials)
    return [ShortOfSuccessRate(head.successes, trials, expected)] if head.successes < expected * trials else []


def _of_this_look(head: TrialSet, alpha: float) -> float:
    """The part of `alpha` that the present look may spend, so that all looks together spend no more than `alpha`."""
    now = len(head.trials)
    most = max(now, head.last_look.head if head.last_look else now)
    before = max((look.head for look in head.looks if look.head < now), default=0)
    return spend(alpha, now / most) - spend(alpha, before / most)


def _missed_rate(head: TrialSet, alpha: float) -> Iterator[MissedSuccessRate]:
    rate = head.spec.success_rate
    if shortfall_p(successes=head.successes, trials=len(head.trials), expected_rate=rate) < alpha:
        yield MissedSuccessRate(head.successes, len(head.trials), rate)


def _missed_deadlines(head: TrialSet, alpha: float) -> Iterator[MissedDeadline]:
    """Tests each deadline: as a rate over the trials if each trial passes the path at most once.

    Many passages of one trial depend on each other, so the shares of the trials are tested instead.
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
    """Passages of each motion that met a deadline; one without an observed passage did not meet it."""
    return [trial.deadlines.get(deadline.path, _NEVER) for trial in trials.motions]
