"""Searches for the commit that introduced a regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from pytest_ldos.base.errors import BringUpFailed, PreparationFailed
from pytest_ldos.base.stats.counts import median_interval
from pytest_ldos.base.text import counted
from pytest_ldos.campaign.bisection import FORGIVEN_STARTS, Bisection, LevelRecord, LevelState, SearchPlan
from pytest_ldos.campaign.commit_rounds import (
    Commit,
    CommitFailed,
    CommitNotBuilt,
    CommitStore,
    Records,
    Side,
    compare_round,
    rounds_in,
    without,
)
from pytest_ldos.campaign.starts import CampaignObserver, StoredTrials, plain_spec
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.judge.baseline.accepted import Accepted
from pytest_ldos.judge.summary import Explanation, explain, path_of
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec

CHANGE_CONFIDENCE: Final = 0.95
"""Confidence of the displayed changes; no decision depends on them."""


class Finding(StrEnum):
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
        pairs: number of compared trials.
        worse, better: trials that were worse than GOOD's, and better than BAD's (``None`` for BAD itself).
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
        suspects: commits of which one introduced the regression, the oldest first; empty without an answer.
        sound: the commit before them.
        visited: measured commits, the oldest first.
        trials, starts: total numbers over all versions.
        why: reason why there is no single commit or no answer; else empty.
        explanation: changes of path segments in the last suspect, compared with GOOD; ``None`` if unknown.
        accepted: the change, if it was accepted.
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
    accepted: Accepted | None = None


def conclude(
    plan: SearchPlan,
    bisection: Bisection,
    *,
    commits: Sequence[Commit],
    metric: Metric,
    records: Mapping[float, Records],
    left_out: Mapping[float, str],
) -> CommitResult:
    holds, breaks = bisection.holds, bisection.breaks
    suspects: tuple[Commit, ...] = ()
    if holds is not None and breaks is not None:
        suspects = tuple(commits[int(holds.level) + 1 : int(breaks.level) + 1])
    sets = [each for some in records.values() for each in some.values()]
    explanations = explain(records[breaks.level][Side.GOOD], records[breaks.level][Side.COMMIT]) if breaks else {}
    return CommitResult(
        plan=plan,
        metric=metric,
        finding=_finding(bisection, suspects, records.get(plan.scale.harsh, {})),
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
        explanation=explanations.get(path_of(metric)),
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
            f"{', '.join(between)} could not be distinguished from GOOD or from BAD: "
            "the change is small for this noise, or several commits brought it"
        )
    return "the commits between could not be measured" if suspects else ""


def _visited(commit: Commit, record: LevelRecord, records: Records, metric: Metric) -> Visited:
    """A measured commit; its changes are those of pairs without a failure, as logarithms of ratios."""
    changes = []
    for pair in zip(records[Side.COMMIT].trials, records[Side.GOOD].trials, strict=False):
        if all(each.succeeded and metric.name in each.measurements for each in pair):
            one, other = (each.measurements[metric.name].number for each in pair)
            if one and other and one > 0 and other > 0:
                changes.append(math.log(one / other))
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


@dataclass(kw_only=True)
class CommitSearch:
    """Measures commits and searches for the regression.

    Attributes:
        commits: from GOOD to BAD.
        measure: see `measure_round`.
        where: identity of the machine (`machine_here`); rounds of others are ignored, as are those of another `spec`.
    """

    commits: Sequence[Commit]
    plan: SearchPlan
    metric: Metric
    spec: ScenarioSpec
    where: Mapping[str, str]
    prepare: Callable[[Commit], Version]
    measure: Callable[[Mapping[Side, Version], Records, int], Records]
    store: CommitStore
    observer: CampaignObserver
    _records: dict[float, Records] = field(default_factory=dict)
    _left_out: dict[float, str] = field(default_factory=dict)
    _failures: dict[float, int] = field(default_factory=dict)
    _counted: list[tuple[float, int]] = field(default_factory=list)
    _versions: tuple[float, Mapping[Side, Version]] | None = None

    def __post_init__(self) -> None:
        self._bisection = Bisection(self.plan)

    def run(self) -> CommitResult:
        """Searches until one commit is left, the remaining ones cannot be distinguished, or the trials are spent.

        Raises:
            PreparationFailed: GOOD or BAD cannot be built.
            BringUpFailed, CommitFailed: the stack of GOOD or BAD failed more than once.
            LoadFailed, RecordingFailed: see `measure_round`; complete rounds are kept.
        """
        self.store.recover(self.observer)
        while (place := self._bisection.next_level()) is not None:
            try:
                self._add_round(place)
            except (CommitFailed, BringUpFailed) as error:
                self._fail(place, error)
            record = self._bisection.records.get(place)
            unmeasured = {LevelState.UNMEASURED, LevelState.UNVALUED}
            if record is not None and record.standing in unmeasured and place != self.plan.scale.harsh:
                reasons = [each.reason for each in record.exclusions]
                self._leave_out(place, reasons[-1] if reasons else f"most trials have no {self.metric.name}")
        for file in self.store.files():
            file.unlink()
        return conclude(
            self.plan,
            self._bisection,
            commits=self.commits,
            metric=self.metric,
            records=self._records,
            left_out=self._left_out,
        )

    def _add_round(self, place: float) -> None:
        commit, size = self.commits[int(place)], self.plan.trials_per_start
        number = sum(each == place for each, _ in self._counted)
        if place not in self._records:
            self._records[place] = self._stored(commit)
            if found := rounds_in(self._records[place], size):
                self.observer.note(f"continues what was interrupted; rounds of {commit.name}: {found}")
        if number >= rounds_in(self._records[place], size):
            versions = self._prepared(place)
            holds, breaks, left = self._bisection.holds, self._bisection.breaks, ""
            if holds is not None and breaks is not None:
                left = f"; {counted(round(breaks.level - holds.level), 'commit')} left"
            self.observer.doing(f"round {number + 1} of {commit.name} ({commit.subject}){left}")
            self._records[place] = self.measure(versions, self._records[place], number)
            self.store.keep(StoredTrials(plain_spec(self.spec), self.where, self._records[place]), commit.name)
        self._counted.append((place, number))
        self._count(place, number)

    def _stored(self, commit: Commit) -> Records:
        file = self.store.path(commit.name)
        if not file.is_file():
            return {}
        stored = self.store.read(file)
        return stored.sets if (stored.asked, stored.version) == (plain_spec(self.spec), self.where) else {}

    def _prepared(self, place: float) -> Mapping[Side, Version]:
        """The versions of a round, prepared once per visited commit; only the last few builds are kept.

        Raises `CommitNotBuilt` for a commit other than BAD, and `PreparationFailed` for GOOD or BAD.
        """
        if self._versions is None or self._versions[0] != place:
            is_bad = place == self.plan.scale.harsh
            versions = {Side.GOOD: self.prepare(self.commits[0])}
            if not is_bad:
                versions[Side.BAD] = self.prepare(self.commits[-1])
            try:
                versions[Side.COMMIT] = self.prepare(self.commits[int(place)])
            except PreparationFailed as error:
                if is_bad:
                    raise
                raise CommitNotBuilt(error.message, details=error.details, remedy=error.remedy) from None
            self._versions = place, versions
        return self._versions[1]

    def _count(self, place: float, number: int) -> None:
        size = self.plan.trials_per_start
        trials = range(number * size, (number + 1) * size)
        self._bisection.add(compare_round(place, self._records[place], self.metric, trials))

    def _fail(self, place: float, error: CommitFailed | BringUpFailed) -> None:
        """Skips a commit that does not build, or whose stack failed more than once; raises the error of GOOD or BAD."""
        self._failures[place] = self._failures.get(place, 0) + 1
        if not isinstance(error, CommitNotBuilt) and self._failures[place] <= FORGIVEN_STARTS:
            self.observer.note(f"{error.message}: tried again")
        elif isinstance(error, BringUpFailed) or place == self.plan.scale.harsh:
            raise error
        else:
            self._leave_out(place, error.message)

    def _leave_out(self, place: float, reason: str) -> None:
        """Continues the search without a commit; equal rounds lead to the same positions."""
        self.observer.note(f"skipped: {self.commits[int(place)]}: {reason}")
        self._left_out[place] = reason
        self._bisection = Bisection(without(self.plan, self._left_out))
        self._counted = [each for each in self._counted if each[0] != place]
        for each in self._counted:
            self._count(*each)
