"""Corrects a test for trials grouped by stack start, if the probability differs between starts.

Source: with ``m`` trials of a start and correlation ``ρ`` between them, a count varies ``1 + (m - 1) ρ`` times
as much as a binomial one (J. G. Skellam, "A probability distribution derived from the binomial distribution by
regarding the probability of success as variable", Journal of the Royal Statistical Society B 10, 1948).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln, logsumexp

SUPPOSED_CORRELATION: Final = 2 / math.pi * math.asin(0.2)
"""Assumed correlation between the outcomes of two trials of one start, at the threshold: 0.128.

The standard deviation between starts is assumed to be half of that between trials, as in the gate without
calibration: one fifth of the variance. This is the correlation between the signs of two normal variables whose own
correlation is one fifth.
"""

_ALTERNATIVES: Final = 400
_BISECTIONS: Final = 40

_Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=64)
def tempering(group: int, boundary: float, correlation: float) -> float:
    """The largest exponent of likelihood ratios against `boundary` whose expectation over a start stays at most 1.

    Holds for every alternative, and for every start with a beta-binomial count of this correlation or less.

    Args:
        group: largest number of trials of a start.
    """
    if group == 1 or correlation <= 0:
        return 1.0
    hits = np.arange(group + 1)
    log_chance = _log_beta_binomial(hits, group, boundary, correlation)
    alternatives = np.linspace(0, 1, _ALTERNATIVES + 1)[1:-1]
    others = alternatives[np.abs(alternatives - boundary) > 1 / _ALTERNATIVES]
    ratios = np.outer(np.log(others / boundary), hits) + np.outer(np.log1p(-others) - np.log1p(-boundary), group - hits)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_valid = logsumexp(middle * ratios + log_chance, axis=1).max() <= 0
        low, high = (middle, high) if is_valid else (low, middle)
    return low


def _log_beta_binomial(hits: npt.NDArray[np.int64], group: int, mean: float, correlation: float) -> _Numbers:
    spread = 1 / correlation - 1
    one, other = mean * spread, (1 - mean) * spread
    choices = gammaln(group + 1) - gammaln(hits + 1) - gammaln(group - hits + 1)
    chances: _Numbers = choices + betaln(hits + one, group - hits + other) - betaln(one, other)
    return chances


def estimate_correlation(levels: Sequence[Sequence[tuple[int, int]]]) -> float | None:
    """The correlation within groups, by analysis of variance; ``None`` if it cannot be estimated.

    Args:
        levels: hits and trials of each group, by level.

    Reference: J. L. Fleiss, B. Levin, M. C. Paik, "Statistical Methods for Rates and Proportions", 3rd ed., 15.2.
    """
    between = within = weight = 0.0
    df_between = df_within = 0
    for groups in levels:
        counted = [(hits, trials) for hits, trials in groups if trials]
        total = sum(trials for _, trials in counted)
        if len(counted) < 2:
            continue
        mean = sum(hits for hits, _ in counted) / total
        between += sum(trials * (hits / trials - mean) ** 2 for hits, trials in counted)
        within += sum(hits * (1 - hits / trials) for hits, trials in counted)
        weight += total - sum(trials**2 for _, trials in counted) / total
        df_between += len(counted) - 1
        df_within += total - len(counted)
    if not df_between or not df_within or not within + between:
        return None
    square_between, square_within, size = between / df_between, within / df_within, weight / df_between
    correlation = (square_between - square_within) / (square_between + (size - 1) * square_within)
    return min(1.0, max(0.0, correlation))
