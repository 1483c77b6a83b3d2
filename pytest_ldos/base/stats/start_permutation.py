"""Exact test of scores of two versions whose evidence is the start: starts are permuted, never single trials.

Trials of one start are alike, so a slow start makes several slow trials at once. Between equal versions, a start could
as well have been one of the other version. The probability of a difference as large as the observed one is counted
over all ways to divide the starts, whatever the scores and however starts differ. A drift that both versions share
makes the test more careful.

Reference: P. Good, "Permutation, Parametric, and Bootstrap Tests of Hypotheses", 3rd ed., 2005, chapters 3 and 9.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Numbers = npt.NDArray[np.float64]
Starts = npt.NDArray[np.int64]

_STEPS: Final = 200
"""Steps from the least to the largest score. Rounded scores are scores, too: the test stays exact."""

_MOST_EXACT: Final = 40
"""Largest number of starts of a version that are permuted; of more, the distribution is normal."""


def sum_by_start(scores: tuple[Numbers, Numbers], starts: tuple[Starts, Starts]) -> tuple[Numbers, Numbers]:
    """Sums of each start's scores, less the mean of all, so that starts with more trials do not count as worse."""
    mean = float(np.concatenate(scores).mean())
    head, base = (
        np.array([(values[of == start] - mean).sum() for start in np.unique(of)])
        for values, of in zip(scores, starts, strict=True)
    )
    return head, base


def permutation_p(head: Numbers, base: Numbers) -> float:
    """Probability that as many starts as `head` has, taken at random from all, have a sum as large as `head`'s.

    Args:
        head, base: a score of each start.
    """
    together = np.concatenate([head, base])
    spread = float(np.ptp(together))
    if spread == 0:
        return 1.0
    if max(head.size, base.size) > _MOST_EXACT:
        return _normal_p(head, together)
    scores = np.rint((together - together.min()) * (_STEPS / spread)).astype(np.int64)
    ways = _count_ways(scores, head.size)
    return float(ways[scores[: head.size].sum() :].sum() / ways.sum())


def _count_ways(scores: Starts, chosen: int) -> Numbers:
    """Number of ways to choose so many of the scores, by their sum."""
    largest = int(np.sort(scores)[-chosen:].sum())
    ways = np.zeros((chosen + 1, largest + 1))
    ways[0, 0] = 1.0
    for score in scores:
        ways[1:, score:] += ways[:-1, : largest + 1 - score].copy()
    last: Numbers = ways[chosen]
    return last


def _normal_p(head: Numbers, together: Numbers) -> float:
    share = head.size / together.size
    variance = head.size * (1 - share) * float(together.var(ddof=1))
    return float(ndtr((head.size * float(together.mean()) - float(head.sum())) / math.sqrt(variance)))
