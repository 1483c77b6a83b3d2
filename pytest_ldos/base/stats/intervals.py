"""Intervals of means and medians, and an exact test of many quantities at once.

Reference: Student's t; means of many messages are nearly normal, whatever the distribution of the messages.

Reference: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd ed., section 7.1.

Between equal versions, a run could as well have been one of the other version. For every way to divide the runs, each
quantity has a contrast of the two sides, and only the largest of them counts. A quantity whose observed contrast is
beyond nearly all of these differs, and the probability that any is named where none differs stays below the level,
however the quantities depend on each other and however runs scatter.

Reference: P. Westfall, S. Young, "Resampling-Based Multiple Testing", 1993, chapter 2 (single-step maxT).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtrit


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the mean; infinite for fewer than two values."""
    if len(values) < 2:
        return (-math.inf, math.inf)
    center = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return (center - half, center + half)


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median; infinite if there are too few values for the confidence.

    Args:
        values: infinity stands for a censored value, known only to be large.
    """
    ordered = sorted(values)
    size, tail = len(ordered), (1 - confidence) / 2
    left_out = int(np.count_nonzero(bdtr(np.arange(size), size, 0.5) <= tail))
    return (ordered[left_out - 1], ordered[size - left_out]) if left_out else (-math.inf, math.inf)


Numbers = npt.NDArray[np.float64]

_MOST: Final = 5_000
"""Ways to divide the runs that are all looked at; of more, as many at random."""

_LEAST_SPREAD: Final = 0.01
"""Added to the spread of a quantity, so that a few values that are equal by luck are no large contrast."""

_SAME: Final = 1 - 1e-9
"""Contrasts that differ by less are equal."""


def largest_contrast_p(head: Numbers, base: Numbers) -> Numbers:
    """Probability, of each quantity, that the largest contrast of all is as large as its own if no quantity differs.

    Args:
        head, base: a row a run, a column a quantity; logarithms, so that spreads are shares.
    """
    together = np.vstack([head, base])
    together = together - together.mean(axis=0)
    chosen = _divisions(len(together), len(head))
    contrasts = _contrasts(chosen, together, len(head))
    largest = np.sort(contrasts.max(axis=1, initial=0.0))
    observed = contrasts[0]
    at_least: Numbers = (len(chosen) - np.searchsorted(largest, observed * _SAME)) / len(chosen)
    return at_least


def smallest_p(head: int, base: int) -> float:
    """The smallest probability that so many runs of each side can have: few cannot differ beyond chance."""
    return (2 if head == base else 1) / math.comb(head + base, head)


def fewest_runs(alpha: float) -> int:
    """Runs of each side with which a difference at this level is possible."""
    runs = 1
    while smallest_p(runs, runs) > alpha:
        runs += 1
    return runs


def _divisions(runs: int, chosen: int) -> Numbers:
    """Rows of ones for the runs of one side, the observed division first."""
    if math.comb(runs, chosen) <= _MOST:
        places = np.array(list(combinations(range(runs), chosen)))
    else:
        generator = np.random.default_rng(runs * 1_000 + chosen)
        some = [generator.permutation(runs)[:chosen] for _ in range(_MOST - 1)]
        places = np.array([np.arange(chosen), *some])
    rows = np.zeros((len(places), runs))
    np.put_along_axis(rows, places, 1.0, axis=1)
    return rows


def _contrasts(chosen: Numbers, together: Numbers, size: int) -> Numbers:
    """Difference of the two means over the spread within the sides, by division and quantity."""
    others = len(together) - size
    ours = chosen @ together / size
    theirs = (together.sum(axis=0) - chosen @ together) / others
    squares = (together**2).sum(axis=0) - size * ours**2 - others * theirs**2
    spread = np.sqrt(np.maximum(squares, 0.0) / max(len(together) - 2, 1))
    contrasts: Numbers = np.abs(ours - theirs) / (spread + _LEAST_SPREAD)
    return contrasts
