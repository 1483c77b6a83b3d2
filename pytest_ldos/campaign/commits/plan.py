"""Plan of a search over commits: the search for a breaking point, with commits as its levels.

The levels are the places of commits, from GOOD at 0 to BAD. Each trial of a commit is compared with one of GOOD and
one of BAD, made with the same seed in the same minutes:

- a commit *breaks* when its trials are the worse ones of such pairs with GOOD too often for equal versions;
- a commit *holds* when its trials are the better ones of such pairs with BAD too often for equal versions.

Of two equal versions, either trial of a pair is the worse one with probability one half, whatever their
distribution is. So no size of the regression, noise or shape is assumed, and nothing is estimated: a commit that
performs as GOOD is called broken, and one that performs as BAD sound, with the test's error at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from pytest_ldos.campaign.bisection import TRIALS_PER_START, SearchPlan
from pytest_ldos.campaign.cost import Amount
from pytest_ldos.campaign.level_scale import LevelScale, Spacing

CONFIDENCE: Final = 0.95
MAX_TRIALS: Final = 1200
"""Default limit of a search, in trials of all versions: a step of 1.5 standard deviations takes about half of it."""

_EVEN: Final = 0.5
_PATIENCE: Final = 6.0
_SIDES: Final = 3
"""Versions of a round: GOOD, the commit, and BAD."""


@dataclass(frozen=True, kw_only=True)
class CommitScale(LevelScale):
    """Places of commits, from GOOD at 0 to BAD.

    Attributes:
        left_out: places that are never visited, because their commits cannot be measured.
    """

    low: float = 0.0
    spacing: Spacing = Spacing.LINEAR
    is_whole: bool = True
    left_out: frozenset[float] = frozenset()

    def between(self, one: float, other: float) -> float | None:
        """The middle one of the places between two that can be visited; ``None`` if there is none."""
        low, high = sorted((one, other))
        free = [place for place in map(float, range(int(low) + 1, int(high))) if place not in self.left_out]
        return free[len(free) // 2] if free else None

    def halvings(self) -> int:
        """Largest number of places that bisection visits between the ends, whichever are left out."""
        return (int(self.high - self.low) - 1).bit_length()


def plan_search(
    commits: int,
    *,
    confidence: float = CONFIDENCE,
    trials_per_start: int = TRIALS_PER_START,
    max_trials: int = MAX_TRIALS,
) -> SearchPlan:
    """The plan of a search.

    Args:
        commits: number of commits after GOOD, with BAD.
        confidence: probability that the commit is in the answer, if one commit brought the regression.
        trials_per_start: trials of each version in a round.
        max_trials: largest number of trials of all versions together.
    """
    return SearchPlan(
        scale=CommitScale(high=float(commits)),
        boundary=_EVEN,
        confidence=confidence,
        trials_per_start=trials_per_start,
        max_trials=max_trials // _SIDES,
        patience_factor=_PATIENCE,
        compares_ends=True,
    )


def without(plan: SearchPlan, places: Iterable[float]) -> SearchPlan:
    """The plan of a search that never visits these places."""
    assert isinstance(plan.scale, CommitScale)
    return replace(plan, scale=replace(plan.scale, left_out=frozenset(places)))


def sides_at(plan: SearchPlan, place: float) -> int:
    """Number of versions that a round of a commit measures: BAD is compared with GOOD alone."""
    return _SIDES - (place == plan.scale.harsh)


def least_trials(plan: SearchPlan) -> int:
    """Smallest `max_trials` with which BAD and one commit more can be decided."""
    return 2 * _SIDES * plan.least_trials


def least_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    """Amount of a search in which every trial of a regressed commit is the worse one."""
    rounds = plan.least_trials // plan.trials_per_start
    starts = rounds * (_SIDES * plan.scale.halvings() + _SIDES - 1)
    return _amount(starts, warm_ups, plan)


def most_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    """Amount of a search that uses all trials it may."""
    return _amount(_SIDES * (plan.max_trials // plan.trials_per_start), warm_ups, plan)


def _amount(starts: int, warm_ups: int, plan: SearchPlan) -> Amount:
    return Amount(starts, starts * warm_ups, starts * plan.trials_per_start)
