"""Commits between a good one and a bad one: the plan of a search, its rounds, and their storage.

The levels are the positions of commits, from GOOD at 0 to BAD. Each trial of a commit is compared with one of GOOD and
one of BAD, with the same seed and at about the same time:

- a commit *breaks* if its trials are worse than GOOD's significantly often;
- a commit *holds* if its trials are better than BAD's significantly often.

Of two equal versions, either trial of a pair is worse with probability 0.5, for any distribution. The test therefore
needs no assumption on effect size or noise: a commit equal to GOOD is called broken, and one equal to BAD sound, with
at most the test's error probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, LdosError, LoadFailed
from pytest_ldos.base.series import Better
from pytest_ldos.campaign.bisection import TRIALS_PER_START, Batch, Exclusion, LevelScale, SearchPlan, Spacing
from pytest_ldos.campaign.blocks import Bench, run_block
from pytest_ldos.campaign.estimate import Amount
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.starts import Site, Store, StoredTrials, bench_of, decode_stored, encode_stored, shortfall_of
from pytest_ldos.campaign.versions.version import Revision, Version, find_revision
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
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.artifacts import drop_folder, new_run_folder, new_scenario_folder
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.scenario.model import ScenarioSpec

CONFIDENCE: Final = 0.95
MAX_TRIALS: Final = 1200
"""Trials of all versions together: a step of 1.5 standard deviations takes about half of them."""

SIDES: Final = 3
"""Number of versions in a round of any commit but BAD."""


@dataclass(frozen=True, kw_only=True)
class CommitScale(LevelScale):
    """Positions of commits, from GOOD at 0 to BAD, without those of commits that cannot be measured."""

    low: float = 0.0
    spacing: Spacing = Spacing.LINEAR
    is_whole: bool = True
    left_out: frozenset[float] = frozenset()

    def between(self, one: float, other: float) -> float | None:
        low, high = sorted((one, other))
        free = [place for place in map(float, range(int(low) + 1, int(high))) if place not in self.left_out]
        return free[len(free) // 2] if free else None

    def halvings(self) -> int:
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
        confidence: probability that the answer contains the commit, if a single one introduced the regression.
        trials_per_start: trials of each version in a round.
        max_trials: largest number of trials of all versions together.
    """
    return SearchPlan(
        scale=CommitScale(high=float(commits)),
        boundary=0.5,
        confidence=confidence,
        trials_per_start=trials_per_start,
        max_trials=max_trials // SIDES,
        patience_factor=6.0,
        compares_ends=True,
    )


def without(plan: SearchPlan, places: Iterable[float]) -> SearchPlan:
    assert isinstance(plan.scale, CommitScale)
    return replace(plan, scale=replace(plan.scale, left_out=frozenset(places)))


def least_trials(plan: SearchPlan) -> int:
    """Smallest `max_trials` that can decide BAD and one more commit."""
    return 2 * SIDES * plan.least_trials


def least_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    """A search in which every trial of a regressed commit is the worse one."""
    rounds = plan.least_trials // plan.trials_per_start
    return _amount(rounds * (SIDES * plan.scale.halvings() + SIDES - 1), warm_ups, plan)


def most_amount(plan: SearchPlan, warm_ups: int) -> Amount:
    return _amount(SIDES * (plan.max_trials // plan.trials_per_start), warm_ups, plan)


def _amount(starts: int, warm_ups: int, plan: SearchPlan) -> Amount:
    return Amount(starts, starts * warm_ups, starts * plan.trials_per_start)


@dataclass(frozen=True)
class Commit:
    name: str
    date: str
    subject: str
    is_merge: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.date} {self.subject}"


def list_commits(good: str, bad: str, root: Path) -> tuple[Commit, ...]:
    """The commits to search, GOOD first and BAD last; a merge stands for all commits of the branch that it merged.

    Raises `ConfigurationError` for unknown revisions, a GOOD that is BAD or no ancestor of it, or uncommitted changes.
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
    form = "--format=%H%x00%cs%x00%P%x00%s"
    after = ask_git(root, "log", "--first-parent", "--reverse", form, f"{first.commit}..{last.commit}")
    itself = ask_git(root, "log", "--max-count=1", form, first.commit)
    found = []
    for line in f"{itself}\n{after}".splitlines():
        commit, date, parents, subject = line.split("\0")
        found.append(Commit(abbreviate(commit, root), date, subject, is_merge=len(parents.split()) > 1))
    return tuple(found)


def _revision(text: str, what: str, root: Path) -> Revision:
    if (found := find_revision(text, root)) is not None:
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


class Side(StrEnum):
    GOOD = "good"
    COMMIT = "commit"
    BAD = "bad"


Records = Mapping[Side, TrialSet]
"""Trials of a commit's rounds; those of BAD have no third side."""

_FORWARD: Final = (
    (Side.GOOD, Side.COMMIT, Side.BAD),
    (Side.COMMIT, Side.BAD, Side.GOOD),
    (Side.BAD, Side.GOOD, Side.COMMIT),
)


class CommitFailed(LdosError):
    """The stack of a commit did not start, or died."""


class CommitNotBuilt(CommitFailed):
    """A commit could not be built."""


def order_of(number: int) -> Sequence[Side]:
    """Order of the sides in a round; rounds count from 0.

    Each order is followed by its reverse, and over six rounds each version is equally often at each position, so that
    neither drift nor the position in a round causes differences.
    """
    order = _FORWARD[number // 2 % len(_FORWARD)]
    return order[::-1] if number % 2 else order


def rounds_in(records: Records, trials_per_start: int) -> int:
    return min((len(each.trials) // trials_per_start for each in records.values()), default=0)


def measure_round(
    spec: ScenarioSpec, site: Site, versions: Mapping[Side, Version], records: Records, number: int
) -> Records:
    """The records with one more round, the commit's `number`-th from 0.

    Raises:
        CommitFailed: the commit's stack did not start, or died.
        BringUpFailed: the stack of another version did not start; the message names the version.
        Unavailable, RecordingFailed, LoadFailed: see `run_block`.
    """
    folder = new_scenario_folder(new_run_folder(site.output), spec.name)
    bench, found = bench_of(spec, site, folder), dict(records)
    for place, side in enumerate(each for each in order_of(number) if each in versions):
        trials = range(number * spec.trials, (number + 1) * spec.trials)
        block = Block(len(Side) * number + place, Role.BASE if side is Side.GOOD else Role.HEAD, trials)
        found[side] = _run(bench, block, side, versions[side], records.get(side))
    drop_folder(folder)
    return found


def _run(bench: Bench, block: Block, side: Side, version: Version, record: TrialSet | None) -> TrialSet:
    try:
        made = run_block(bench, block, version, record, lambda _: None)
    except BringUpFailed as error:
        raise _failed(side, error) from None
    if made.incomplete:
        raise _failed(side, BringUpFailed(f"{version.name}: {made.incomplete}"))
    if reason := shortfall_of(made):
        raise LoadFailed(f"{version.name}: {reason}", remedy="ask for less load, or stop what else runs here")
    return made


def _failed(side: Side, error: BringUpFailed) -> LdosError:
    if side is not Side.COMMIT:
        return error
    return CommitFailed(error.message, details=error.details, remedy=error.remedy)


def compare_round(place: float, records: Records, metric: Metric, trials: range) -> Batch:
    """Counts the pairs of a round in which the commit is worse than GOOD, and better than BAD; see `plan_search`.

    BAD itself is compared with GOOD in both. A failed trial is worse than any successful one. A tie counts for neither;
    a pair in which BAD and GOOD failed shows no difference, and counts for BAD.
    """
    sides = [[_badness(records[side].trials[index], metric) for index in trials] for side in Side if side in records]
    known = (tuple(value for value in each if value is not None) for each in zip(*sides, strict=True))
    triples = [each for each in known if len(each) == len(sides)]
    succeeded = sum(records[Side.COMMIT].trials[index].succeeded for index in trials)
    unvalued = sum(each is None for each in sides[1])
    if not triples:
        reason = f"no trial has a value of {metric.name} on every side"
        return Batch(place, exclusion=Exclusion.UNMEASURED, reason=reason, succeeded=succeeded, unvalued=unvalued)
    broken = sum(commit > good for good, commit, *_ in triples)
    if Side.BAD in records:
        sound = sum(bad > commit for _, commit, bad in triples)
    else:  # pairs of GOOD and BAD that show no regression
        sound = sum(good > bad or good == bad == math.inf for good, bad in triples)
    return Batch(place, len(triples), broken, sound=sound, succeeded=succeeded, unvalued=unvalued)


def _badness(trial: Trial, metric: Metric) -> float | None:
    """A number that is higher for a worse trial; ``None`` if a successful one has no value."""
    if not trial.succeeded:
        return math.inf
    measured = trial.measurements.get(metric.name)
    value = None if measured is None else measured.number
    return -value if value is not None and metric.better is Better.HIGHER else value


class CommitStore(Store[StoredTrials[Side]]):
    """All rounds of each commit of one search.

    ``.ldos/bisect/<stack>/<host class>/<scenario>/<good>..<bad>/`` holds ``<commit>.json``. The files of a finished
    search are deleted.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, partial(decode_stored, key=Side), encode_stored)
