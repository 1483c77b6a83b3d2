"""Rank tests: estimate and interval of a shift or of a location, and the minimum detectable effect.

Hodges–Lehmann: the shift between two samples is the median of all pairwise differences;
its interval comes from the exact distribution of the Mann–Whitney statistic, so that no
shape of the noise is assumed. On logarithms, the shift is a ratio.

Reference: M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd
ed., sections 4.1 to 4.3.

Hodges–Lehmann: the median of the means of all pairs, including each value with itself. Its interval comes from the
exact distribution of Wilcoxon's signed-rank statistic, for symmetric noise.

Reference: M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd ed., sections 3.2 and 3.3.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

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
    """The shift of `head` over `base`.

    Args:
        head, base: values; infinity stands for a censored value, known only to be large, and
            two of them count as equal.
        tail: probability that the true shift is below `low`, and likewise above `high`.
    """
    differences = np.sort(_differences(head, base).ravel())
    low, high = _interval(differences, lower_quantile(len(head), len(base), tail))
    inner = _interval(differences, lower_quantile(len(head), len(base), _ONE_DEVIATION))
    return Shift(_median(differences), low, high, _half(inner))


def rank_sum_p(head: Sample, base: Sample) -> float:
    """Exact probability of a rank sum as high as `head`'s if both samples had the same distribution (one-sided).

    Ties count half. This is conservative for measured times, where only censored values
    are tied.
    """
    differences = _differences(head, base)
    statistic = float(np.count_nonzero(differences > 0) + 0.5 * np.count_nonzero(differences == 0))
    distribution = mann_whitney(len(head), len(base))
    at_least = int(np.floor(statistic))
    return float(distribution[at_least:].sum())


def _interval(differences: Sample, left_out: int) -> tuple[float, float]:
    """Interval after dropping `left_out` of the sorted differences at each end; unbounded if none may be dropped."""
    return (float(differences[left_out - 1]), float(differences[-left_out])) if left_out else (-np.inf, np.inf)


def _half(interval: tuple[float, float]) -> float:
    """Half the width; 0 if both ends are equal, even if infinite."""
    return 0.0 if interval[0] == interval[1] else (interval[1] - interval[0]) / 2


def _differences(head: Sample, base: Sample) -> Sample:
    with np.errstate(invalid="ignore"):
        differences = head[:, None] - base[None, :]
    return np.where(np.isnan(differences), 0.0, differences)


def _median(differences: Sample) -> float:
    """The median; also works if the middle two values are infinite."""
    middle = differences[[(len(differences) - 1) // 2, len(differences) // 2]]
    return float(middle[0]) if middle[0] == middle[1] else float(middle.mean())


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


Numbers = npt.NDArray[np.float64]

_CHUNK: Final = 4_000_000
"""Largest number of means in memory at once."""

_LARGEST: Final = 200
"""Largest number of paired values; of a larger sample, evenly spaced order statistics are used."""


@dataclass(frozen=True)
class Locations:
    """Estimates and bounds, one number per sample in each.

    Attributes:
        low, high: bounds of the interval; infinite if the samples are too small for it.
    """

    estimate: Numbers
    low: Numbers
    high: Numbers


def locate(samples: Numbers, *, tail: float) -> Locations:
    """The location of each row of an array.

    Args:
        samples: one sample per row; infinity stands for a censored value, known only to be large.
        tail: probability that the true location is below `low`, and likewise above `high`.
    """
    size = samples.shape[1]
    if size > _LARGEST:
        picked = np.linspace(0, size - 1, _LARGEST).round().astype(int)
        return locate(np.sort(samples, axis=1)[:, picked], tail=tail)
    cut = _quantile(size, tail)
    count = size * (size + 1) // 2
    places = [(count - 1) // 2, count // 2, max(cut - 1, 0), count - max(cut, 1)]
    chunks = np.array_split(samples, max(1, len(samples) * count // _CHUNK))
    found = np.concatenate([np.partition(_pair_means(chunk), places, axis=1)[:, places] for chunk in chunks])
    if cut == 0:
        found[:, 2], found[:, 3] = -np.inf, np.inf
    middle = np.where(found[:, 0] == found[:, 1], found[:, 0], found[:, :2].mean(axis=1))
    return Locations(middle, found[:, 2], found[:, 3])


def _pair_means(samples: Numbers) -> Numbers:
    first, second = np.triu_indices(samples.shape[1])
    means: Numbers = (samples[:, first] + samples[:, second]) / 2
    return means


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


def median(values: Sequence[float]) -> float:
    """The middle value; for an even number of values, the mean of the middle two."""
    return statistics.median(values)


POWER = 0.8
"""Probability of reporting an effect of the size of the MDE."""


def smallest_detectable_shift(half_width: float, *, tail: float, floor: float) -> float:
    """The minimum detectable effect as a shift: it would be reported with probability `POWER`.

    A report requires that the interval excludes zero and that the estimate exceeds the floor.

    Args:
        half_width: from the estimate to the interval's lower end; infinite if the
            samples are too small for any interval.
        tail: the interval's one-sided probability of error.
        floor: smallest reported shift.
    """
    if not math.isfinite(half_width):
        return math.inf
    deviations = -float(ndtri(tail))
    standard_error = half_width / deviations
    certainty = float(ndtri(POWER)) * standard_error
    return max(half_width + certainty, floor + certainty)
