"""Location of a sample."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The middle value; for an even number of values, the mean of the middle two."""
    return statistics.median(values)
