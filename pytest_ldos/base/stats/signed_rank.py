"""Location of a sample with an interval, by inverting the signed-rank test; for many samples at once.

Hodges–Lehmann: the median of the means of all pairs, including each value with itself. Its interval comes from the
exact distribution of Wilcoxon's signed-rank statistic, for symmetric noise.

Reference: M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd ed., sections 3.2 and 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

_CHUNK: Final = 4_000_000
"""Largest number of means in memory at once."""

_LARGEST: Final = 200
"""Number of values paired, evenly picked in order from a larger sample: more would not change the estimate."""


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
        tail: probability that the true location lies below `low`, and likewise above `high`.
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
