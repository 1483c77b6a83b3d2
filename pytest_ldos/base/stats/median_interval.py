"""Confidence interval of a population median from order statistics: exact for any continuous distribution.

Reference: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd ed., section 7.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the median; infinite if there are too few values for the confidence.

    Args:
        values: infinity stands for a censored value, known only to be large.
    """
    ordered = sorted(values)
    size, tail = len(ordered), (1 - confidence) / 2
    left_out = int(np.count_nonzero(bdtr(np.arange(size), size, 0.5) <= tail))
    return (ordered[left_out - 1], ordered[size - left_out]) if left_out else (-math.inf, math.inf)
