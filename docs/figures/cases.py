"""The gate's own answers on made trials, for figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.base.stats.several_tests import critical_values
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Comparison
from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.trials import noisy_set, trial, trial_set

METRIC: Final = "T1"
CHANGES: Final = ((0.0, 0.03), (0.03, 0.03), (0.2, 0.03), (-0.2, 0.03), (0.2, 0.1), (0.0, 0.4))
"""Changes, each with the spread of its trials."""

COUNTS: Final = (8, 10, 14, 16, 20, 24, 30, 40, 50, 60)
SPREADS: Final = (0.02, 0.05, 0.1, 0.2)
LOOKS: Final = (10, 15, 20, 25, 30)


def compare(head: TrialSet, base: TrialSet) -> Comparison:
    """The gate's comparison of T1."""
    return next(each for each in decide(head, base, Policy()).comparisons if each.metric == METRIC)


def changed_runs() -> Iterator[tuple[float, float, Comparison]]:
    """Runs of 20 trials with a change and a spread."""
    for place, (change, spread) in enumerate(CHANGES):
        head = noisy_set(2 * place + 1, n=20, factors={METRIC: 1 + change}, cv=spread)
        yield change, spread, compare(head, noisy_set(2 * place + 2, n=20, cv=spread))


def detectable(spread: float) -> list[float]:
    """Minimum detectable effects of equal, interleaved versions, by number of trials: medians of some pairs."""
    return [float(np.median([_interleaved(seed, n, spread).mde for seed in range(9)])) for n in COUNTS]


def _interleaved(seed: int, n: int, spread: float) -> Comparison:
    """Equal versions in blocks of two trials: base, head, head, base, and so on."""
    sides = []
    for role in (0, 1):
        made = noisy_set(2 * seed + role, n=n, cv=spread, session="figure")
        trials = [dataclasses.replace(each, block=2 * each.block + (each.block + role) % 2) for each in made.trials]
        sides.append(dataclasses.replace(made, trials=tuple(trials)))
    return compare(sides[1], sides[0])


def critical_of_looks() -> tuple[list[float], float]:
    """Critical values of a comparison with several looks, and that of a single look, on the same budget."""
    alpha = Policy().alpha / 2
    values = critical_values(alpha, tuple(look / LOOKS[-1] for look in LOOKS))
    return list(values), critical_values(alpha, (1.0,))[0]


@dataclass(frozen=True)
class Drifting:
    """Equal versions on a machine that drifts: values in the order of time, and the estimated change."""

    values: list[float]
    is_head: list[bool]
    ratio: float


def drifting(*, is_interleaved: bool) -> Drifting:
    """Forty trials, two a start, of which half are head's."""
    rng = np.random.default_rng(4)
    values = [14.0 * (1 + 0.15 * place / 39) * float(rng.lognormal(0, 0.015)) for place in range(40)]
    order = [place // 2 % 4 in {1, 2} if is_interleaved else place >= 20 for place in range(40)]
    head, base = (_set(values, order, wanted) for wanted in (True, False))
    return Drifting(values, order, compare(head, base).ratio)


def _set(values: list[float], order: list[bool], wanted: bool) -> TrialSet:
    chosen = [place for place, is_head in enumerate(order) if is_head is wanted]
    plain = noisy_set(1, n=len(chosen))
    trials = [
        trial(index, {METRIC: values[place], "T4": 1970.0}, block=place // 2, seed=index + 1)
        for index, place in enumerate(chosen)
    ]
    return dataclasses.replace(trial_set(trials), spec=plain.spec)
