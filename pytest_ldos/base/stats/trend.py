"""Tests whether values change over the order in which they were taken.

Reference: H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13, 1945;
P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63, 1968.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

FEWEST: Final = 6
"""Fewest values; below this number even a strictly monotone order has a probability above one per cent."""

_MOST_EXACT: Final = 60
"""Largest number of values for the exact sum. Above it, the sum is slow and the normal approximation is accurate to
two thousandths."""


@dataclass(frozen=True)
class Trend:
    """A trend over the order of values.

    Attributes:
        slope: median of the slopes between all pairs, per place (Theil–Sen).
        p_value: two-sided, under random order (Mann–Kendall); exact, except for many values, where
            the normal approximation is used.
    """

    slope: float
    p_value: float


def estimate_trend(values: Sequence[float]) -> Trend | None:
    """The trend of values in their order; ``None`` for fewer than `FEWEST` values. Ties count half.

    Time and memory grow with the square of the number of values.
    """
    if len(values) < FEWEST:
        return None
    taken = np.asarray(values, dtype=np.float64)
    here, there = np.triu_indices(len(taken), k=1)
    slopes = (taken[there] - taken[here]) / (there - here)
    falls = float(np.sum(slopes < 0) + np.sum(slopes == 0) / 2)
    fewer = min(falls, len(slopes) - falls)
    return Trend(float(np.median(slopes)), min(1.0, 2 * _at_most(fewer, len(taken))))


def _at_most(inversions: float, count: int) -> float:
    """Probability of at most this many inversions in a random permutation of `count` values."""
    if count <= _MOST_EXACT:
        return float(_inversions(count)[: ceil(inversions) + 1].sum())
    mean = count * (count - 1) / 4
    deviation = sqrt(count * (count - 1) * (2 * count + 5) / 72)
    return NormalDist().cdf((inversions + 0.5 - mean) / deviation)


def _inversions(count: int) -> npt.NDArray[np.float64]:
    """Probabilities of 0, 1, … inversions in a random permutation of `count` values."""
    probabilities = np.ones(1)
    for size in range(2, count + 1):
        probabilities = np.convolve(probabilities, np.full(size, 1 / size))
    return probabilities
