"""The verdict of a run without a usable baseline: missing, not comparable or unreadable."""

from __future__ import annotations

import dataclasses

from pytest_ldos.judge.baseline.lookup import Found, NoBaseline, NotComparable, Unreadable, shown_baseline
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.expectations import falls_short
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import BaselineMissing, BaselineShared, BaselineUnreadable, Reason
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.judge.gate.weight import by_weight
from pytest_ldos.measure.trial.record import TrialSet


def judge_without_baseline(
    head: TrialSet, own: GateResult, lookup: NoBaseline | NotComparable | Unreadable, policy: Policy
) -> GateResult:
    """The verdict without a baseline; changes since a shared one are in it, and not judged.

    Args:
        own: the verdict on the run itself; a more severe finding there takes precedence.
    """
    verdict, reason = _why_not(lookup)
    short = falls_short(head) if own.verdict is Verdict.PASSED else []
    reasons = by_weight([*own.reasons, *short, reason])
    result = dataclasses.replace(own, verdict=worst([own.verdict, verdict]), reasons=reasons)
    shared = shown_baseline(lookup)
    return result if shared is None else _with_changes(result, decide(head, shared.trials, policy))


def _with_changes(result: GateResult, compared: GateResult) -> GateResult:
    unjudged = (
        dataclasses.replace(each, location=Verdict.NO_BASELINE, findings=(), more_trials_because=None, base_needs=0)
        for each in compared.comparisons
    )
    return dataclasses.replace(
        result, comparisons=tuple(unjudged), incomparable=compared.incomparable, base_series=compared.base_series
    )


def _why_not(lookup: NoBaseline | NotComparable | Unreadable) -> tuple[Verdict, Reason]:
    if isinstance(lookup, NotComparable):
        return Verdict.NOT_COMPARABLE, lookup.reason
    if isinstance(lookup, Unreadable):
        return Verdict.INVALID, BaselineUnreadable(lookup.reason)
    if isinstance(lookup.shared, Found):
        return Verdict.NO_BASELINE, BaselineShared()
    if lookup.shared is not None:
        return Verdict.NO_BASELINE, _why_not(lookup.shared)[1]
    return Verdict.NO_BASELINE, BaselineMissing()
