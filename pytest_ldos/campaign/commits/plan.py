"""Plan of a search over commits: those between a good one and a bad one, as levels.

The levels are the positions of commits, from GOOD at 0 to BAD. Each trial of a commit is compared with one of GOOD and
one of BAD, with the same seed and at about the same time:

- a commit *breaks* if its trials are worse than GOOD's significantly often;
- a commit *holds* if its trials are better than BAD's significantly often.

Of two equal versions, either trial of a pair is worse with probability 0.5, for any distribution. The test therefore
needs no assumption on effect size or noise: a commit equal to GOOD is called broken, and one equal to BAD sound, with
at most the test's error probability.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.bisection import TRIALS_PER_START, SearchPlan
from pytest_ldos.campaign.cost import Amount
from pytest_ldos.campaign.level_scale import LevelScale, Spacing
from pytest_ldos.campaign.versions.version import Revision, find_revision
from pytest_ldos.host.checkout import (
    UNSHALLOW,
    abbreviate,
    ask_git,
    describe_commit,
    is_changed,
    is_shallow,
    top_of_checkout,
    why_unknown,
)

CONFIDENCE: Final = 0.95
MAX_TRIALS: Final = 1200
"""Default limit of a search, in trials of all versions: a step of 1.5 standard deviations takes about half of it."""

_EVEN: Final = 0.5
_PATIENCE: Final = 6.0
_SIDES: Final = 3
"""Number of versions in a round: GOOD, the commit, and BAD."""


@dataclass(frozen=True, kw_only=True)
class CommitScale(LevelScale):
    """Positions of commits, from GOOD at 0 to BAD.

    Attributes:
        left_out: positions that are not visited, because their commits cannot be measured.
    """

    low: float = 0.0
    spacing: Spacing = Spacing.LINEAR
    is_whole: bool = True
    left_out: frozenset[float] = frozenset()

    def between(self, one: float, other: float) -> float | None:
        """The middle visitable position between two; ``None`` if there is none."""
        low, high = sorted((one, other))
        free = [place for place in map(float, range(int(low) + 1, int(high))) if place not in self.left_out]
        return free[len(free) // 2] if free else None

    def halvings(self) -> int:
        """Largest number of positions that bisection visits between the ends."""
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
        commits: number of commits after GOOD, including BAD.
        confidence: probability that the answer contains the commit, if a single commit introduced the regression.
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
    """The same plan without the given positions."""
    assert isinstance(plan.scale, CommitScale)
    return replace(plan, scale=replace(plan.scale, left_out=frozenset(places)))


def sides_at(plan: SearchPlan, place: float) -> int:
    """Number of versions in a round of a commit; a round of BAD has no third version."""
    return _SIDES - (place == plan.scale.harsh)


def least_trials(plan: SearchPlan) -> int:
    """Smallest `max_trials` that can decide BAD and one more commit."""
    return 2 * _SIDES * plan.least_trials


def least_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    """Amount of a search in which every trial of a regressed commit is the worse one."""
    rounds = plan.least_trials // plan.trials_per_start
    starts = rounds * (_SIDES * plan.scale.halvings() + _SIDES - 1)
    return _amount(starts, warm_ups, plan)


def most_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    """Amount of a search that uses all allowed trials."""
    return _amount(_SIDES * (plan.max_trials // plan.trials_per_start), warm_ups, plan)


def _amount(starts: int, warm_ups: int, plan: SearchPlan) -> Amount:
    return Amount(starts, starts * warm_ups, starts * plan.trials_per_start)


_FORM: Final = "%H%x00%cs%x00%P%x00%s"
"""Commit, date, parents and subject."""


@dataclass(frozen=True)
class Commit:
    """A commit of the project.

    Attributes:
        name: abbreviated, as in records.
        date: commit date, ISO 8601.
        is_merge: True if it has several parents.
    """

    name: str
    date: str
    subject: str
    is_merge: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.date} {self.subject}"


def list_commits(good: str, bad: str, root: Path) -> tuple[Commit, ...]:
    """The commits to search, GOOD first and BAD last.

    A merge stands for all commits of the branch that it merged.

    Raises:
        ConfigurationError: a revision is unknown, GOOD is BAD or no ancestor of it, or there are uncommitted changes.
    """
    first, last = (_revision(text, what, root) for text, what in ((good, "GOOD"), (bad, "BAD")))
    if is_changed(describe_commit(root)):
        raise ConfigurationError(
            "the work tree has uncommitted changes, which belong to no commit",
            remedy="commit or stash them: settings come from the work tree, and sources from each commit",
        )
    if first.commit == last.commit:
        raise ConfigurationError(f"GOOD and BAD are the same commit, {first.commit}", remedy="name two commits")
    if ask_git(root, "merge-base", "--is-ancestor", first.commit, last.commit) is None:
        raise _not_between(first, last, root)
    after = ask_git(root, "log", "--first-parent", "--reverse", f"--format={_FORM}", f"{first.commit}..{last.commit}")
    itself = ask_git(root, "log", "--max-count=1", f"--format={_FORM}", first.commit)
    return tuple(_parse(line, root) for line in f"{itself}\n{after}".splitlines())


def _revision(text: str, what: str, root: Path) -> Revision:
    found = find_revision(text, root)
    if found is not None:
        return found
    words = why_unknown(text, root)
    if top_of_checkout(root) is None:
        raise ConfigurationError(
            f"git knows no revision in {root.resolve()}: {words.reason}",
            remedy=words.remedy or "run it in the project's checkout",
        )
    raise ConfigurationError(
        f"{what} {text}: there is no revision of this name{f': {words.reason}' if words.reason else ''}",
        remedy=words.remedy
        or "name a commit, tag or branch that `git rev-parse` knows here (git fetch may be missing)",
    )


def _not_between(first: Revision, last: Revision, root: Path) -> ConfigurationError:
    is_reversed = ask_git(root, "merge-base", "--is-ancestor", last.commit, first.commit) is not None
    fork = ask_git(root, "merge-base", first.commit, last.commit)
    remedy = "name a GOOD that BAD descends from"
    if is_reversed:
        remedy = "it is a descendant: exchange the two"
    elif fork:
        remedy = f"their last common ancestor is {abbreviate(fork, root)}: name it as GOOD"
    elif is_shallow(root):
        remedy = f"this clone is shallow, and may lack what connects them: {UNSHALLOW}"
    return ConfigurationError(f"GOOD {first.text} is no ancestor of BAD {last.text}", remedy=remedy)


def _parse(line: str, root: Path) -> Commit:
    commit, date, parents, subject = line.split("\0")
    return Commit(abbreviate(commit, root), date, subject, is_merge=len(parents.split()) > 1)
