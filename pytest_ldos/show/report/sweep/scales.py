"""Where the values of a sweep's axis stand: to scale, or names side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.show.report.html.scale import LogScale, scale_of
from pytest_ldos.show.report.sweep.document import AxisReport


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
