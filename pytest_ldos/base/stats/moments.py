"""Count, mean and standard deviation of values since a start, and of those since an earlier look."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Moments:
    """Count, mean and standard deviation of values.

    Attributes:
        sd: of the values themselves (divided by their count).
    """

    count: int
    mean: float
    sd: float

    def since(self, earlier: Moments) -> Moments | None:
        """Moments of the values that came after an earlier look; ``None`` if none came, or counting began again."""
        count = self.count - earlier.count
        if count <= 0:
            return None
        mean = (self.count * self.mean - earlier.count * earlier.mean) / count
        between = earlier.count * count / self.count * (mean - earlier.mean) ** 2
        squares = self.count * self.sd**2 - earlier.count * earlier.sd**2 - between
        return Moments(count, mean, math.sqrt(max(squares, 0.0) / count))
