"""Multiple and sequential tests with a common error probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, betaln, ndtr, ndtri

Test = TypeVar("Test", bound=Hashable)


@dataclass(frozen=True)
class HolmStep:
    """Result for one test: its significance level, and True if the hypothesis of no difference is rejected."""

    alpha: float
    rejected: bool


def step_down(
    shares: Mapping[Test, float], is_rejected: Callable[[Test, float], bool], *, alpha: float
) -> dict[Test, HolmStep]:
    """Tests all hypotheses with a family-wise error of at most `alpha`.

    The share of a rejected test passes to the remaining tests, in proportion to their own shares.

    Args:
        shares: share of `alpha` by test; `ValueError` if they exceed 1 in total.
        is_rejected: returns True if a test rejects at the given significance level.

    References: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics
    6(2), 1979; for shares and several looks: W. Maurer, F. Bretz, "Multiple Testing in Group Sequential Trials Using
    Graphical Approaches", Statistics in Biopharmaceutical Research 5(4), 2013.
    """
    if sum(shares.values()) > 1 + 1e-9:
        raise ValueError("the shares of the tests exceed the whole probability of error")
    steps = {test: HolmStep(alpha * share, False) for test, share in shares.items()}
    left = 1.0
    while newly := {test for test, step in steps.items() if not step.rejected and is_rejected(test, step.alpha)}:
        left -= sum(shares[test] for test in newly)
        for test in newly:
            steps[test] = HolmStep(steps[test].alpha, True)
        for test, step in steps.items():
            if not step.rejected:
                steps[test] = HolmStep(alpha * shares[test] / max(left, shares[test]), False)
    return steps


Fractions = tuple[float, ...]
"""Information fractions of the looks: increasing, above 0, at most 1."""

SpendingRule = Callable[[float, float], float]
"""Spending function: the part of `alpha` that may be spent up to an information fraction."""

_Numbers = npt.NDArray[np.float64]

_EXPONENT: Final = 3.0
_NODES: Final = 301
_LOWEST: Final = -8.0
"""Lower end of the grid in standard deviations; paths below it have negligible probability under no difference."""


def spend(alpha: float, fraction: float) -> float:
    """The part of `alpha` that may be spent up to an information fraction: ``alpha · t³``.

    This is the power family of Kim and DeMets. With the first look at half of the information, it is nearly Pocock's
    rule (equal critical values): clear cases stop early, and the last look keeps most of its power.

    References: K. Kim, D. L. DeMets, "Design and analysis of group sequential tests based on the type I error spending
    rate function", Biometrika 74, 1987; C. Jennison, B. W. Turnbull, "Group Sequential Methods with Applications to
    Clinical Trials", 2000, chapters 7 and 19.
    """
    return float(alpha * min(1.0, fraction) ** _EXPONENT)


@lru_cache(maxsize=1024)
def level_of_last_look(alpha: float, fractions: Fractions) -> float:
    """The significance level of the last look, such that all looks together spend no more than `alpha` (one-sided)."""
    return float(ndtr(-critical_values(alpha, fractions)[-1]))


def critical_values(alpha: float, fractions: Fractions, rule: SpendingRule = spend) -> tuple[float, ...]:
    """The critical value of the standardised difference at each look.

    The statistics of the looks are those of a Brownian motion at their information. Its density below all earlier
    critical values is propagated from look to look on a grid. Raises `ValueError` unless the fractions rise in (0, 1].
    """
    rising = all(before < after for before, after in zip((0.0, *fractions), fractions, strict=False))
    if not fractions or not rising or fractions[-1] > 1:
        raise ValueError(f"information fractions {fractions} do not rise within 0 and 1")
    spent = [rule(alpha, fraction) for fraction in fractions]
    values = [-float(ndtri(spent[0]))]
    grid = _grid(values[0], fractions[0])
    mass = _normal_density(grid / math.sqrt(fractions[0])) / math.sqrt(fractions[0]) * _weights(grid)
    for before, now, spent_before, spent_now in zip(fractions, fractions[1:], spent, spent[1:], strict=False):
        step = math.sqrt(now - before)
        values.append(_critical_value(grid, mass, now, step, spent_now - spent_before))
        reached = _grid(values[-1], now)
        mass = (_normal_density((reached[:, None] - grid[None, :]) / step) / step) @ mass * _weights(reached)
        grid = reached
    return tuple(values)


def _critical_value(grid: _Numbers, mass: _Numbers, fraction: float, step: float, allowed: float) -> float:
    """The value that paths from `grid` exceed with the allowed probability."""
    scale = math.sqrt(fraction)

    def excess(value: float) -> float:
        return float(mass @ ndtr((grid - value * scale) / step)) - allowed

    return float(brentq(excess, 0.0, -_LOWEST, xtol=1e-6)) if excess(-_LOWEST) < 0 < excess(0.0) else -_LOWEST


def _grid(critical: float, fraction: float) -> _Numbers:
    scale = math.sqrt(fraction)
    return np.linspace(_LOWEST * scale, critical * scale, _NODES)


def _weights(grid: _Numbers) -> _Numbers:
    """Weights of Simpson's rule; the number of nodes is odd."""
    weights = np.full(len(grid), 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    result: _Numbers = weights * (grid[1] - grid[0]) / 3
    return result


def _normal_density(values: _Numbers) -> _Numbers:
    return np.exp(-0.5 * values**2) / math.sqrt(2 * math.pi)


_JEFFREYS: Final = 0.5
_HALVINGS: Final = 50
_MOST_TRIALS: Final = 100_000


class Side(StrEnum):
    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True)
class BoundaryTest:
    """Sequential test of a probability against a boundary; it may be made after each trial.

    The evidence for one side is the likelihood ratio of the data, mixed over all probabilities of that side by
    Jeffreys' prior truncated there. If the hypothesis is true, it ever reaches ``1 / error`` with a probability of at
    most `error` (Ville's inequality). A ratio raised to a power below 1 (`tempering`) keeps this property if starts
    differ, so that their trials are correlated.

    Reference: H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical
    Statistics 41, 1970; S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic
    confidence sequences", Annals of Statistics 49, 2021.
    """

    boundary: float  # between 0 and 1, both excluded
    error: float  # probability of deciding for the wrong side, for any number of tests
    exponent: float = 1.0  # power to which likelihood ratios are raised; 1 for independent trials

    def __post_init__(self) -> None:
        if not (0 < self.boundary < 1 and 0 < self.error < 1 and 0 < self.exponent <= 1):
            raise ValueError(f"no test: boundary {self.boundary}, error {self.error}, exponent {self.exponent}")

    def decide(self, hits: int, trials: int, *, misses: int | None = None) -> Side | None:
        """The side supported by the data; ``None`` while inconclusive, also with evidence for both sides.

        `misses` are the trials that count for the lower side, by default all that are no hits.
        """
        return _decide(self, hits, hits if misses is None else trials - misses, trials)

    def log_evidence(self, hits: int, trials: int, side: Side) -> float:
        """Logarithm of the evidence for a probability on `side`; negative values are evidence against it."""
        hit, missed = self.exponent * hits, self.exponent * (trials - hits)
        posterior = _log_part(_JEFFREYS + hit, _JEFFREYS + missed, self.boundary, side)
        prior = _log_part(_JEFFREYS, _JEFFREYS, self.boundary, side)
        return posterior - prior - hit * math.log(self.boundary) - missed * math.log1p(-self.boundary)

    def interval(self, hits: int, trials: int) -> tuple[float, float]:
        """Confidence sequence: interval of the probability, valid for all numbers of trials at error `error`."""
        if not trials:
            return 0.0, 1.0
        middle = hits / trials
        low = _edge(0.0, middle, lambda value: self._is_excluded(value, hits, trials)) if hits else 0.0
        high = _edge(1.0, middle, lambda value: self._is_excluded(value, hits, trials)) if hits < trials else 1.0
        return low, high

    def _is_excluded(self, value: float, hits: int, trials: int) -> bool:
        if not 0 < value < 1:
            return True
        hit, missed = self.exponent * hits, self.exponent * (trials - hits)
        mixed = float(betaln(_JEFFREYS + hit, _JEFFREYS + missed) - betaln(_JEFFREYS, _JEFFREYS))
        return mixed - hit * math.log(value) - missed * math.log1p(-value) >= -math.log(self.error)

    @cached_property
    def fewest_trials(self) -> int:
        """Trials required to decide if all succeed or all fail, whichever is larger."""
        trials = range(1, _MOST_TRIALS)
        return max(
            next((each for each in trials if self.decide(0, each) is Side.BELOW), _MOST_TRIALS),
            next((each for each in trials if self.decide(each, each) is Side.ABOVE), _MOST_TRIALS),
        )


@lru_cache(maxsize=4096)
def _decide(test: BoundaryTest, hits: int, others: int, trials: int) -> Side | None:
    below, above = test.log_evidence(others, trials, Side.BELOW), test.log_evidence(hits, trials, Side.ABOVE)
    if min(below, above) > 0:
        return None
    shown = max(below, above) >= -math.log(test.error)
    return (Side.BELOW if below > above else Side.ABOVE) if shown else None


def _log_part(hit: float, missed: float, boundary: float, side: Side) -> float:
    """Logarithm of the integral of ``p^(hit-1) (1-p)^(missed-1)`` over one side of the boundary."""
    share = float(betainc(hit, missed, boundary) if side is Side.BELOW else betaincc(hit, missed, boundary))
    return float(betaln(hit, missed)) + math.log(share) if share > 0 else -math.inf


def _edge(excluded: float, included: float, is_excluded: Callable[[float], bool]) -> float:
    """Bisects for the edge of the excluded range, between an excluded and an included value."""
    for _ in range(_HALVINGS):
        middle = (excluded + included) / 2
        excluded, included = (middle, included) if is_excluded(middle) else (excluded, middle)
    return excluded
