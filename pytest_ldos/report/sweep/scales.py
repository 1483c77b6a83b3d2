"""Scales of a sweep's plots: linear, logarithmic where values span a decade, or names side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.report.html.scale import Scale
from pytest_ldos.report.sweep.document import AxisReport

_DECADE: Final = 10.0
_ROOM: Final = 0.06
_FEW: Final = 3


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


@dataclass(frozen=True)
class AxisScale:
    """Where the values of an axis stand, with their labels.

    Attributes:
        is_log: whether distances are ratios.
    """

    places: tuple[tuple[Value, float, str], ...]
    is_log: bool

    @classmethod
    def of(cls, axis: AxisReport, *, start: float, end: float) -> Self:
        """Numbers to scale, names at equal distances."""
        labels = [show_value(value) for value in axis.values]
        if axis.is_numeric:
            numbers = [float(str(value)) for value in axis.values]
            scale = scale_of(numbers, start=start, end=end)
            places = [scale(number) for number in numbers]
            return cls(tuple(zip(axis.values, places, labels, strict=True)), isinstance(scale, LogScale))
        width = (end - start) / len(labels)
        places = [start + width * (number + 0.5) for number in range(len(labels))]
        return cls(tuple(zip(axis.values, places, labels, strict=True)), False)

    def __call__(self, value: Value) -> float:
        return next(place for each, place, _ in self.places if each == value)

    def labels(self, least: float) -> list[tuple[float, str]]:
        """Places with labels, without those that would stand on the one before."""
        shown: list[tuple[float, str]] = []
        for _, place, label in sorted(self.places, key=lambda each: each[1]):
            if not shown or place - shown[-1][0] >= least:
                shown.append((place, label))
        return shown
