"""Percentiles of the times of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.location import median

Times = npt.NDArray[np.int64]

_NS_PER_US: Final = 1e3


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Statistics of times, in microseconds.

    Attributes:
        p999: ``None`` where the program does not report it.
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
        """Computes each percentile as one of the times: the smallest that the given share does not exceed.

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
