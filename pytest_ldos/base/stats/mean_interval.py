"""Confidence interval of a population mean from a few values that are means themselves.

Reference: Student's t; means of many messages are nearly normal, whatever the distribution of the messages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit


def mean_interval(values: Sequence[float], *, confidence: float = 0.95) -> tuple[float, float]:
    """Bounds of the mean; infinite for fewer than two values."""
    if len(values) < 2:
        return (-math.inf, math.inf)
    center = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stdtrit(len(values) - 1, (1 + confidence) / 2)) * error
    return (center - half, center + half)
