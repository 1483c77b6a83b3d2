"""Percentiles of the times of a round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.rank_tests import median
from pytest_ldos.host.availability import Availability, find_modules

Times = npt.NDArray[np.int64]

_NS_PER_US: Final = 1e3


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Statistics of times, in microseconds.

    Attributes:
        p999: ``None`` if the program does not report it.
    """

    count: int
    low: float
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float | None
    high: float

    @classmethod
    def of(cls, times_ns: Times) -> Percentiles:
        """Computes nearest-rank percentiles.

        Args:
            times_ns: at least one.
        """
        places = [-(-len(times_ns) * permille // 1000) - 1 for permille in (500, 900, 990, 999)]
        p50, p90, p99, p999 = np.partition(times_ns, places)[places] / _NS_PER_US
        return cls(
            count=len(times_ns),
            low=float(times_ns.min()) / _NS_PER_US,
            mean=float(times_ns.mean()) / _NS_PER_US,
            p50=float(p50),
            p90=float(p90),
            p99=float(p99),
            p999=float(p999),
            high=float(times_ns.max()) / _NS_PER_US,
        )

    def times(self, factor: float) -> Percentiles:
        """Returns a copy with all times multiplied by `factor`."""
        p999 = None if self.p999 is None else self.p999 * factor
        scaled = {name: getattr(self, name) * factor for name in ("low", "mean", "p50", "p90", "p99", "high")}
        return replace(self, p999=p999, **scaled)


def combine(parts: Sequence[Percentiles]) -> Percentiles:
    """Combines several rounds: medians of their percentiles, the mean of all times, the minimum and the maximum.

    Args:
        parts: at least one.
    """
    count = sum(each.count for each in parts)
    known = [each.p999 for each in parts if each.p999 is not None]
    return Percentiles(
        count=count,
        low=min(each.low for each in parts),
        mean=sum(each.mean * each.count for each in parts) / count,
        p50=median([each.p50 for each in parts]),
        p90=median([each.p90 for each in parts]),
        p99=median([each.p99 for each in parts]),
        p999=median(known) if len(known) == len(parts) else None,
        high=max(each.high for each in parts),
    )


LONGEST_NS: Final = 60_000_000_000
_MODULE: Final = "hdrh.histogram"
_DIGITS: Final = 3
_TICKS_PER_HALF: Final = 5
"""Steps per halving of the remaining share."""


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
        """Returns HdrHistogram's compressed format in base 64, for other tools."""
        return str(self._histogram.encode().decode("ascii"))
