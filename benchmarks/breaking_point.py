"""Compares coverage and cost of the search for a breaking point with bisection by a fixed number of trials.

``python -m benchmarks.breaking_point [SEARCHES]`` simulates searches on stacks whose trials break at a random
level of their own: steep and shallow thresholds, and starts that drift.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from pytest_ldos.campaign.bisection import Batch, Bisection, Finding, LevelScale, SearchPlan

SCALE = LevelScale(low=100, high=200_000)


@dataclass(frozen=True)
class Stack:
    """A stack whose trials break above a level that varies (log-normally) between trials and between starts.

    Attributes:
        trial_sd, start_sd: of the logarithm of the level.
    """

    threshold: float
    trial_sd: float
    start_sd: float = 0.0

    def start(self, rng: np.random.Generator) -> Callable[[float, int], int]:
        """Number of broken trials at a level, in one start."""
        drift = rng.normal(0, self.start_sd)

        def broken(level: float, trials: int) -> int:
            limits = math.log(self.threshold) + drift + rng.normal(0, self.trial_sd, trials)
            return int((limits < math.log(level)).sum())

        return broken


@dataclass(frozen=True)
class Found:
    """Result of a search."""

    low: float
    high: float
    trials: int
    starts: int
    is_found: bool = True

    def covers(self, threshold: float) -> bool:
        return self.low <= threshold <= self.high

    @property
    def width(self) -> float:
        return self.high / self.low - 1 if self.low else math.inf


def search(stack: Stack, rng: np.random.Generator, plan: SearchPlan) -> Found:
    """By our rule."""
    bisection = Bisection(plan)
    while (level := bisection.next_level()) is not None:
        trials = plan.trials_per_start
        bisection.add(Batch(level, trials, stack.start(rng)(level, trials)))
    low = bisection.holds.level if bisection.holds else 0.0
    high = bisection.breaks.level if bisection.breaks else math.inf
    return Found(low, high, bisection.trials, bisection.starts, bisection.finding is Finding.BREAKS)


def search_naively(stack: Stack, rng: np.random.Generator, plan: SearchPlan, *, starts: int = 1) -> Found:
    """By the majority of a fixed number of trials at each level."""
    scale, per_start, levels = plan.scale, plan.trials_per_start, 2
    low, high = scale.calm, scale.harsh
    while (level := scale.between(low, high)) is not None:
        broken = sum(stack.start(rng)(level, per_start) for _ in range(starts))
        low, high = (low, level) if broken > per_start * starts / 2 else (level, high)
        levels += 1
    return Found(low, high, levels * starts * per_start, levels * starts)


STACKS = {
    "a step": (0.001, 0.0),
    "steep": (0.05, 0.0),
    "medium": (0.2, 0.0),
    "shallow": (0.6, 0.0),
    "steep, starts differ by half": (0.05, 0.025),
    "medium, starts differ by half": (0.2, 0.1),
    "shallow, starts differ by half": (0.6, 0.3),
    "medium, starts differ as much": (0.2, 0.2),
    "shallow, starts differ twice as much": (0.6, 1.2),
}
"""Standard deviations of the logarithm of the level at which a trial breaks: of trials, of starts."""


def simulate(
    rule: Callable[[Stack, np.random.Generator], Found], kind: str, searches: int
) -> list[tuple[Stack, Found]]:
    """Searches for thresholds anywhere in the middle of the range."""
    found = []
    for number in range(searches):
        rng = np.random.default_rng(number)
        threshold = math.exp(rng.uniform(math.log(300), math.log(60_000)))
        stack = Stack(threshold, *STACKS[kind])
        found.append((stack, rule(stack, rng)))
    return found


def describe(found: list[tuple[Stack, Found]]) -> str:
    covered = fmean(each.covers(stack.threshold) for stack, each in found)
    widths = sorted(each.width for _, each in found)
    return (
        f"{100 * covered:5.1f} %  {fmean(each.trials for _, each in found):6.1f}  "
        f"{fmean(each.starts for _, each in found):5.1f}  {100 * widths[len(widths) // 2]:6.1f} %"
    )


def main() -> None:
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    rules: dict[str, Callable[[Stack, np.random.Generator], Found]] = {
        "ours, 90 %": lambda stack, rng: search(stack, rng, SearchPlan(scale=SCALE, boundary=0.5)),
        "ours, 90 %, a start a trial": lambda stack, rng: search(
            stack, rng, SearchPlan(scale=SCALE, boundary=0.5, trials_per_start=1)
        ),
        "ours, 90 %, starts taken as equal": lambda stack, rng: search(
            stack, rng, SearchPlan(scale=SCALE, boundary=0.5, correlation=0)
        ),
        "fixed: 4 trials": lambda stack, rng: search_naively(stack, rng, SearchPlan(scale=SCALE, boundary=0.5)),
        "fixed: 12 trials": lambda stack, rng: search_naively(
            stack, rng, SearchPlan(scale=SCALE, boundary=0.5), starts=3
        ),
    }
    for kind in STACKS:
        print(f"{kind}\n  {'':34}covers  trials  starts  median width")
        for name, rule in rules.items():
            print(f"  {name:34}{describe(simulate(rule, kind, searches))}")


if __name__ == "__main__":
    main()
