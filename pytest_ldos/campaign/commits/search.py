"""Searches for the commit that brought a regression: measures the commits that `Bisection` asks for.

Rounds are on disk once they are made; an interrupted search resumes from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pytest_ldos.base.errors import BringUpFailed, PreparationFailed
from pytest_ldos.campaign.bisection import Bisection, LevelState, SearchPlan
from pytest_ldos.campaign.commits.evidence import CommitEvidence
from pytest_ldos.campaign.commits.listing import Commit
from pytest_ldos.campaign.commits.plan import without
from pytest_ldos.campaign.commits.result import CommitResult, conclude
from pytest_ldos.campaign.commits.rounds import CommitFailed, CommitNotBuilt, Records, Side, compare_round, rounds_in
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.measure.metrics.model import Metric

_FORGIVEN: Final = 1
"""Number of starts in the rounds of a commit that may fail before it is skipped, or the search ends."""

_NOT_MEASURED: Final = frozenset({LevelState.UNMEASURED, LevelState.UNVALUED, LevelState.NOT_STARTED})

MeasureRound = Callable[[Mapping[Side, Version], Records, int], Records]
"""Returns the records with one more round, of this number; see `measure_round`."""


class CommitObserver(Protocol):
    """Observer of a search."""

    def begin_round(self, commit: Commit, number: int, bisection: Bisection) -> None:
        """A round of a commit begins, counted from 0."""

    def note(self, text: str) -> None:
        """A remark for the user."""


@dataclass(kw_only=True)
class CommitSearch:
    """A search that measures.

    Attributes:
        commits: from GOOD to BAD.
        metric: in which commits are compared.
        prepare: returns a commit as it is built.
    """

    commits: Sequence[Commit]
    plan: SearchPlan
    metric: Metric
    prepare: Callable[[Commit], Version]
    measure: MeasureRound
    evidence: CommitEvidence
    observer: CommitObserver
    _records: dict[float, Records] = field(default_factory=dict)
    _left_out: dict[float, str] = field(default_factory=dict)
    _failures: dict[float, int] = field(default_factory=dict)
    _counted: list[tuple[float, int]] = field(default_factory=list)
    _versions: tuple[float, Mapping[Side, Version]] | None = None

    def __post_init__(self) -> None:
        self._bisection = Bisection(self.plan)

    def run(self) -> CommitResult:
        """Searches until one commit is left, none can be told from the others, or the trials are spent.

        Raises:
            PreparationFailed: GOOD or BAD cannot be built.
            BringUpFailed, CommitFailed: the stack of GOOD or BAD failed more than once.
            LoadFailed, RecordingFailed: see `measure_round`; complete rounds are kept.
            RecordUnreadable: kept rounds cannot be read, although they may be whole.
        """
        for damaged in self.evidence.set_damaged_aside():
            self.observer.note(f"damaged, set aside and measured again: {damaged}")
        while (place := self._bisection.next_level()) is not None:
            try:
                self._add_round(place)
            except (CommitFailed, BringUpFailed) as error:
                self._fail(place, error)
            self._skip_unmeasured(place)
        self.evidence.drop()
        return conclude(
            self.plan,
            self._bisection,
            commits=self.commits,
            metric=self.metric,
            records=self._records,
            left_out=self._left_out,
        )

    def _add_round(self, place: float) -> None:
        """Adds a round of a commit to the search: one that is kept, or a new one."""
        number = sum(each == place for each, _ in self._counted)
        if place not in self._records:
            self._find_kept(place)
        if number >= self._rounds_of(place):
            self._measure(place, number)
        self._counted.append((place, number))
        self._count(place, number)

    def _find_kept(self, place: float) -> None:
        self._records[place] = self.evidence.records(self._commit(place))
        if found := self._rounds_of(place):
            self.observer.note(f"continues what was interrupted; rounds of {self._commit(place).name}: {found}")

    def _measure(self, place: float, number: int) -> None:
        commit, records = self._commit(place), self._records[place]
        versions = self._prepared(place)
        self.observer.begin_round(commit, number, self._bisection)
        self._records[place] = self.measure(versions, records, number)
        self.evidence.keep(commit, self._records[place])

    def _prepared(self, place: float) -> Mapping[Side, Version]:
        """The versions of a round, prepared once while a commit is measured: only the last few are kept built.

        Raises:
            CommitNotBuilt: the commit cannot be built, and is not BAD.
            PreparationFailed: GOOD or BAD cannot be built.
        """
        if self._versions is None or self._versions[0] != place:
            good, bad, is_bad = self.commits[0], self.commits[-1], place == self.plan.scale.harsh
            ends = {Side.GOOD: good} if is_bad else {Side.GOOD: good, Side.BAD: bad}
            versions = {side: self.prepare(each) for side, each in ends.items()}
            versions[Side.COMMIT] = self.prepare(bad) if is_bad else self._built(self._commit(place))
            self._versions = place, versions
        return self._versions[1]

    def _built(self, commit: Commit) -> Version:
        try:
            return self.prepare(commit)
        except PreparationFailed as error:
            raise CommitNotBuilt(error.message, details=error.details, remedy=error.remedy) from None

    def _count(self, place: float, number: int) -> None:
        size = self.plan.trials_per_start
        trials = range(number * size, (number + 1) * size)
        self._bisection.add(compare_round(place, self._records[place], self.metric, trials))

    def _fail(self, place: float, error: CommitFailed | BringUpFailed) -> None:
        """Skips a commit that does not build, or whose stack failed more than once.

        Raises:
            CommitFailed: it is BAD.
            BringUpFailed: it was the stack of GOOD or BAD, beside this commit.
        """
        self._failures[place] = self._failures.get(place, 0) + 1
        if not isinstance(error, CommitNotBuilt) and self._failures[place] <= _FORGIVEN:
            self.observer.note(f"{error.message}: tried again")
        elif isinstance(error, BringUpFailed) or place == self.plan.scale.harsh:
            raise error
        else:
            self._leave_out(place, error.message)

    def _skip_unmeasured(self, place: float) -> None:
        record = self._bisection.records.get(place)
        if record is not None and record.standing in _NOT_MEASURED and place != self.plan.scale.harsh:
            reasons = [each.reason for each in record.exclusions]
            self._leave_out(place, reasons[-1] if reasons else f"most trials have no {self.metric.name}")

    def _leave_out(self, place: float, reason: str) -> None:
        """Searches the other commits; equal rounds lead to the same places."""
        self.observer.note(f"skipped: {self._commit(place)}: {reason}")
        self._left_out[place] = reason
        self._bisection = Bisection(without(self.plan, self._left_out))
        self._counted = [each for each in self._counted if each[0] != place]
        for each in self._counted:
            self._count(*each)

    def _rounds_of(self, place: float) -> int:
        return rounds_in(self._records[place], self.plan.trials_per_start)

    def _commit(self, place: float) -> Commit:
        return self.commits[int(place)]
