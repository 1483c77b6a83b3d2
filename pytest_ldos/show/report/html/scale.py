"""From values to places in a drawing: linear, or logarithmic where values span a decade."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

_ROOM: Final = 0.06
"""Share of the span that stays free at either end."""

_STEPS: Final = (1, 2, 5, 10)
_DECADE: Final = 10.0
_FEW: Final = 3


@dataclass(frozen=True)
class Scale:
    """A line from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Iterable[float], *, start: float, end: float) -> Self:
        """A scale that holds all values, with some room; of equal values, a scale around them."""
        found = list(values) or [0.0]
        low, high = min(found), max(found)
        room = _ROOM * (high - low) or 0.05 * abs(low) or 1.0
        return cls(low - room, high + room, start, end)

    def __call__(self, value: float) -> float:
        """Where a value stands; what lies beyond stands at the end."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values, about as many as wanted."""
        rough = (self.high - self.low) / wanted
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * factor for factor in _STEPS if size * factor >= rough * 0.999)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


class LogScale(Scale):
    """A scale of logarithms: `low` and `high` are above 0."""

    @classmethod
    def around(cls, values: Sequence[float], *, start: float, end: float) -> Self:  # type: ignore[override]
        low, high = math.log(min(values)), math.log(max(values))
        room = _ROOM * (high - low) or 0.5
        return cls(math.exp(low - room), math.exp(high + room), start, end)

    def __call__(self, value: float) -> float:
        low, high = math.log(self.low), math.log(self.high)
        share = (math.log(max(value, self.low)) - low) / (high - low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Powers of ten, with 2 and 5 between them where there are few."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = [power for power in range(first, last + 1) if self.low <= 10.0**power <= self.high]
        factors = (1,) if len(decades) > _FEW else (1, 2, 5)
        step = max(1, math.ceil(len(decades) / (wanted + 2)))
        return [
            value
            for power in range(first, last + 1, step)
            for factor in factors
            if self.low <= (value := factor * 10.0**power) <= self.high
        ]


def scale_of(values: Sequence[float], *, start: float, end: float) -> Scale:
    """Logarithmic where all values are above 0 and span a decade or more."""
    if values and min(values) > 0 and max(values) / min(values) >= _DECADE:
        return LogScale.around(values, start=start, end=end)
    return Scale.around(values, start=start, end=end)
