"""Noisy bisection: finds the level at which trials begin to break.

A level is tested until its trials show on which side of the boundary it lies (`stats.several_tests`). Errors are
one-sided: a level below the threshold can only be mistaken as broken, a level above it only as sound. If a search
visits at most K levels, and each errs with probability at most (1 - confidence) / K, the threshold lies between the
highest level shown to hold and the lowest shown to break with the requested confidence, provided that harsher levels
never break less. A level that remains inconclusive does not block the search: it narrows from both sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.base.stats.counts import SUPPOSED_CORRELATION, tempering
from pytest_ldos.base.stats.several_tests import BoundaryTest, Side

_DIGITS: Final = 3

_FINEST: Final = 0.01

_TOUCH: Final = 1e-9


class Spacing(StrEnum):
    LOG = "log"
    LINEAR = "linear"


@dataclass(frozen=True, kw_only=True)
class LevelScale:
    """A range of levels; places on it go from 0, its calm end, to 1, its harsh end.

    Attributes:
        precision: levels are close enough if they differ by at most this share of the lower one (on a linear
            scale also by at most a hundredth of the range), or are neighbours.
        is_falling: True if less is harsher: the calm end is then `high`.
    """

    low: float
    high: float
    spacing: Spacing = Spacing.LOG
    precision: float = 0.1
    is_whole: bool = False
    is_falling: bool = False

    def __post_init__(self) -> None:
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(
            finite and self.low < self.high,
            f"there is nothing to search from {self.low:g} to {self.high:g}",
            remedy="--lo must be less than --hi",
        )
        require(
            self.low > 0 or self.spacing is Spacing.LINEAR,
            f"a range from {self.low:g} has no logarithms",
            remedy="give a --lo above 0, or --scale linear",
        )
        require(0 < self.precision < math.inf, f"a precision of {self.precision:g}", remedy="write it as 10% or 0.1")
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        require(
            whole or not self.is_whole,
            f"from {self.low:g} to {self.high:g}: only whole numbers are possible here",
            remedy="give whole numbers as --lo and --hi",
        )

    @property
    def calm(self) -> float:
        return self.high if self.is_falling else self.low

    @property
    def harsh(self) -> float:
        return self.low if self.is_falling else self.high

    def place(self, level: float) -> float:
        low, high = self._coordinate(self.low), self._coordinate(self.high)
        share = (self._coordinate(level) - low) / (high - low)
        return 1 - share if self.is_falling else share

    def level(self, place: float) -> float:
        """The level at a place, rounded to a readable value that can be set."""
        low, high = self._coordinate(self.low), self._coordinate(self.high)
        share = 1 - place if self.is_falling else place
        exact = low + share * (high - low)
        value = math.exp(exact) if self.spacing is Spacing.LOG else exact
        rounded = float(round(value)) if self.is_whole else float(f"{value:.{_DIGITS}g}")
        return min(self.high, max(self.low, rounded))

    def between(self, one: float, other: float) -> float | None:
        """The level in the middle of two; ``None`` if they are close enough or adjacent."""
        if self.is_near(one, other):
            return None
        middle = self.level((self.place(one) + self.place(other)) / 2)
        return middle if min(one, other) + _TOUCH < middle < max(one, other) - _TOUCH else None

    def is_near(self, one: float, other: float) -> bool:
        low, high = sorted((one, other))
        near = self.precision * abs(low)
        if self.spacing is Spacing.LINEAR:
            near = max(near, _FINEST * (self.high - self.low))
        return (self.is_whole and high - low <= 1) or high - low <= near * (1 + _TOUCH)

    def halvings(self) -> int:
        """Largest number of levels that bisection visits between the ends."""

        def count(low: float, high: float) -> int:
            middle = self.between(low, high)
            return 0 if middle is None else 1 + max(count(low, middle), count(middle, high))

        return count(self.low, self.high)

    def _coordinate(self, level: float) -> float:
        return math.log(level) if self.spacing is Spacing.LOG else level


TRIALS_PER_START: Final = 4
"""Default number of trials per start, with which a clear level takes three starts."""

_BOTH_SIDES: Final = 2
"""Levels reserved for narrowing from both sides of an inconclusive one."""


FORGIVEN_STARTS: Final = 1
"""Largest number of excluded starts of a level, or of failed ones of a commit."""

_WITHIN_REACH: Final = 0.9
"""Share of the reached level at which the search continues after a load did not reach its request."""


class LevelState(StrEnum):
    OPEN = "open"
    HOLDS = "holds"
    BREAKS = "breaks"
    UNDECIDED = "undecided"
    UNREACHED = "load not reached"
    NOT_STARTED = "stack did not start"
    UNMEASURED = "not measured"
    UNVALUED = "without values"


class Exclusion(StrEnum):
    UNREACHED = "the load was not reached"
    NOT_STARTED = "the stack did not start"
    UNMEASURED = "nothing was measured"


_GIVEN_UP_AS: Final = {
    Exclusion.UNREACHED: LevelState.UNREACHED,
    Exclusion.NOT_STARTED: LevelState.NOT_STARTED,
    Exclusion.UNMEASURED: LevelState.UNMEASURED,
}


class Finding(StrEnum):
    BREAKS = "breaks"
    HOLDS = "does not break"
    BROKEN_WHEN_CALM = "broken already at the calm end"
    OUT_OF_REACH = "holds as far as could be measured"
    UNDECIDED = "undecided"
    UNMEASURED = "could not be measured"


@dataclass(frozen=True)
class Batch:
    """Result of one start at a level."""

    level: float
    trials: int = 0  # number of trials that count; 0 if the start is excluded
    broken: int = 0
    sound: int | None = None  # number of trials that count for it; ``None`` if all its other trials do
    exclusion: Exclusion | None = None
    reason: str = ""
    achieved: float | None = None  # level that the load reached, if that was less than requested and is known
    succeeded: int = 0  # number of successful trials, whether they count or not
    unvalued: int = 0  # number of successful trials without a value of the criterion's metric, which do not count


@dataclass
class LevelRecord:
    level: float
    standing: LevelState = LevelState.OPEN
    batches: list[Batch] = field(default_factory=list)

    @property
    def trials(self) -> int:
        return sum(each.trials for each in self.batches)

    @property
    def broken(self) -> int:
        return sum(each.broken for each in self.batches)

    @property
    def sound(self) -> int:
        return sum(each.trials - each.broken if each.sound is None else each.sound for each in self.batches)

    @property
    def exclusions(self) -> list[Batch]:
        return [each for each in self.batches if each.exclusion is not None]

    @property
    def succeeded(self) -> int:
        return sum(each.succeeded for each in self.batches)

    @property
    def unvalued(self) -> int:
        return sum(each.unvalued for each in self.batches)

    @property
    def is_blocked(self) -> bool:
        return self.standing not in {LevelState.OPEN, LevelState.HOLDS, LevelState.BREAKS}


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """Settings of a search.

    Attributes:
        boundary: a level is broken if more than this share of its trials would be.
        max_trials: no start is made that would exceed it.
        calm_trials: least number of trials at the calm end, the reference of the other levels.
        correlation: largest assumed correlation between trials of one start; see `tempering`.
        patience_factor: multiple of the trials of a clear level, after which a level is given up as inconclusive.
        compares_ends: True if trials of each level are compared with those of both ends: the calm end then holds by
            definition, nothing is searched unless the harsh one breaks, and no level beyond the calmest that
            breaks is tested.
    """

    scale: LevelScale
    boundary: float
    confidence: float = 0.9
    trials_per_start: int = TRIALS_PER_START
    max_trials: int = 200
    calm_trials: int = 12
    correlation: float = SUPPOSED_CORRELATION
    patience_factor: float = 2.0
    compares_ends: bool = False

    @cached_property
    def most_levels(self) -> int:
        """Largest number of levels that are tested; they share the probability of error equally."""
        return (1 if self.compares_ends else 3) + self.scale.halvings() + _BOTH_SIDES

    @cached_property
    def test(self) -> BoundaryTest:
        exponent = tempering(self.trials_per_start, self.boundary, self.correlation)
        return BoundaryTest(self.boundary, (1 - self.confidence) / self.most_levels, exponent)

    @cached_property
    def least_trials(self) -> int:
        """Trials that a clear level takes, in whole starts."""
        return -(-self.test.fewest_trials // self.trials_per_start) * self.trials_per_start

    @cached_property
    def patience(self) -> int:
        return round(self.patience_factor * self.least_trials)


class Bisection:
    """Chooses levels by the results so far; equal results lead to the same levels, so that a search can resume."""

    def __init__(self, plan: SearchPlan) -> None:
        self.plan = plan
        self.records: dict[float, LevelRecord] = {}
        if plan.compares_ends:
            self.records[plan.scale.calm] = LevelRecord(plan.scale.calm, LevelState.HOLDS)

    def add(self, batch: Batch) -> None:
        record = self.records.setdefault(batch.level, LevelRecord(batch.level))
        record.batches.append(batch)
        record.standing = self._state(record)

    def next_level(self) -> float | None:
        """Level of the next start; ``None`` at the end."""
        calm, harsh = (self.records.get(each) for each in (self.plan.scale.calm, self.plan.scale.harsh))
        if harsh is not None and self.plan.compares_ends:
            is_over = harsh.standing not in {LevelState.OPEN, LevelState.BREAKS}
        else:
            is_over = calm is not None and calm.standing not in {LevelState.OPEN, LevelState.HOLDS}
        if self.is_spent or is_over:
            return None
        pending = next((each.level for each in self.records.values() if each.standing is LevelState.OPEN), None)
        if pending is not None or self._tested >= self.plan.most_levels:
            return pending
        return next((level for level in self._wanted() if level is not None and level not in self.records), None)

    @property
    def trials(self) -> int:
        return sum(each.trials for each in self.records.values())

    @property
    def starts(self) -> int:
        return sum(len(each.batches) for each in self.records.values())

    @property
    def most_left(self) -> int:
        """Largest number of remaining trials."""
        if self.next_level() is None:
            return 0
        begun = sum(each.trials for each in self.records.values() if each.standing is LevelState.OPEN)
        levels = self.plan.most_levels - self._tested + (begun > 0)
        ends = [self.records.get(each) for each in (self.plan.scale.calm, self.plan.scale.harsh)]
        unsettled = sum(each is None or each.standing is LevelState.OPEN for each in ends)
        return min(self.plan.max_trials - self.trials, (levels + unsettled) * self.plan.patience - begun)

    @property
    def is_spent(self) -> bool:
        """True if one more start would exceed the largest number of trials."""
        return self.trials + self.plan.trials_per_start > self.plan.max_trials

    @property
    def holds(self) -> LevelRecord | None:
        """The harshest level shown to hold, below all levels shown to break."""
        sound = [
            each for each in self._of(LevelState.HOLDS) if self.breaks is None or self._is_calmer(each, self.breaks)
        ]
        return sound[-1] if sound else None

    @property
    def breaks(self) -> LevelRecord | None:
        """The calmest level shown to break."""
        return next(iter(self._of(LevelState.BREAKS)), None)

    @property
    def ceiling(self) -> LevelRecord | None:
        """The calmest level that could not be measured, if no level was shown to break."""
        cut_off = (LevelState.UNREACHED, LevelState.NOT_STARTED, LevelState.UNMEASURED, LevelState.UNVALUED)
        above = [each for each in self._of(*cut_off) if self.holds is None or self._is_calmer(self.holds, each)]
        return above[0] if above and self.breaks is None else None

    @property
    def contradictions(self) -> list[LevelRecord]:
        """Levels shown to hold although a calmer one was shown to break."""
        return [each for each in self._of(LevelState.HOLDS) if self.breaks and self._is_calmer(self.breaks, each)]

    @property
    def finding(self) -> Finding:
        calm = self.records.get(self.plan.scale.calm)
        harsh = self.records.get(self.plan.scale.harsh)
        if calm is None or (calm.is_blocked and calm.standing is not LevelState.UNDECIDED):
            return Finding.UNMEASURED
        if calm.standing is LevelState.BREAKS:
            return Finding.BROKEN_WHEN_CALM
        if calm.standing is LevelState.HOLDS and self.breaks is not None:
            return Finding.BREAKS
        if harsh is not None and harsh.standing is LevelState.HOLDS:
            return Finding.HOLDS
        return Finding.UNDECIDED if self.ceiling is None else Finding.OUT_OF_REACH

    @property
    def _tested(self) -> int:
        return sum(1 for each in self.records.values() if each.trials)

    def _of(self, *states: LevelState) -> list[LevelRecord]:
        found = [each for each in self.records.values() if each.standing in states]
        return sorted(found, key=lambda each: self.plan.scale.place(each.level))

    def _is_calmer(self, one: LevelRecord, other: LevelRecord) -> bool:
        return self.plan.scale.place(one.level) < self.plan.scale.place(other.level)

    def _state(self, record: LevelRecord) -> LevelState:
        plan, scale = self.plan, self.plan.scale
        patience = plan.patience * (2 if record.level in {scale.calm, scale.harsh} else 1)  # an interval needs the ends
        if record.trials and 2 * record.unvalued > record.succeeded:
            # Those with a value may not be representative. It breaks only if enough trials are broken when trials
            # without a value count as unbroken.
            made = record.trials + record.unvalued
            if plan.test.decide(record.broken, made) is Side.ABOVE:
                return LevelState.BREAKS
            is_hopeless = record.unvalued >= max(TRIALS_PER_START, record.broken)
            return LevelState.UNVALUED if is_hopeless or made >= patience else LevelState.OPEN
        least = plan.calm_trials if record.level == scale.calm else 0
        if record.trials >= least:
            side = plan.test.decide(record.broken, record.trials, misses=record.sound)
            if side is not None:
                return LevelState.BREAKS if side is Side.ABOVE else LevelState.HOLDS
        if record.trials >= max(least, patience):
            return LevelState.UNDECIDED
        exclusions = [each.exclusion for each in record.batches if each.exclusion is not None]
        is_beyond = Exclusion.UNREACHED in exclusions and not record.trials
        if is_beyond or len(exclusions) > FORGIVEN_STARTS:
            return _GIVEN_UP_AS[exclusions[-1]]
        return LevelState.OPEN

    def _wanted(self) -> Iterator[float | None]:
        """Levels to visit, by decreasing priority; may include visited ones."""
        scale = self.plan.scale
        yield scale.calm
        yield scale.harsh
        if len(self._of(LevelState.UNDECIDED)) < 3:  # with more, the search has narrowed enough
            yield from self._narrowing()
        if not self.plan.compares_ends:
            yield self._monotony_probe()

    def _narrowing(self) -> Iterator[float | None]:
        """Middles of the gaps between the level that holds and the one that breaks, the wider gap first."""
        scale, sound, ceiling = self.plan.scale, self.holds, self.ceiling
        end = self.breaks or ceiling
        assert sound is not None
        between = [
            each.level
            for each in self.records.values()
            if each.is_blocked and self._is_calmer(sound, each) and (end is None or self._is_calmer(each, end))
        ]
        between.sort(key=scale.place)
        if self.breaks is None:
            achieved = next((each.achieved for each in ceiling.batches if each.achieved), None) if ceiling else None
            if achieved is not None and scale.low < achieved * _WITHIN_REACH < scale.high:
                reach = scale.level(scale.place(achieved * _WITHIN_REACH))
                if scale.place(reach) <= scale.place(sound.level):
                    return
                yield reach
            yield from (scale.between(sound.level, each) for each in between[:1] or ([end.level] if end else []))
            return
        gaps = [(sound.level, self.breaks.level)]
        if between:
            gaps = [(sound.level, between[0]), (between[-1], self.breaks.level)]
        gaps.sort(key=lambda gap: scale.place(gap[0]) - scale.place(gap[1]))
        yield from (scale.between(*gap) for gap in gaps)

    def _monotony_probe(self) -> float | None:
        """A level in the widest gap above the calmest that breaks; if none breaks, the middle of the whole range."""
        scale = self.plan.scale
        if self.breaks is None:
            return scale.between(scale.calm, scale.harsh) if self.finding is Finding.HOLDS else None
        visited = list(self.records.values())
        later = visited[visited.index(self.breaks) + 1 :]
        if self.contradictions or any(self._is_calmer(self.breaks, each) for each in later):
            return None
        above = [self.breaks.level, *(each.level for each in visited if self._is_calmer(self.breaks, each))]
        gaps = pairwise(sorted(above, key=scale.place))
        widest = max(gaps, key=lambda gap: scale.place(gap[1]) - scale.place(gap[0]), default=None)
        return None if widest is None else scale.between(*widest)
