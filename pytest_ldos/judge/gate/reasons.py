"""Reasons for a verdict, as values, and their order; `show.report.reasons` has a sentence for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, get_args

from pytest_ldos.base.series import Better
from pytest_ldos.judge.baseline.accepted import Accepted
from pytest_ldos.judge.baseline.key import OtherHost, OtherHostClasses, OtherLoads, OtherProblems, OtherScenario
from pytest_ldos.judge.gate.verdict import Comparison, Shape, Verdict


@dataclass(frozen=True)
class _Why:
    why: str


class NoTrials(_Why):
    """No trial was made."""  # `why` is empty if none was requested


class Distorted(_Why):
    """All times are distorted, for example by a debugger."""


@dataclass(frozen=True)
class LoadNotReached:
    """A load was not as requested."""

    shortfall: str


@dataclass(frozen=True)
class Untrusted:
    """Too many values of a metric are invalid."""

    metric: str
    invalid: int  # `invalid` and `of`: number of trials whose value is invalid, and of all trials
    of: int
    first: str  # reason why the first one is invalid


class NotFinished(_Why):
    """The trials ended early."""


@dataclass(frozen=True)
class MissedSuccessRate:
    """Fewer trials succeeded than the scenario expects; `expected` is a share."""

    successes: int
    trials: int
    expected: float


@dataclass(frozen=True)
class ShortOfSuccessRate:
    """Fewer trials succeeded than the scenario expects, which may be chance; `expected` is a share."""

    successes: int
    trials: int
    expected: float


@dataclass(frozen=True)
class MissedDeadline:
    """A causal path missed its deadline too often."""

    path: str
    ms: float
    share: float  # expected share of passages in time
    passages: int  # `passages` and `in_time`: of all trials
    in_time: int
    keeping: int  # number of trials that reached the share
    trials: int


@dataclass(frozen=True)
class FoundAny:
    """A metric of a place that is expected to be 0 is not; the counts are of all trials."""

    metric: str
    found: int
    runs: int
    runs_with_any: int
    by: tuple[str, ...]  # functions, the most frequent first


@dataclass(frozen=True)
class TrialsFailed:
    """Trials that failed in the same way."""

    numbers: tuple[int, ...]  # their numbers, from 1
    outcome: str
    code: int | None  # MoveIt's error code, if there was one
    goal: str  # empty if all trials of the run have the same goal, or very many goals failed
    message: str


@dataclass(frozen=True)
class FailuresRose:
    """Failures became more frequent; `p_value` is that of Boschloo's exact test."""

    base_failures: int
    base_trials: int
    head_failures: int
    head_trials: int
    p_value: float


@dataclass(frozen=True)
class Moved:
    """The location of a metric regressed or improved."""

    comparison: Comparison


@dataclass(frozen=True)
class ShapeRegressed:
    """Spread or tail of a metric grew, or it rose within the run."""

    comparison: Comparison
    shape: Shape


@dataclass(frozen=True)
class AcceptedChange:
    """A metric is worse, or failures became more frequent, by no more than was accepted."""

    change: Comparison | FailuresRose
    accepted: Accepted


@dataclass(frozen=True)
class NotClear:
    """The comparison of a metric is inconclusive."""

    comparison: Comparison
    usual: float = math.inf  # MDE according to this host's calibration; infinite if unknown


@dataclass(frozen=True)
class NotJudged:
    """This host cannot judge a metric within the budget.

    Attributes:
        bound: largest MDE with which it counts as judged.
        trials: number of trials of each version that would be enough; 0 if none would, because the floor is too high or
            runs at different times differ.
        may_be_worse: True if the values suggest a change for the worse that is not certain.
        is_running: True for a stack that ran already; its versions cannot be interleaved.
    """

    comparison: Comparison
    bound: float
    trials: int
    may_be_worse: bool
    is_running: bool = False


@dataclass(frozen=True)
class TooFewTrials:
    """The samples of some metrics are too small for any change to be significant."""

    metrics: tuple[str, ...]
    head_count: int
    base_count: int
    required: int  # number of trials on both sides with which one can be significant; 0 if unknown


class Unusable(StrEnum):
    """Reason why a metric cannot be compared in spite of enough trials."""

    FAILED = "more than half of the trials of one version failed"
    UNPAIRED = "too few of them have the goals and pairs of starts of the other version"
    UNKNOWN_NOISE = "the calibration knows too little of how much equal versions differ"


@dataclass(frozen=True)
class TooFewComparable:
    """There are enough trials, but too few values of some metrics are comparable."""

    metrics: tuple[str, ...]
    head_count: int
    base_count: int
    because: Unusable


@dataclass(frozen=True)
class TooFewInBaseline:
    """The baseline's samples of some metrics are so small that more trials of head cannot help."""

    metrics: tuple[str, ...]
    head_count: int
    base_count: int
    required: int  # number of trials with which the baseline must be recorded again


@dataclass(frozen=True)
class OtherUnit:
    """Head and base use different units for a metric of the same name."""

    metric: str
    here: str
    there: str


@dataclass(frozen=True)
class OtherDirection:
    """Head and base disagree on which way a metric of the same name improves."""

    metric: str
    here: Better
    there: Better


@dataclass(frozen=True)
class OtherSources:
    """A metric was taken from different sources in the traces of head and base."""

    metric: str
    here: tuple[str, ...]
    there: tuple[str, ...]


Incomparable = OtherUnit | OtherDirection | OtherSources
"""Reason why a metric of both versions was not compared."""


@dataclass(frozen=True)
class LostMetric:
    """The baseline has values of a metric, and this run has none."""

    metric: str
    why: str


@dataclass(frozen=True)
class RequiredMetric:
    """A metric that the project requires is missing from both versions."""

    metric: str


@dataclass(frozen=True)
class NewMetric:
    """This run has values of a metric, and the baseline has none."""

    metric: str


@dataclass(frozen=True)
class NewGoal:
    """The baseline has no trial of this goal."""

    goal: str


@dataclass(frozen=True)
class LostGoal:
    """The baseline has trials of this goal, and this run has none."""

    goal: str


@dataclass(frozen=True)
class OtherGoals:
    """The versions have no goal in common."""

    here: tuple[str, ...]
    there: tuple[str, ...]


@dataclass(frozen=True)
class EmptyBaseline:
    """The baseline has no trials."""


@dataclass(frozen=True)
class NothingInCommon:
    """No metric has values on both sides."""


@dataclass(frozen=True)
class BaselineMissing:
    """No baseline has been recorded."""


@dataclass(frozen=True)
class BaselineShared:
    """This machine has no baseline, but another machine of its host class has recorded one."""


class BaselineUnreadable(_Why):
    """The baseline's file is damaged."""


class AcceptedUnreadable(_Why):
    """The base's file of accepted changes is damaged, so that nothing is accepted."""


class CalibrationUnreadable(_Why):
    """The calibration's file is damaged."""


@dataclass(frozen=True)
class NotConfirmed:
    """The interleaved comparison neither confirmed nor ruled out a suspicion from the stored baseline."""

    metrics: tuple[str, ...]


@dataclass(frozen=True)
class TheMachine:
    """Some metrics are worse than the baseline although exactly its stack ran."""

    metrics: tuple[str, ...]


@dataclass(frozen=True)
class NotTheCode:
    """The interleaved comparison found no regression, but the run is worse than its stored baseline."""

    differences: tuple[tuple[str, str, str], ...]  # other possible causes: name, value of the baseline and of the run


@dataclass(frozen=True)
class OfBase:
    """A reason that concerns the base's own measurement."""

    reason: Reason


_Regressed = MissedSuccessRate | MissedDeadline | FoundAny | TrialsFailed | FailuresRose | ShapeRegressed | NotTheCode
_Invalid = (
    NoTrials
    | Distorted
    | LoadNotReached
    | Untrusted
    | NotFinished
    | BaselineUnreadable
    | CalibrationUnreadable
    | OfBase
)
_Inconclusive = (
    NotConfirmed
    | ShortOfSuccessRate
    | NotClear
    | TooFewTrials
    | TooFewComparable
    | TooFewInBaseline
    | LostMetric
    | RequiredMetric
    | NewGoal
    | LostGoal
    | OtherGoals
    | EmptyBaseline
    | NothingInCommon
)
_NotComparable = Incomparable | OtherHost | OtherHostClasses | OtherScenario | OtherLoads | OtherProblems
_NoBaseline = NewMetric | BaselineMissing | BaselineShared
_NotJudged = TheMachine | NotJudged | AcceptedUnreadable

Reason = Moved | AcceptedChange | _Regressed | _Invalid | _Inconclusive | _NotComparable | _NoBaseline | _NotJudged

Describe = Callable[[Reason], str]
"""Renders a reason as text; passed to rooms that may not import `show`."""

_KINDS: Final = {
    Verdict.REGRESSED: _Regressed,
    Verdict.INVALID: _Invalid,
    Verdict.INCONCLUSIVE: _Inconclusive,
    Verdict.NOT_COMPARABLE: _NotComparable,
    Verdict.NO_BASELINE: _NoBaseline,
    Verdict.NOT_JUDGED: _NotJudged,
}

VERDICT_OF: Final[Mapping[type, Verdict]] = {
    **{kind: verdict for verdict, kinds in _KINDS.items() for kind in get_args(kinds)},
    AcceptedChange: Verdict.ACCEPTED,
}
"""Verdict that each kind of reason leads to; for `Moved`, it is the metric's."""


def by_weight(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """The reasons by severity of their verdict, and changed metrics by size of their change in either direction."""

    def lightness(reason: Reason) -> tuple[int, float]:
        if not isinstance(reason, Moved):
            return -VERDICT_OF[type(reason)].severity, -math.inf
        ratio = reason.comparison.ratio
        return -reason.comparison.location.severity, -abs(math.log(ratio)) if 0 < ratio < math.inf else -math.inf

    return tuple(sorted(reasons, key=lightness))
