"""Intervals of means and medians, and an exact simultaneous test of many quantities.

Reference: Student's t; means of many values are nearly normal for any distribution.

Reference: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd ed., section 7.1.

Between equal versions, runs are exchangeable. For every division of the runs, each quantity has a contrast of the two
sides; the largest one forms the null distribution. A quantity differs if its observed contrast is beyond nearly all of
these. The family-wise error stays below the level for any dependence of quantities and any distribution of runs.

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
"""Largest number of divisions that are enumerated; of more, this many are drawn at random."""

_LEAST_SPREAD: Final = 0.01
"""Added to the spread of a quantity, so that a few equal values give no large contrast."""

_SAME: Final = 1 - 1e-9
"""Tolerance for equal contrasts."""


def largest_contrast_p(head: Numbers, base: Numbers) -> Numbers:
    """Probability, for each quantity, of a largest contrast as large as its own if no quantity differs.

    Args:
        head, base: one row per run, one column per quantity; logarithms, so that spreads are relative.
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
    """The smallest possible probability with the given numbers of runs."""
    return (2 if head == base else 1) / math.comb(head + base, head)


def fewest_runs(alpha: float) -> int:
    """Fewest runs per side for which a difference at this level is possible."""
    runs = 1
    while smallest_p(runs, runs) > alpha:
        runs += 1
    return runs


def _divisions(runs: int, chosen: int) -> Numbers:
    """Divisions as rows with ones for the runs of one side; the observed division is first."""
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
