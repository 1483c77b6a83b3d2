"""The full distribution of times, in a histogram that keeps three significant digits of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.instruments.latency.timings import Times

LONGEST_NS: Final = 60_000_000_000
_MODULE: Final = "hdrh.histogram"
_DIGITS: Final = 3
_TICKS_PER_HALF: Final = 5
"""Steps per halving of the remaining share: enough for a smooth curve."""


def histograms_available() -> Availability:
    found = find_modules([_MODULE.partition(".")[0]], extra="embedded")
    return found if found.ok else Availability(False, found.reason, "pip install hdrhistogram")


@dataclass(frozen=True)
class Step:
    """A point of a distribution.

    Attributes:
        share: share of the times that are at most `value_ns`.
        count: number of those times.
    """

    value_ns: int
    share: float
    count: int


class Distribution:
    """Times of several rounds."""

    def __init__(self) -> None:
        self._histogram: Any = import_module(_MODULE).HdrHistogram(1, LONGEST_NS, _DIGITS)

    def add(self, times_ns: Times) -> None:
        """Counts times; those above `LONGEST_NS` count as `LONGEST_NS`."""
        values, counts = np.unique(np.clip(times_ns, 1, LONGEST_NS), return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            self._histogram.record_value(value, count)

    @property
    def count(self) -> int:
        return int(self._histogram.get_total_count())

    def percentile_ns(self, percent: float) -> int:
        """Returns a percentile, accurate to a thousandth of it."""
        return int(self._histogram.get_value_at_percentile(percent))

    def steps(self) -> Iterator[Step]:
        """Yields steps from the shortest to the longest time, finer towards the tail."""
        if not self.count:
            return
        for each in self._histogram.get_percentile_iterator(_TICKS_PER_HALF):
            yield Step(int(each.value_iterated_to), each.percentile / 100, int(each.total_count_to_this_value))

    def encoded(self) -> str:
        """Returns HdrHistogram's compressed form in base 64, for its other tools."""
        return str(self._histogram.encode().decode("ascii"))
