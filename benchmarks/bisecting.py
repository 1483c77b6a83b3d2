"""Compares coverage and cost of the search for a commit with bisection by a fixed number of trials.

``python -m benchmarks.bisecting [SEARCHES]`` simulates searches over commits of which one makes trials slower.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median, quantiles

import numpy as np
import numpy.typing as npt

from pytest_ldos.campaign.bisection import Batch, Bisection, Finding, SearchPlan
from pytest_ldos.campaign.commit_rounds import SIDES, plan_search

COMMITS = 32


@dataclass(frozen=True)
class History:
    """Commits of which one makes trials slower; times vary log-normally between trials and between starts.

    Attributes:
        first: place of the slow commit; GOOD is at 0.
        step: relative change.
        cv, start_cv: coefficient of variation between trials, and between starts.
        second: place of a commit that brings the step once more; 0 for none.
    """

    first: float
    step: float
    cv: float = 0.1
    start_cv: float = 0.0
    second: float = 0

    def start(self, rng: np.random.Generator, place: float, trials: int) -> npt.NDArray[np.float64]:
        """Logarithms of the times of one stack start."""
        level = math.log1p(self.step) * sum(0 < each <= place for each in (self.first, self.second))
        return level + rng.normal(0, self.start_cv) + rng.normal(0, self.cv, trials)


@dataclass(frozen=True)
class Found:
    """Answer of a search: the commit is after `holds`, and `breaks` at the latest.

    Attributes:
        trials, starts: of all versions.
        is_found: False if BAD was not shown to be slower.
    """

    holds: float
    breaks: float
    trials: int
    starts: int
    is_found: bool

    def covers(self, history: History) -> bool:
        return self.is_found and any(
            self.holds < each <= self.breaks for each in (history.first, history.second) if each
        )

    @property
    def commits(self) -> float:
        """Number of commits in the answer."""
        return self.breaks - self.holds


def search(history: History, rng: np.random.Generator, plan: SearchPlan) -> Found:
    """By our rule."""
    bisection, trials, starts, bad = Bisection(plan), 0, 0, plan.scale.harsh
    while (place := bisection.next_level()) is not None:
        number, sides = plan.trials_per_start, SIDES - (place == plan.scale.harsh)
        good, candidate, worst = (history.start(rng, each, number) for each in (0, place, bad))
        sound = int((candidate < worst).sum()) if place != bad else None
        bisection.add(Batch(place, number, int((candidate > good).sum()), sound=sound))
        trials, starts = trials + sides * number, starts + sides
    holds, breaks = bisection.holds, bisection.breaks
    low, high = (math.nan if each is None else each.level for each in (holds, breaks))
    return Found(low, high, trials, starts, bisection.finding is Finding.BREAKS)


def search_naively(history: History, rng: np.random.Generator, commits: int, *, trials: int, per_start: int) -> Found:
    """By `git bisect` with a fixed number of trials at each commit: slower than half of the regression or not."""
    starts = trials // per_start

    def measure(place: float) -> float:
        return fmean(fmean(history.start(rng, place, per_start)) for _ in range(starts))

    low, high, boundary = 0, commits, (measure(0) + measure(commits)) / 2
    levels = 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if measure(middle) > boundary else (middle, high)
        levels += 1
    return Found(low, high, levels * starts * per_start, levels * starts, is_found=True)


HISTORIES: dict[str, dict[str, float]] = {
    "a step of 15 %, CV 10 %": {"step": 0.15},
    "the same, starts differ by 5 %": {"step": 0.15, "start_cv": 0.05},
    "a step of 10 %, CV 10 %": {"step": 0.1},
    "a step of 30 %, CV 10 %": {"step": 0.3},
    "a step of 100 %, CV 10 %": {"step": 1.0},
    "two steps of 10 %, CV 10 %": {"step": 0.1, "second": 24},
    "no step, CV 10 %": {"step": 0.0},
}


def simulate(
    rule: Callable[[History, np.random.Generator], Found], kind: str, searches: int, *, commits: int = COMMITS
) -> list[tuple[History, Found]]:
    """Searches for a commit anywhere in the history."""
    found = []
    for number in range(searches):
        rng = np.random.default_rng(number)
        history = History(int(rng.integers(1, commits + 1)), **HISTORIES[kind])
        found.append((history, rule(history, rng)))
    return found


def describe(found: list[tuple[History, Found]]) -> str:
    reported = [each for _, each in found if each.is_found]
    covered = fmean(each.covers(history) for history, each in found)
    wrong = fmean(each.is_found and not each.covers(history) for history, each in found)
    single = fmean(each.is_found and each.commits == 1 for _, each in found)
    trials = [each.trials for _, each in found]
    return (
        f"{100 * covered:5.1f} %  {100 * wrong:5.1f} %  {100 * single:5.1f} %  "
        f"{fmean(trials):6.0f}  {median(trials):6.0f}  {quantiles(trials, n=20)[-1]:6.0f}  "
        f"{fmean(each.starts for _, each in found):6.0f}" + ("" if reported else "   (no answer)")
    )


def main() -> None:
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    ours = plan_search(COMMITS)
    rules: dict[str, Callable[[History, np.random.Generator], Found]] = {
        "ours, 95 %": lambda history, rng: search(history, rng, ours),
        "fixed: 4 trials a commit": lambda history, rng: search_naively(history, rng, COMMITS, trials=4, per_start=4),
        "fixed: 48 trials a commit": lambda history, rng: search_naively(history, rng, COMMITS, trials=48, per_start=4),
    }
    for kind in HISTORIES:
        print(f"{kind}\n  {'':28}covers    wrong  one commit  mean  median   95 %  starts")
        for name, rule in rules.items():
            print(f"  {name:28}{describe(simulate(rule, kind, searches))}")


if __name__ == "__main__":
    main()
