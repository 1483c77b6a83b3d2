"""Where a sample lies."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The middle value; the mean of the middle two of an even number."""
    return statistics.median(values)
