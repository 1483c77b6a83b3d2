"""Count, mean and standard deviation of values, in total and since an earlier reading."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Moments:
    """Count, mean and standard deviation of values.

    Attributes:
        sd: standard deviation of the population (divided by the count).
    """

    count: int
    mean: float
    sd: float

    def since(self, earlier: Moments) -> Moments | None:
        """Moments of the values after an earlier reading; ``None`` if there are none, or counting was restarted."""
        count = self.count - earlier.count
        if count <= 0:
            return None
        mean = (self.count * self.mean - earlier.count * earlier.mean) / count
        between = earlier.count * count / self.count * (mean - earlier.mean) ** 2
        squares = self.count * self.sd**2 - earlier.count * earlier.sd**2 - between
        return Moments(count, mean, math.sqrt(max(squares, 0.0) / count))
