"""Detects changes of level in a sequence of numbers, at a false-alarm rate that holds under autocorrelation.

Computes cumulative sums of normal scores over seeded intervals. The narrowest interval that exceeds the limit
locates the change; then both sides are searched again. Rank scores limit the influence of outliers.
The limit is that of a first-order autoregression with the correlation of the sequence plus one standard error.
The correlation is estimated from differences, so that a change of level is not mistaken for correlation.

References: S. Kovács, P. Bühlmann, H. Li, A. Munk, "Seeded binary segmentation", Biometrika 110 (2023);
R. Baranowski, Y. Chen, P. Fryzlewicz, "Narrowest-over-threshold detection of multiple change points",
J. R. Stat. Soc. B 81 (2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from pytest_ldos.base.stats.change_point_limits import CORRELATIONS, LENGTHS, LIMITS

Numbers = npt.NDArray[np.float64]

FEWEST: Final = LENGTHS[0]
"""Shortest sequence that is searched; shorter ones would show a change by chance too often."""

LONGEST: Final = LENGTHS[-1]
"""Number of values at the end of a longer sequence that are searched."""

_SHORTEST_INTERVAL: Final = 8
_SHORTEST_SIDE: Final = 3


@dataclass(frozen=True)
class ChangePoint:
    """A change of level.

    Attributes:
        index: index of the first value at the new level.
        strength: the statistic divided by its limit; greater than 1.
    """

    index: int
    strength: float


def find_change_points(values: Numbers) -> list[ChangePoint]:
    """Returns the changes of level in order. Infinite values are allowed and count as the largest."""
    first = max(0, len(values) - LONGEST)
    found = list(_search(values[first:], first))
    return sorted(_refined(values, found, first), key=lambda point: point.index)


def strongest_cusum(scores: Numbers) -> Numbers:
    """The statistic of each row of an array (one independent sequence per row): its maximum over all intervals."""
    largest = np.zeros(len(scores))
    for first, last in seeded_intervals(scores.shape[1]):
        largest = np.maximum(largest, _cusum(scores[:, first:last]).max(axis=1))
    return largest


def normal_scores(values: Numbers) -> Numbers:
    """Ranks along the last axis as quantiles of the normal distribution; equal values share their mean rank."""
    ranks = np.apply_along_axis(_ranks, -1, values)
    scores: Numbers = ndtri((ranks - 0.5) / values.shape[-1])
    return scores


def _ranks(values: Numbers) -> Numbers:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def correlation_of(scores: Numbers) -> Numbers:
    """First-order autocorrelation along the last axis, robust to a few changes of level and to a slow trend.

    In a first-order autoregression, neighbouring differences are correlated by ``-(1 - phi) / 2``.
    """
    steps = np.diff(scores, axis=-1)
    steps -= steps.mean(axis=-1, keepdims=True)
    power = (steps * steps).mean(axis=-1)
    lagged = (steps[..., 1:] * steps[..., :-1]).mean(axis=-1)
    correlation: Numbers = 1 + 2 * lagged / np.maximum(power, 1e-12)
    return correlation


def limit(length: int, correlation: float) -> float:
    """Critical value that the statistic exceeds in one of a hundred sequences without a change."""
    prudent = min(max(correlation + 1 / math.sqrt(length), CORRELATIONS[0]), CORRELATIONS[-1])
    rows = [float(np.interp(math.log(length), np.log(LENGTHS), column)) for column in np.transpose(LIMITS)]
    return float(np.interp(prudent, CORRELATIONS, rows))


def seeded_intervals(length: int) -> list[tuple[int, int]]:
    """The whole range, and overlapping intervals of a half, a quarter … of it, the longest first."""
    intervals = [(0, length)]
    width = length / 2
    while width >= _SHORTEST_INTERVAL:
        count = math.ceil((length - width) / (width / 2)) + 1
        starts = np.linspace(0, length - width, count)
        intervals += [(round(start), min(length, round(start) + round(width))) for start in starts]
        width /= 2
    return intervals


def _search(values: Numbers, offset: int) -> Iterator[ChangePoint]:
    if len(values) < FEWEST or np.all(values == values[0]):
        return
    scores = normal_scores(values)
    bound = limit(len(values), float(correlation_of(scores)))
    for first, last in reversed(seeded_intervals(len(values))):
        sums = _cusum(scores[None, first:last])[0]
        if sums.max() > bound:
            split = first + _SHORTEST_SIDE + int(sums.argmax())
            yield ChangePoint(offset + split, float(sums.max()) / bound)
            yield from _search(values[:split], offset)
            yield from _search(values[split:], offset + split)
            return


def _refined(values: Numbers, found: list[ChangePoint], first: int) -> Iterator[ChangePoint]:
    """Moves each change point to the best position between its neighbours."""
    borders = [first, *sorted(point.index for point in found), len(values)]
    for point in found:
        place = borders.index(point.index)
        before, after = borders[place - 1], borders[place + 1]
        sums = _cusum(normal_scores(values[before:after])[None, :])[0]
        yield ChangePoint(before + _SHORTEST_SIDE + int(sums.argmax()), point.strength)


def _cusum(rows: Numbers) -> Numbers:
    """Scaled difference between the means before and after each split, for each row."""
    length = rows.shape[1]
    sizes = np.arange(_SHORTEST_SIDE, length - _SHORTEST_SIDE + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, sizes - 1]
    scaled: Numbers = np.abs(sums) / np.sqrt(sizes * (length - sizes) / length)
    return scaled
