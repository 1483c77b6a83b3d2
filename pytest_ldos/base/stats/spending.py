"""Error spending: testing more than once without raising the false-alarm rate.

A comparison that is tested again after every few trials would sooner or later find a difference by
chance. Each look may therefore spend only part of the whole probability of error: up to information
fraction ``t``, no more than ``alpha · t³`` is spent (the power family of Kim and DeMets with
exponent 3). If the first look comes at half of the information, this is nearly Pocock's
rule, the same critical value at each look: clear cases stop early, and the last look
keeps most of its power.

References: K. Kim, D. L. DeMets, "Design and analysis of group sequential tests based on the
type I error spending rate function", Biometrika 74, 1987; C. Jennison, B. W. Turnbull, "Group
Sequential Methods with Applications to Clinical Trials", 2000, chapters 7 and 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Fractions = tuple[float, ...]
"""Information at each look over the most there can be: increasing, above 0, at most 1."""

SpendingRule = Callable[[float, float], float]
"""Returns how much of the first argument (`alpha`) may be spent up to the information fraction in the second."""

_Numbers = npt.NDArray[np.float64]

_EXPONENT: Final = 3.0
_NODES: Final = 301
_LOWEST: Final = -8.0
"""Lower end of the grid in standard deviations; under no difference, paths below it have negligible probability."""


def spend(alpha: float, fraction: float) -> float:
    """The part of `alpha` that may be spent up to an information fraction."""
    return float(alpha * min(1.0, fraction) ** _EXPONENT)


@lru_cache(maxsize=1024)
def level_of_last_look(alpha: float, fractions: Fractions, rule: SpendingRule = spend) -> float:
    """The significance level of the last look, chosen so that all looks together spend no more than allowed.

    Args:
        alpha: one-sided, of all looks together.
        fractions: of this look and all before it.

    Raises:
        ValueError: the fractions do not rise within 0 and 1.
    """
    return float(ndtr(-critical_values(alpha, fractions, rule)[-1]))


def critical_values(alpha: float, fractions: Fractions, rule: SpendingRule = spend) -> tuple[float, ...]:
    """The critical value of the standardised difference at each look.

    The statistics of the looks are those of a Brownian motion at their information. Its density
    below all earlier critical values is propagated from look to look on a grid.

    Raises:
        ValueError: the fractions do not rise within 0 and 1.
    """
    _refuse_disorder(fractions)
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
    result: _Numbers = np.exp(-0.5 * values**2) / math.sqrt(2 * math.pi)
    return result


def _refuse_disorder(fractions: Fractions) -> None:
    edges = (0.0, *fractions)
    rising = all(before < after for before, after in zip(edges, fractions, strict=False))
    if not fractions or not rising or fractions[-1] > 1:
        raise ValueError(f"information fractions {fractions} do not rise within 0 and 1")
