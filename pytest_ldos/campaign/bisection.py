"""Noisy bisection: the level at which trials begin to break, between two levels of which each was shown.

A level is tested until its trials show on which side of the boundary it lies (`stats.confidence_sequence`). It can
be wrong in one way only: levels below the threshold can only be called broken by mistake, those above it
only sound. So if a search visits no more than K levels and each errs with probability (1 - confidence) / K
at most, the threshold lies between the highest level that was shown to hold and the lowest that was shown to
break with the confidence that is asked for, provided that harsher levels never break less (`monotony`).

A level that stays undecided (its share of broken trials is near the boundary) blocks nothing: the search narrows
from both sides of it, and ends with an interval that is as wide as what nobody could tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final

from pytest_ldos.campaign.level_scale import LevelScale
from pytest_ldos.stats.confidence_sequence import BoundaryTest, Side
from pytest_ldos.stats.overdispersion import SUPPOSED_CORRELATION, tempering

TRIALS_PER_START: Final = 4
"""As a rule: three starts then decide a clear level; with five trials, it takes three starts, too."""

_BOTH_ENDS: Final = 2
_EXTRA_LEVELS: Final = 3
"""For narrowing from both sides of what stays undecided, and for one look at whether harsher levels break, too."""

_MOST_UNDECIDED: Final = 3
"""Levels near the threshold that are given up before the search ends."""

_PATIENCE: Final = 2.0
"""Times the trials that a clear level takes: after these, one is given up as undecided."""

_FORGIVEN: Final = 1
"""Starts of a level that may come to nothing before it is given up."""

_WITHIN_REACH: Final = 0.9
"""Of what a load reached when more was asked of it."""


class Standing(StrEnum):
    """What is known of a level."""

    OPEN = "open"
    HOLDS = "holds"
    BREAKS = "breaks"
    UNDECIDED = "undecided"
    UNREACHED = "load not reached"
    NOT_STARTED = "stack did not start"
    UNMEASURED = "not measured"
    UNVALUED = "without values"


class Mishap(StrEnum):
    """Why a start counts as neither."""

    UNREACHED = "the load was not reached"
    NOT_STARTED = "the stack did not start"
    UNMEASURED = "nothing was measured"


_GIVEN_UP_AS: Final = {
    Mishap.UNREACHED: Standing.UNREACHED,
    Mishap.NOT_STARTED: Standing.NOT_STARTED,
    Mishap.UNMEASURED: Standing.UNMEASURED,
}


class Finding(StrEnum):
    """How a search ends."""

    BREAKS = "breaks"
    HOLDS = "does not break"
    BROKEN_WHEN_CALM = "broken already at the calm end"
    OUT_OF_REACH = "holds as far as could be measured"
    UNDECIDED = "undecided"
    UNMEASURED = "could not be measured"


@dataclass(frozen=True)
class Batch:
    """What one start at a level gave.

    Attributes:
        trials: that count; none where there was a mishap.
        achieved: the level that the load reached, where it was less than asked for and is known.
        succeeded: trials that did, whether they count or not.
        unvalued: of these, those without a value of the metric that is asked about: they do not count.
    """

    level: float
    trials: int = 0
    broken: int = 0
    mishap: Mishap | None = None
    reason: str = ""
    achieved: float | None = None
    succeeded: int = 0
    unvalued: int = 0


@dataclass
class LevelRecord:
    """A level that was visited.

    Attributes:
        batches: in the order in which they were measured.
    """

    level: float
    standing: Standing = Standing.OPEN
    batches: list[Batch] = field(default_factory=list)

    @property
    def trials(self) -> int:
        return sum(each.trials for each in self.batches)

    @property
    def broken(self) -> int:
        return sum(each.broken for each in self.batches)

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Broken trials and all, of each start."""
        return [(each.broken, each.trials) for each in self.batches if each.trials]

    @property
    def mishaps(self) -> list[Batch]:
        return [each for each in self.batches if each.mishap is not None]

    @property
    def succeeded(self) -> int:
        return sum(each.succeeded for each in self.batches)

    @property
    def unvalued(self) -> int:
        return sum(each.unvalued for each in self.batches)

    @property
    def lacks_values(self) -> bool:
        """Whether most of the trials that succeeded say nothing of the metric: the others need not be like them."""
        return 2 * self.unvalued > self.succeeded

    @property
    def is_blocked(self) -> bool:
        """Whether it counts as neither."""
        return self.standing not in {Standing.OPEN, Standing.HOLDS, Standing.BREAKS}


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What is searched, and how sure one wants to be.

    Attributes:
        boundary: a level is broken when more than this share of its trials would be.
        max_trials: after which no further start is made.
        calm_trials: made at the calm end in any case, as what others are compared with.
        correlation: between trials of one start, at most; see `stats.overdispersion`.
    """

    scale: LevelScale
    boundary: float
    confidence: float = 0.9
    trials_per_start: int = TRIALS_PER_START
    max_trials: int = 200
    calm_trials: int = 12
    correlation: float = SUPPOSED_CORRELATION

    @cached_property
    def most_levels(self) -> int:
        """That are tested at most; the probability of error is shared by them equally."""
        return _BOTH_ENDS + self.scale.halvings() + _EXTRA_LEVELS

    @cached_property
    def test(self) -> BoundaryTest:
        """Of one level."""
        exponent = tempering(self.trials_per_start, self.boundary, self.correlation)
        return BoundaryTest(self.boundary, (1 - self.confidence) / self.most_levels, exponent)

    @cached_property
    def least_trials(self) -> int:
        """That a clear level takes, in whole starts."""
        return -(-self.test.fewest_trials // self.trials_per_start) * self.trials_per_start

    @cached_property
    def patience(self) -> int:
        """Trials after which a level is given up."""
        return round(_PATIENCE * self.least_trials)

    def patience_at(self, level: float) -> int:
        """Likewise; an end gets twice as many, for without it there is no interval."""
        return self.patience * (2 if level in {self.scale.calm, self.scale.harsh} else 1)


class Bisection:
    """The state of a search: tells which level comes next, and is told what came of it.

    The same answers lead to the same questions, so that an interrupted search goes on from its batches.
    """

    def __init__(self, plan: SearchPlan) -> None:
        self.plan = plan
        self.records: dict[float, LevelRecord] = {}

    def add(self, batch: Batch) -> None:
        """Takes in one start."""
        record = self.records.setdefault(batch.level, LevelRecord(batch.level))
        record.batches.append(batch)
        record.standing = self._standing(record)

    def next_level(self) -> float | None:
        """Where the next start belongs; ``None`` at the end."""
        if self.is_spent or self._is_over:
            return None
        pending = next((each.level for each in self.records.values() if each.standing is Standing.OPEN), None)
        if pending is not None or self._tested >= self.plan.most_levels:
            return pending
        return next((level for level in self._wanted() if level is not None and level not in self.records), None)

    @property
    def trials(self) -> int:
        """That were spent."""
        return sum(each.trials for each in self.records.values())

    @property
    def starts(self) -> int:
        """That were spent, those without a result too."""
        return sum(len(each.batches) for each in self.records.values())

    @property
    def most_left(self) -> int:
        """Trials that are still to come, at most."""
        if self.next_level() is None:
            return 0
        begun = sum(each.trials for each in self.records.values() if each.standing is Standing.OPEN)
        levels = self.plan.most_levels - self._tested + (begun > 0)
        settled = sum(1 for each in (self.plan.scale.calm, self.plan.scale.harsh) if self._is_settled(each))
        return min(self.plan.max_trials - self.trials, (levels + _BOTH_ENDS - settled) * self.plan.patience - begun)

    @property
    def is_spent(self) -> bool:
        """Whether one more start would take more trials than there may be."""
        return self.trials + self.plan.trials_per_start > self.plan.max_trials

    @property
    def holds(self) -> LevelRecord | None:
        """The harshest level that was shown to hold, below all that were shown to break."""
        sound = [each for each in self._of(Standing.HOLDS) if self.breaks is None or self._is_calmer(each, self.breaks)]
        return sound[-1] if sound else None

    @property
    def breaks(self) -> LevelRecord | None:
        """The calmest level that was shown to break."""
        return next(iter(self._of(Standing.BREAKS)), None)

    @property
    def ceiling(self) -> LevelRecord | None:
        """The calmest level that could not be measured, where no level was shown to break."""
        cut_off = (Standing.UNREACHED, Standing.NOT_STARTED, Standing.UNMEASURED, Standing.UNVALUED)
        above = [each for each in self._of(*cut_off) if self.holds is None or self._is_calmer(self.holds, each)]
        return above[0] if above and self.breaks is None else None

    @property
    def contradictions(self) -> list[LevelRecord]:
        """Levels that were shown to hold though a calmer one was shown to break."""
        return [each for each in self._of(Standing.HOLDS) if self.breaks and self._is_calmer(self.breaks, each)]

    @property
    def finding(self) -> Finding:
        """How the search ends, if it ends now."""
        calm = self.records.get(self.plan.scale.calm)
        harsh = self.records.get(self.plan.scale.harsh)
        if calm is None or (calm.is_blocked and calm.standing is not Standing.UNDECIDED):
            return Finding.UNMEASURED
        if calm.standing is Standing.BREAKS:
            return Finding.BROKEN_WHEN_CALM
        if calm.standing is Standing.HOLDS and self.breaks is not None:
            return Finding.BREAKS
        if harsh is not None and harsh.standing is Standing.HOLDS:
            return Finding.HOLDS
        return Finding.UNDECIDED if self.ceiling is None else Finding.OUT_OF_REACH

    @property
    def _is_over(self) -> bool:
        """Whether the calm end leaves nothing to search for."""
        calm = self.records.get(self.plan.scale.calm)
        return calm is not None and calm.standing not in {Standing.OPEN, Standing.HOLDS}

    def _is_settled(self, level: float) -> bool:
        return level in self.records and self.records[level].standing is not Standing.OPEN

    @property
    def _tested(self) -> int:
        return sum(1 for each in self.records.values() if each.trials)

    def _of(self, *standings: Standing) -> list[LevelRecord]:
        """Levels of some standings, the calmest first."""
        found = [each for each in self.records.values() if each.standing in standings]
        return sorted(found, key=lambda each: self.plan.scale.place(each.level))

    def _is_calmer(self, one: LevelRecord, other: LevelRecord) -> bool:
        return self.plan.scale.place(one.level) < self.plan.scale.place(other.level)

    def _standing(self, record: LevelRecord) -> Standing:
        if record.lacks_values and record.trials:
            return self._standing_without_values(record)
        least = self.plan.calm_trials if record.level == self.plan.scale.calm else 0
        side = self.plan.test.decide(record.broken, record.trials) if record.trials >= least else None
        if side is not None:
            return Standing.BREAKS if side is Side.ABOVE else Standing.HOLDS
        if record.trials >= max(least, self.plan.patience_at(record.level)):
            return Standing.UNDECIDED
        mishaps = [each.mishap for each in record.batches if each.mishap is not None]
        is_beyond = Mishap.UNREACHED in mishaps and not record.trials
        if is_beyond or len(mishaps) > _FORGIVEN:
            return _GIVEN_UP_AS[mishaps[-1]]
        return Standing.OPEN

    def _standing_without_values(self, record: LevelRecord) -> Standing:
        """Of a level that breaks only if enough trials are broken even where those without a value are not."""
        made = record.trials + record.unvalued
        if self.plan.test.decide(record.broken, made) is Side.ABOVE:
            return Standing.BREAKS
        is_hopeless = record.unvalued >= max(TRIALS_PER_START, record.broken)
        return Standing.UNVALUED if is_hopeless or made >= self.plan.patience_at(record.level) else Standing.OPEN

    def _wanted(self) -> Iterator[float | None]:
        """Levels to visit, the most wanted first; those visited already among them."""
        scale = self.plan.scale
        yield scale.calm
        yield scale.harsh
        if len(self._of(Standing.UNDECIDED)) < _MOST_UNDECIDED:
            yield from self._narrowing()
        yield self._monotony_probe()

    def _narrowing(self) -> Iterator[float | None]:
        """Middles of what lies between what holds and what breaks, the wider gap first."""
        scale, sound = self.plan.scale, self.holds
        end = self.breaks or self.ceiling
        blocked = [each for each in self.records.values() if each.is_blocked]
        assert sound is not None
        between = [
            each.level
            for each in blocked
            if self._is_calmer(sound, each) and (end is None or self._is_calmer(each, end))
        ]
        between.sort(key=scale.place)
        if self.breaks is None:
            reach = self._within_reach()
            if reach is not None and scale.place(reach) <= scale.place(sound.level):
                return
            yield reach
            yield from (scale.between(sound.level, each) for each in between[:1] or ([end.level] if end else []))
            return
        gaps = [(sound.level, self.breaks.level)]
        if between:
            gaps = [(sound.level, between[0]), (between[-1], self.breaks.level)]
        gaps.sort(key=lambda gap: scale.place(gap[0]) - scale.place(gap[1]))
        yield from (scale.between(*gap) for gap in gaps)

    def _within_reach(self) -> float | None:
        """A level just below what the load reached when more was asked of it; ``None`` where that is not known."""
        scale, ceiling = self.plan.scale, self.ceiling
        reached = None if ceiling is None else next((each.achieved for each in ceiling.batches if each.achieved), None)
        if reached is None or not scale.low < reached * _WITHIN_REACH < scale.high:
            return None
        return scale.level(scale.place(reached * _WITHIN_REACH))

    def _monotony_probe(self) -> float | None:
        """One level in the widest gap above the calmest that breaks, or where nothing breaks, in the middle of all."""
        scale = self.plan.scale
        if self.breaks is None:
            is_sound = self.finding is Finding.HOLDS
            return scale.between(scale.calm, scale.harsh) if is_sound else None
        visited = list(self.records.values())
        later = visited[visited.index(self.breaks) + 1 :]
        if self.contradictions or any(self._is_calmer(self.breaks, each) for each in later):
            return None
        above = [self.breaks.level, *(each.level for each in visited if self._is_calmer(self.breaks, each))]
        gaps = pairwise(sorted(above, key=scale.place))
        widest = max(gaps, key=lambda gap: scale.place(gap[1]) - scale.place(gap[0]), default=None)
        return None if widest is None else scale.between(*widest)
