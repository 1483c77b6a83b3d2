"""The verdict of a run without a usable baseline: missing, not comparable or unreadable."""

from __future__ import annotations

import dataclasses

from pytest_ldos.judge.baseline.lookup import NoBaseline, NotComparable, Unreadable
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.reasons import BaselineMissing, BaselineUnreadable, Reason
from pytest_ldos.judge.gate.verdict import Verdict, worst


def judge_without_baseline(own: GateResult, lookup: NoBaseline | NotComparable | Unreadable) -> GateResult:
    """The verdict without a comparison. A more severe finding about the run itself (`own`) takes precedence."""
    verdict, reason = _why_not(lookup)
    return dataclasses.replace(own, verdict=worst([own.verdict, verdict]), reasons=(*own.reasons, reason))


def _why_not(lookup: NoBaseline | NotComparable | Unreadable) -> tuple[Verdict, Reason]:
    if isinstance(lookup, NotComparable):
        return Verdict.NOT_COMPARABLE, lookup.reason
    if isinstance(lookup, Unreadable):
        return Verdict.INVALID, BaselineUnreadable(lookup.reason)
    return Verdict.NO_BASELINE, BaselineMissing()
