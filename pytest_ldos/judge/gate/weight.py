"""Order of the reasons for a verdict: the weightiest first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from pytest_ldos.judge.baseline.mismatch import OtherHost, OtherHostClasses, OtherLoads, OtherScenario
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.verdict import Verdict

_KINDS: Final[Mapping[Verdict, tuple[type, ...]]] = {
    Verdict.REGRESSED: (
        why.MissedSuccessRate,
        why.MissedDeadline,
        why.TrialsFailed,
        why.FailuresRose,
        why.ShapeRegressed,
        why.NotTheCode,
    ),
    Verdict.INVALID: (
        why.NoTrials,
        why.Distorted,
        why.LoadNotReached,
        why.Untrusted,
        why.NotFinished,
        why.BaselineUnreadable,
        why.CalibrationUnreadable,
        why.OfBase,
    ),
    Verdict.INCONCLUSIVE: (
        why.NotConfirmed,
        why.ShortOfSuccessRate,
        why.NotClear,
        why.TooFewTrials,
        why.TooFewComparable,
        why.TooFewInBaseline,
        why.LostMetric,
        why.RequiredMetric,
        why.NewGoal,
        why.LostGoal,
        why.OtherGoals,
        why.EmptyBaseline,
        why.NothingInCommon,
    ),
    Verdict.NOT_COMPARABLE: (
        why.OtherUnit,
        why.OtherDirection,
        why.OtherSources,
        OtherHost,
        OtherHostClasses,
        OtherScenario,
        OtherLoads,
    ),
    Verdict.NO_BASELINE: (why.NewMetric, why.BaselineMissing, why.BaselineShared),
    Verdict.NOT_JUDGED: (why.TheMachine, why.NotJudged, why.JudgedBy),
}

VERDICT_OF: Final = {kind: verdict for verdict, kinds in _KINDS.items() for kind in kinds}
"""Verdict that each kind of reason leads to; that of `Moved` is its metric's."""


def by_weight(reasons: Iterable[why.Reason]) -> tuple[why.Reason, ...]:
    """The reasons, those of the most severe verdict first, and of metrics that moved those that moved most."""
    return tuple(sorted(reasons, key=_lightness))


def _lightness(reason: why.Reason) -> tuple[int, float]:
    if isinstance(reason, why.Moved):
        return -reason.comparison.location.severity, -_size(reason.comparison.ratio)
    return -VERDICT_OF[type(reason)].severity, -math.inf


def _size(ratio: float) -> float:
    """Size of a change in either direction."""
    return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf
