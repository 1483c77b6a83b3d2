"""Rank tests of two samples, of locations, and of the order of a sequence.

Intervals come from the exact distributions of the Mann–Whitney and signed-rank statistics, so that no shape of the
noise is assumed. On logarithms, a shift is a ratio.

Reference: M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd ed., sections 3.2 to 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtr

Sample = npt.NDArray[np.float64]

_MOST_EXACT: Final = 100
"""Size of the smaller sample up to which the distribution is exact."""

_ONE_DEVIATION: Final = 0.158655
"""Probability that a normal variable exceeds its mean by more than one standard deviation."""


@dataclass(frozen=True)
class Shift:
    """Shift of one sample above another.

    Attributes:
        estimate: Hodges–Lehmann estimate; infinite if most pairs involve a censored value.
        low, high: bounds; infinite if the samples are too small for the confidence.
        standard_error: half-width of the 68 % interval; infinite for the smallest samples.
    """

    estimate: float
    low: float
    high: float
    standard_error: float


def estimate_shift(head: Sample, base: Sample, *, tail: float) -> Shift:
    """The shift of `head` over `base`; infinite values are censored, known only to be large, and count as equal.

    `tail` is the probability that the true shift is below `low`, and likewise above `high`.
    """
    differences = np.sort(_differences(head, base).ravel())
    low, high = _interval(differences, lower_quantile(len(head), len(base), tail))
    inner = _interval(differences, lower_quantile(len(head), len(base), _ONE_DEVIATION))
    middle = differences[[(len(differences) - 1) // 2, len(differences) // 2]]
    estimate = float(middle[0]) if middle[0] == middle[1] else float(middle.mean())  # both may be infinite
    return Shift(estimate, low, high, 0.0 if inner[0] == inner[1] else (inner[1] - inner[0]) / 2)


def rank_sum_p(head: Sample, base: Sample) -> float:
    """Exact probability of a rank sum as high as `head`'s if both samples had the same distribution (one-sided).

    Ties count half. This is conservative for measured times, where only censored values are tied.
    """
    differences = _differences(head, base)
    statistic = float(np.count_nonzero(differences > 0) + 0.5 * np.count_nonzero(differences == 0))
    distribution = mann_whitney(len(head), len(base))
    return float(distribution[int(np.floor(statistic)) :].sum())


def _interval(differences: Sample, left_out: int) -> tuple[float, float]:
    """Interval after dropping `left_out` of the sorted differences at each end; unbounded if none may be dropped."""
    return (float(differences[left_out - 1]), float(differences[-left_out])) if left_out else (-np.inf, np.inf)


def _differences(head: Sample, base: Sample) -> Sample:
    with np.errstate(invalid="ignore"):
        differences = head[:, None] - base[None, :]
    return np.where(np.isnan(differences), 0.0, differences)


def lower_quantile(head: int, base: int, tail: float) -> int:
    """The largest ``k`` with ``P(U < k) ≤ tail``: how many differences an interval drops at each end."""
    below = np.concatenate([[0.0], np.cumsum(mann_whitney(head, base))])
    return int(np.searchsorted(below, tail, side="right")) - 1


def fewest_trials(*, tail: float) -> int:
    """The smallest size of two equal samples for which an interval with this error probability exists."""
    if tail <= 0:
        raise ValueError("no interval is without error")
    size = 1
    while lower_quantile(size, size, tail) == 0:
        size += 1
    return size


@lru_cache(maxsize=64)
def mann_whitney(head: int, base: int) -> Sample:
    """Probabilities of the statistic's values ``0 … head·base`` under no difference.

    The generating function is the Gaussian binomial coefficient: multiplied by ``1 - q^(base + i)`` and divided by
    ``1 - q^i`` in turn, with scaling in between to stay in range. Beyond `_MOST_EXACT` that loses its digits;
    Edgeworth's expansion, by the variance and the fourth cumulant, is then right to 1e-6.

    Reference: E. Fix, J. L. Hodges, "Significance probabilities of the Wilcoxon test", Annals of Mathematical
    Statistics 26, 1955 (the cumulants).
    """
    fewer, more = sorted((head, base))
    if fewer > _MOST_EXACT:
        return _edgeworth(fewer, more)
    size = fewer * more + 1
    counts = np.zeros(size)
    counts[0] = 1.0
    for i in range(1, fewer + 1):
        step = more + i
        counts[step:] -= counts[: max(0, size - step)].copy()
        for offset in range(i):
            counts[offset::i] = np.cumsum(counts[offset::i])
        counts /= counts.max()
    counts = np.clip(counts, 0.0, None)  # rounding leaves tiny negative numbers for large samples
    probabilities: Sample = counts / counts.sum()
    return probabilities


def _edgeworth(head: int, base: int) -> Sample:
    variance = head * base * (head + base + 1) / 12
    fourth = -head * base * (head + base + 1) * (head**2 + base**2 + head * base + head + base) / 120
    borders = np.arange(head * base + 2) - 0.5
    z = (borders - head * base / 2) / math.sqrt(variance)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    below = np.clip(ndtr(z) - density * fourth / variance**2 * (z**3 - 3 * z) / 24, 0.0, 1.0)
    steps = np.clip(np.diff(below), 0.0, None)
    probabilities: Sample = steps / steps.sum()
    return probabilities


_CHUNK: Final = 4_000_000

_LARGEST: Final = 200
"""Largest number of paired values; of a larger sample, evenly spaced order statistics are used."""


@dataclass(frozen=True)
class Locations:
    """Estimates and bounds of each sample; the bounds are infinite if the samples are too small for them."""

    estimate: Sample
    low: Sample
    high: Sample


def locate(samples: Sample, *, tail: float) -> Locations:
    """The location of each row of an array (Hodges–Lehmann): the median of the means of all pairs of its values.

    Infinite values are censored. `tail` is the probability of error of each end of the interval.
    """
    size = samples.shape[1]
    if size > _LARGEST:
        picked = np.linspace(0, size - 1, _LARGEST).round().astype(int)
        return locate(np.sort(samples, axis=1)[:, picked], tail=tail)
    cut = _quantile(size, tail)
    count = size * (size + 1) // 2
    places = [(count - 1) // 2, count // 2, max(cut - 1, 0), count - max(cut, 1)]
    chunks = np.array_split(samples, max(1, len(samples) * count // _CHUNK))
    first, second = np.triu_indices(size)
    means = ((chunk[:, first] + chunk[:, second]) / 2 for chunk in chunks)
    found = np.concatenate([np.partition(each, places, axis=1)[:, places] for each in means])
    if cut == 0:
        found[:, 2], found[:, 3] = -np.inf, np.inf
    middle = np.where(found[:, 0] == found[:, 1], found[:, 0], found[:, :2].mean(axis=1))
    return Locations(middle, found[:, 2], found[:, 3])


@lru_cache(maxsize=256)
def _quantile(size: int, tail: float) -> int:
    """The largest ``k`` with ``P(W < k) ≤ tail``: how many means an interval drops at each end."""
    probabilities = np.ones(1)
    for rank in range(1, size + 1):
        longer = np.zeros(len(probabilities) + rank)
        longer[: len(probabilities)] += probabilities / 2
        longer[rank:] += probabilities / 2
        probabilities = longer
    below = np.concatenate([[0.0], np.cumsum(probabilities)])
    return int(np.searchsorted(below, tail, side="right")) - 1


POWER = 0.8


def smallest_detectable_shift(half_width: float, *, tail: float, floor: float) -> float:
    """The minimum detectable effect as a shift: it would be reported with probability `POWER`.

    A report requires that the interval excludes zero and that the estimate exceeds the floor.

    Args:
        half_width: from the estimate to the interval's lower end; infinite if the samples are too small for one.
        tail: the interval's one-sided probability of error.
    """
    if not math.isfinite(half_width):
        return math.inf
    standard_error = half_width / -float(ndtri(tail))
    certainty = float(ndtri(POWER)) * standard_error
    return max(half_width + certainty, floor + certainty)


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
"""One row per length, one column per correlation; simulated with 20 000 sequences per number
(`benchmarks/change_points.py --limits`)."""


FEWEST: Final = LENGTHS[0]
"""Shortest searched sequence; shorter ones have too many false alarms."""

LONGEST: Final = LENGTHS[-1]
"""Longest searched sequence; of a longer one, the end is searched."""

_SHORTEST_INTERVAL: Final = 8
_SHORTEST_SIDE: Final = 3


@dataclass(frozen=True)
class ChangePoint:
    """Index of the first value at a new level, and the statistic divided by its limit, which is greater than 1."""

    index: int
    strength: float


def find_change_points(values: Sample) -> list[ChangePoint]:
    """Returns the changes of level in order. Infinite values are allowed and count as the largest.

    Computes cumulative sums of normal scores over seeded intervals. The narrowest interval that exceeds the limit
    locates the change; then both sides are searched again. Rank scores limit the influence of outliers. The limit is
    that of a first-order autoregression with the correlation of the sequence plus one standard error.

    References: S. Kovács, P. Bühlmann, H. Li, A. Munk, "Seeded binary segmentation", Biometrika 110 (2023);
    R. Baranowski, Y. Chen, P. Fryzlewicz, "Narrowest-over-threshold detection of multiple change points",
    J. R. Stat. Soc. B 81 (2019).
    """
    first = max(0, len(values) - LONGEST)
    found = list(_search(values[first:], first))
    borders = [first, *sorted(point.index for point in found), len(values)]
    refined = []
    for point in found:  # moved to the best position between its neighbours
        place = borders.index(point.index)
        before, after = borders[place - 1], borders[place + 1]
        sums = cusum(normal_scores(values[before:after])[None, :])[0]
        refined.append(ChangePoint(before + _SHORTEST_SIDE + int(sums.argmax()), point.strength))
    return sorted(refined, key=lambda point: point.index)


def normal_scores(values: Sample) -> Sample:
    """Ranks along the last axis as quantiles of the normal distribution; equal values share their mean rank."""
    ranks = np.apply_along_axis(mean_ranks, -1, values)
    scores: Sample = ndtri((ranks - 0.5) / values.shape[-1])
    return scores


def mean_ranks(values: Sample) -> Sample:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def correlation_of(scores: Sample) -> Sample:
    """First-order autocorrelation along the last axis, robust to a few changes of level and to a slow trend.

    In a first-order autoregression, neighbouring differences are correlated by ``-(1 - phi) / 2``.
    """
    steps = np.diff(scores, axis=-1)
    steps -= steps.mean(axis=-1, keepdims=True)
    power = (steps * steps).mean(axis=-1)
    lagged = (steps[..., 1:] * steps[..., :-1]).mean(axis=-1)
    correlation: Sample = 1 + 2 * lagged / np.maximum(power, 1e-12)
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
        starts = np.linspace(0, length - width, math.ceil((length - width) / (width / 2)) + 1)
        intervals += [(round(start), min(length, round(start) + round(width))) for start in starts]
        width /= 2
    return intervals


def _search(values: Sample, offset: int) -> Iterator[ChangePoint]:
    if len(values) < FEWEST or np.all(values == values[0]):
        return
    scores = normal_scores(values)
    bound = limit(len(values), float(correlation_of(scores)))
    for first, last in reversed(seeded_intervals(len(values))):
        sums = cusum(scores[None, first:last])[0]
        if sums.max() > bound:
            split = first + _SHORTEST_SIDE + int(sums.argmax())
            yield ChangePoint(offset + split, float(sums.max()) / bound)
            yield from _search(values[:split], offset)
            yield from _search(values[split:], offset + split)
            return


def cusum(rows: Sample) -> Sample:
    """Scaled difference between the means before and after each split, for each row."""
    length = rows.shape[1]
    sizes = np.arange(_SHORTEST_SIDE, length - _SHORTEST_SIDE + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, sizes - 1]
    scaled: Sample = np.abs(sums) / np.sqrt(sizes * (length - sizes) / length)
    return scaled


_SHORTEST_PART: Final = 3
"""Fewest values before and after a place: at least this, and a fifth of all."""


@dataclass(frozen=True)
class LateRise:
    """The most significant rise of a sequence."""

    place: int  # index of the first value after it
    size: float  # mean after the place minus the mean before; negative if the sequence decreases everywhere
    p_value: float  # one-sided, under equal levels


def find_late_rise(values: Sample) -> LateRise:
    """The most significant rise; a p-value of 1 for too short sequences.

    At each place, the values after it are compared with those before (Student's t with the variance within both parts);
    the smallest p-value is multiplied by the number of places (Bonferroni). In simulations with normal, heavy-tailed
    and bimodal values and with one outlier in ten, ten values or more, it is below a p-value no more than twice as
    often as that p-value says, down to 0.0005.

    Reference: D. M. Hawkins, "Testing a sequence of observations for a shift in location", JASA 72, 1977.
    """
    shortest = max(_SHORTEST_PART, values.size // 5)
    places = range(shortest, values.size - shortest + 1)
    found = [_rise_at(values, place) for place in places]
    best = min(found, key=lambda each: each.p_value, default=LateRise(0, 0.0, 1.0))
    return replace(best, p_value=min(1.0, best.p_value * max(1, len(places))))


def _rise_at(values: Sample, place: int) -> LateRise:
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


@dataclass(frozen=True)
class Trend:
    """A trend over the order of values."""

    slope: float  # median of the slopes between all pairs, per place (Theil–Sen)
    p_value: float  # two-sided, under random order (Mann–Kendall); exact for few values without ties


def estimate_trend(values: Sequence[float]) -> Trend | None:
    """The trend of a sequence; ``None`` for fewer than `FEWEST_OF_TREND` values.

    Reference: H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13, 1945;
    P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63, 1968.
    """
    if len(values) < FEWEST_OF_TREND:
        return None
    from scipy import stats  # noqa: PLC0415 - takes a second to import

    order = np.arange(len(values))
    is_small = len({*values}) == len(values) <= 170  # of more, SciPy has no exact distribution
    p_value = float(stats.kendalltau(order, values, method="exact" if is_small else "auto").pvalue)
    return Trend(float(stats.theilslopes(values, order).slope), 1.0 if math.isnan(p_value) else p_value)
