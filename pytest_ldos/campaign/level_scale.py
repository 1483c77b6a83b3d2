"""Scale of a search's levels, from the calm end of a range to its harsh end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import require

_DIGITS: Final = 3
"""Significant digits of a level, for readability."""

_FINEST: Final = 0.01
"""Share of a linear range within which levels are near enough."""

_TOUCH: Final = 1e-9


class Spacing(StrEnum):
    """Values of ``--scale``."""

    LOG = "log"
    LINEAR = "linear"


@dataclass(frozen=True, kw_only=True)
class LevelScale:
    """A range of levels; places on it go from 0, its calm end, to 1, its harsh end.

    Attributes:
        precision: levels are close enough if they differ by at most this share of the lower one (on a linear
            scale also by at most a hundredth of the range), or are neighbours.
        is_whole: True if only whole numbers are levels.
        is_falling: True if less is harsher: the calm end is then `high`.
    """

    low: float
    high: float
    spacing: Spacing = Spacing.LOG
    precision: float = 0.1
    is_whole: bool = False
    is_falling: bool = False

    def __post_init__(self) -> None:
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(
            finite and self.low < self.high,
            f"there is nothing to search from {self.low:g} to {self.high:g}",
            remedy="--lo must be less than --hi",
        )
        require(
            self.low > 0 or self.spacing is Spacing.LINEAR,
            f"a range from {self.low:g} has no logarithms",
            remedy="give a --lo above 0, or --scale linear",
        )
        require(0 < self.precision < math.inf, f"a precision of {self.precision:g}", remedy="write it as 10% or 0.1")
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        require(
            whole or not self.is_whole,
            f"from {self.low:g} to {self.high:g}: only whole numbers are possible here",
            remedy="give whole numbers as --lo and --hi",
        )

    @property
    def calm(self) -> float:
        return self.high if self.is_falling else self.low

    @property
    def harsh(self) -> float:
        return self.low if self.is_falling else self.high

    def place(self, level: float) -> float:
        """Place of a level between the calm end and the harsh one."""
        low, high = self._coordinate(self.low), self._coordinate(self.high)
        share = (self._coordinate(level) - low) / (high - low)
        return 1 - share if self.is_falling else share

    def level(self, place: float) -> float:
        """The level at a place, rounded to a readable value that can be set."""
        low, high = self._coordinate(self.low), self._coordinate(self.high)
        share = 1 - place if self.is_falling else place
        exact = low + share * (high - low)
        value = math.exp(exact) if self.spacing is Spacing.LOG else exact
        rounded = float(round(value)) if self.is_whole else float(f"{value:.{_DIGITS}g}")
        return min(self.high, max(self.low, rounded))

    def between(self, one: float, other: float) -> float | None:
        """The level in the middle of two; ``None`` if they are close enough or adjacent."""
        if self.is_near(one, other):
            return None
        middle = self.level((self.place(one) + self.place(other)) / 2)
        return middle if min(one, other) + _TOUCH < middle < max(one, other) - _TOUCH else None

    def is_near(self, one: float, other: float) -> bool:
        """True if two levels are so close that none between them needs testing."""
        low, high = sorted((one, other))
        return (self.is_whole and high - low <= 1) or high - low <= self._near_by(low) * (1 + _TOUCH)

    def _near_by(self, level: float) -> float:
        """Distance within which levels are close enough; on a linear range at least a share of the range."""
        relative = self.precision * abs(level)
        return max(relative, _FINEST * (self.high - self.low)) if self.spacing is Spacing.LINEAR else relative

    def halvings(self) -> int:
        """Largest number of levels that bisection visits between the ends."""
        return self._halvings(self.low, self.high)

    def _halvings(self, low: float, high: float) -> int:
        middle = self.between(low, high)
        return 0 if middle is None else 1 + max(self._halvings(low, middle), self._halvings(middle, high))

    def _coordinate(self, level: float) -> float:
        return math.log(level) if self.spacing is Spacing.LOG else level
