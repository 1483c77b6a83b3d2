"""The rule of ``asv continuous`` and ``asv compare`` for a regression.

Reference: asv 0.6.6, `asv._stats.is_different` and `asv.commands.compare._is_result_better`. With raw samples at hand
it is a Mann–Whitney test, exact up to 20 samples, for more by the normal distribution without corrections, ties broken the
least significant way; and the medians must differ by the factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from benchmarks.scorecard.sample import Flags, Indices, Numbers
from pytest_ldos.base.stats.rank_tests import mann_whitney

P_THRESHOLD = 0.002
FACTOR = 1.1
MOST_COUNTED = 20
"""Samples a side up to which asv counts exactly; with very few it falls back to intervals, which is not needed here."""


@dataclass(frozen=True)
class Asv:
    name: str = "asv"
    title: str = "asv, p < 0.002 and ratio > 1.1"
    source: str = "asv 0.6.6, stated again; compared with asv's own code where it can be installed"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        larger: Flags = np.nanmedian(base, axis=1) < np.nanmedian(head, axis=1) / FACTOR
        red = np.zeros(len(head), dtype=np.bool_)
        candidates = np.flatnonzero(larger)
        if candidates.size:
            red[candidates] = two_sided_p(base[candidates], head[candidates]) < P_THRESHOLD
        return red


def two_sided_p(base: Numbers, head: Numbers) -> Numbers:
    """As asv finds it, shape (runs,)."""
    counts = [np.count_nonzero(np.isfinite(side), axis=1) for side in (base, head)]
    pairs = counts[0] * counts[1]
    with np.errstate(invalid="ignore"):
        differences = base[:, :, None] - head[:, None, :]
    below = np.count_nonzero(differences > 0, axis=(1, 2))
    ties = np.count_nonzero(differences == 0, axis=(1, 2))
    ties = np.where((below <= pairs // 2) & (below + ties >= pairs // 2), pairs // 2 - below, ties)
    statistic = np.maximum(np.minimum(below, pairs - below), np.minimum(below + ties, pairs - below - ties))
    deviation = np.sqrt(pairs * (counts[0] + counts[1] + 1) / 12)
    approximate = 2 * ndtr((statistic - pairs / 2) / deviation)
    exact = [2 * np.sum(mann_whitney(*sizes)[: int(u) + 1]) for *sizes, u in zip(*counts, statistic, strict=True)]
    p_value: Numbers = np.where(np.maximum(*counts) <= MOST_COUNTED, np.minimum(exact, 1.0), approximate)
    return p_value
