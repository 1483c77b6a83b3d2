"""Change points, rises and trends in a sequence of numbers.

Simulated (`benchmarks/change_points.py --limits`) with 20 000 sequences per number.

Computes cumulative sums of normal scores over seeded intervals. The narrowest interval that exceeds the limit
locates the change; then both sides are searched again. Rank scores limit the influence of outliers.
The limit is that of a first-order autoregression with the correlation of the sequence plus one standard error.
The correlation is estimated from differences, so that a change of level does not affect it.

References: S. Kovács, P. Bühlmann, H. Li, A. Munk, "Seeded binary segmentation", Biometrika 110 (2023);
R. Baranowski, Y. Chen, P. Fryzlewicz, "Narrowest-over-threshold detection of multiple change points",
J. R. Stat. Soc. B 81 (2019).

At each place, the values after it are compared with those before (Student's t with the variance within both parts);
the smallest p-value is multiplied by the number of places (Bonferroni). In simulations with normal, heavy-tailed
and bimodal values and with one outlier in ten, ten values or more, it is below a p-value no more than twice as often as
that p-value says, down to 0.0005.

Reference: D. M. Hawkins, "Testing a sequence of observations for a shift in location", JASA 72, 1977.

Reference: H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13, 1945;
P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63, 1968.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr

LENGTHS: Final = (10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
CORRELATIONS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
LIMITS: Final = (
    (2.415, 2.446, 2.446, 2.446, 2.446, 2.446, 2.446, 2.446, 2.446, 2.446, 2.446),
    (2.598, 2.671, 2.671, 2.694, 2.694, 2.694, 2.694, 2.694, 2.694, 2.694, 2.694),
    (2.895, 2.991, 3.061, 3.117, 3.132, 3.185, 3.228, 3.235, 3.241, 3.252, 3.252),
    (3.136, 3.307, 3.415, 3.537, 3.661, 3.769, 3.847, 3.872, 3.926, 3.967, 3.947),
    (3.383, 3.521, 3.706, 3.835, 4.016, 4.151, 4.311, 4.449, 4.487, 4.562, 4.580),
    (3.558, 3.792, 4.001, 4.212, 4.417, 4.704, 4.956, 5.218, 5.433, 5.536, 5.569),
    (3.745, 3.938, 4.190, 4.472, 4.735, 5.037, 5.380, 5.755, 6.116, 6.355, 6.455),
    (3.871, 4.167, 4.432, 4.753, 5.087, 5.439, 5.922, 6.460, 7.120, 7.696, 7.835),
    (4.048, 4.305, 4.579, 4.947, 5.293, 5.745, 6.299, 6.898, 7.764, 8.743, 9.009),
    (4.165, 4.466, 4.810, 5.166, 5.629, 6.168, 6.751, 7.503, 8.619, 10.100, 10.922),
    (4.277, 4.599, 4.952, 5.354, 5.813, 6.364, 7.030, 7.909, 9.153, 11.087, 12.376),
    (4.496, 4.824, 5.230, 5.695, 6.229, 6.877, 7.659, 8.763, 10.330, 13.187, 15.787),
)
"""One row per length, one column per correlation."""


Numbers = npt.NDArray[np.float64]

FEWEST: Final = LENGTHS[0]
"""Shortest sequence that is searched; shorter ones have too many false alarms."""

LONGEST: Final = LENGTHS[-1]
"""Longest searched sequence; of a longer one, the end is searched."""

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
    """Critical value, exceeded in 1 % of sequences without a change."""
    prudent = min(max(correlation + 1 / math.sqrt(length), CORRELATIONS[0]), CORRELATIONS[-1])
    rows = [float(np.interp(math.log(length), np.log(LENGTHS), column)) for column in np.transpose(LIMITS)]
    return float(np.interp(prudent, CORRELATIONS, rows))


def seeded_intervals(length: int) -> list[tuple[int, int]]:
    """The whole range, and overlapping intervals of 1/2, 1/4, … of it, the longest first."""
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


_SHORTEST_PART: Final = 3
"""Fewest values before and after a place: at least this, and a fifth of all."""


@dataclass(frozen=True)
class LateRise:
    """The most significant rise of a sequence.

    Attributes:
        place: index of the first value after it.
        size: mean after the place minus the mean before; negative if the sequence decreases everywhere.
        p_value: one-sided, under equal levels.
    """

    place: int
    size: float
    p_value: float


def find_late_rise(values: Numbers) -> LateRise:
    """The most significant rise; a p-value of 1 for too short sequences."""
    shortest = max(_SHORTEST_PART, values.size // 5)
    places = range(shortest, values.size - shortest + 1)
    found = [_rise_at(values, place) for place in places]
    best = min(found, key=lambda each: each.p_value, default=LateRise(0, 0.0, 1.0))
    return replace(best, p_value=min(1.0, best.p_value * max(1, len(places))))


def _rise_at(values: Numbers, place: int) -> LateRise:
    before, after = values[:place], values[place:]
    size = float(after.mean() - before.mean())
    degrees = values.size - 2
    variance = (before.size * float(before.var()) + after.size * float(after.var())) / degrees
    error = float(np.sqrt(variance * (1 / before.size + 1 / after.size)))
    if error == 0:
        return LateRise(place, size, 0.0 if size > 0 else 1.0)
    return LateRise(place, size, float(stdtr(degrees, -size / error)))


FEWEST_OF_TREND: Final = 6
"""Fewest values; with fewer, even a monotone order has a probability above 1 %."""

_MOST_EXACT: Final = 60
"""Largest number of values for the exact distribution; above it, the normal approximation is accurate to 0.002."""


@dataclass(frozen=True)
class Trend:
    """A trend over the order of values.

    Attributes:
        slope: median of the slopes between all pairs, per place (Theil–Sen).
        p_value: two-sided, under random order (Mann–Kendall); exact, or by the normal
            approximation for many values.
    """

    slope: float
    p_value: float


def estimate_trend(values: Sequence[float]) -> Trend | None:
    """The trend of a sequence; ``None`` for fewer than `FEWEST_OF_TREND` values. Ties count half.

    Time and memory grow with the square of the number of values.
    """
    if len(values) < FEWEST_OF_TREND:
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
