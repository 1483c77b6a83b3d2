"""Minimum detectable effect of a comparison."""

from __future__ import annotations

import math

from scipy.special import ndtri

POWER = 0.8
"""Probability of finding an effect as large as the minimum detectable effect."""


def smallest_detectable_shift(half_width: float, *, tail: float, floor: float) -> float:
    """The minimum detectable effect as a shift: it would be reported with probability `POWER`.

    A report requires that the interval excludes zero and that the estimate exceeds the floor.

    Args:
        half_width: from the estimate to the interval's lower end; infinite if the
            samples are too small for any interval.
        tail: the interval's one-sided probability of error.
        floor: the shift below which nothing is reported.
    """
    if not math.isfinite(half_width):
        return math.inf
    deviations = -float(ndtri(tail))
    standard_error = half_width / deviations
    certainty = float(ndtri(POWER)) * standard_error
    return max(half_width + certainty, floor + certainty)
