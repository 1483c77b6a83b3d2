"""Result of a search over commits, in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from pytest_ldos.base.stats.median_interval import median_interval
from pytest_ldos.campaign.bisection import Bisection, LevelRecord, LevelState, SearchPlan
from pytest_ldos.campaign.commits.listing import Commit
from pytest_ldos.campaign.commits.rounds import Records, Side
from pytest_ldos.judge.explain.explain import Explanation, explain, path_of
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet

CHANGE_CONFIDENCE: Final = 0.95
"""Confidence of the displayed changes; no decision depends on them."""


class Finding(StrEnum):
    """Answer of a search."""

    FOUND = "found"
    NARROWED = "narrowed"
    GOOD_FAILS = "good fails"
    UNMEASURED = "bad could not be measured"
    NOT_WORSE = "bad is not worse"
    UNKNOWN = "not shown that bad is worse"


@dataclass(frozen=True)
class Visited:
    """A measured commit.

    Attributes:
        pairs: trials that were compared.
        worse: number of them that were worse than their trial of GOOD.
        better: number of them that were better than their trial of BAD; ``None`` for BAD itself.
        change: median change from GOOD, relative; ``None`` without values.
        low, high: its interval; infinite with too few trials.
    """

    commit: Commit
    standing: LevelState
    pairs: int
    worse: int
    better: int | None
    change: float | None
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class CommitResult:
    """Result of a search.

    Attributes:
        good, bad: ends of the search.
        suspects: commits of which one brought the regression, the oldest first; empty without an answer.
        sound: the commit before them.
        visited: measured commits, the oldest first.
        skipped: commits that could not be measured, with the reason.
        trials, starts: of all versions.
        why: reason why there is no single commit, or no answer; else empty.
        explanation: where the time went in the last suspect, compared with GOOD; ``None`` if that is unknown.
    """

    plan: SearchPlan
    metric: Metric
    finding: Finding
    good: Commit
    bad: Commit
    suspects: tuple[Commit, ...]
    sound: Commit | None
    visited: tuple[Visited, ...]
    skipped: tuple[tuple[Commit, str], ...]
    trials: int
    starts: int
    why: str
    explanation: Explanation | None
    template: TrialSet | None


def conclude(
    plan: SearchPlan,
    bisection: Bisection,
    *,
    commits: Sequence[Commit],
    metric: Metric,
    records: Mapping[float, Records],
    left_out: Mapping[float, str],
) -> CommitResult:
    """Summarises a search at its end."""
    holds, breaks = bisection.holds, bisection.breaks
    suspects: tuple[Commit, ...] = ()
    if holds is not None and breaks is not None:
        suspects = tuple(commits[int(holds.level) + 1 : int(breaks.level) + 1])
    finding = _finding(bisection, suspects, records.get(plan.scale.harsh, {}))
    sets = [each for some in records.values() for each in some.values()]
    return CommitResult(
        plan=plan,
        metric=metric,
        finding=finding,
        good=commits[0],
        bad=commits[-1],
        suspects=suspects,
        sound=commits[int(holds.level)] if suspects and holds else None,
        visited=tuple(
            _visited(commits[int(place)], record, records[place], metric)
            for place, record in sorted(bisection.records.items())
            if place in records and record.batches
        ),
        skipped=tuple((commits[int(place)], reason) for place, reason in sorted(left_out.items())),
        trials=sum(len(each.trials) for each in sets),
        starts=sum(len({trial.block for trial in each.trials}) for each in sets),
        why=_why(bisection, suspects, commits),
        explanation=_explanation(records[breaks.level], metric) if breaks else None,
        template=next(iter(sets), None),
    )


def _finding(bisection: Bisection, suspects: Sequence[Commit], of_bad: Records) -> Finding:
    if suspects:
        return Finding.FOUND if len(suspects) == 1 else Finding.NARROWED
    good = of_bad.get(Side.GOOD)
    if good is not None and 2 * good.successes < len(good.trials):
        return Finding.GOOD_FAILS
    bad = bisection.records[bisection.plan.scale.harsh]
    if not bad.trials:
        return Finding.UNMEASURED
    return Finding.NOT_WORSE if bad.standing is LevelState.HOLDS else Finding.UNKNOWN


def _why(bisection: Bisection, suspects: Sequence[Commit], commits: Sequence[Commit]) -> str:
    bad = bisection.records[bisection.plan.scale.harsh]
    if len(suspects) == 1:
        return ""
    if bad.exclusions:
        return bad.exclusions[-1].reason
    if bisection.is_spent:
        return "the trials were not enough to narrow it further: --max-trials"
    between = [
        commits[int(place)].name
        for place, each in sorted(bisection.records.items())
        if each.standing is LevelState.UNDECIDED and commits[int(place)] in suspects
    ]
    if between:
        return (
            f"{', '.join(between)} could not be told from GOOD or from BAD: "
            "the change is small for this noise, or several commits brought it"
        )
    return "the commits between could not be measured" if suspects else ""


def _visited(commit: Commit, record: LevelRecord, records: Records, metric: Metric) -> Visited:
    changes = _changes(records, metric)
    bounds = median_interval(changes, confidence=CHANGE_CONFIDENCE)
    low, high = (math.expm1(each) if math.isfinite(each) else each for each in bounds)
    return Visited(
        commit=commit,
        standing=record.standing,
        pairs=record.trials,
        worse=record.broken,
        better=record.sound if Side.BAD in records else None,
        change=math.expm1(float(np.median(changes))) if changes else None,
        low=low,
        high=high,
    )


def _changes(records: Records, metric: Metric) -> list[float]:
    """Logarithms of the ratios of the commit's trials to those of GOOD, of pairs that both succeeded."""
    pairs = zip(records[Side.COMMIT].trials, records[Side.GOOD].trials, strict=False)
    found = [
        tuple(each.measurements[metric.name].number for each in pair)
        for pair in pairs
        if all(each.succeeded and metric.name in each.measurements for each in pair)
    ]
    return [math.log(one / other) for one, other in found if one and other and one > 0 and other > 0]


def _explanation(records: Records, metric: Metric) -> Explanation | None:
    found = explain(records[Side.GOOD], records[Side.COMMIT])
    return found.get(path_of(metric))
