"""Disjoint intervals of many owners laid end to end on one line, where one sorted search finds any moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]

_KINDS: Final = 3


@dataclass(frozen=True)
class Timeline:
    """Disjoint intervals of many owners (threads, CPUs) laid end to end on one line.

    A moment of an owner has a place on the line, so that one sorted search finds it. Moments
    before an owner's first interval or after its last have the place of its first or last edge.

    Attributes:
        owners: key columns with ``low``, ``high`` (nanoseconds) and ``offset`` (on the line).
        begin, end: places of the intervals, in order.
        moved: offset from each interval's nanoseconds to its places.
    """

    owners: pl.DataFrame
    begin: Ints
    end: Ints
    moved: Ints

    @classmethod
    def of(cls, intervals: pl.DataFrame, key: list[str]) -> Timeline:
        """Args: intervals: sorted by key and time, with ``begin_ns`` and ``end_ns``."""
        begin, end = (intervals[name].to_numpy() for name in ("begin_ns", "end_ns"))
        is_first = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in key).fill_null(True)
        first = np.flatnonzero(intervals.select(is_first).to_series().to_numpy())
        last = np.append(first[1:], len(intervals))[: len(first)] - 1
        low, high = begin[first], end[last]
        offset = np.cumsum(high - low + 1) - (high - low + 1)
        moved = np.repeat(offset - low, last - first + 1)
        owners = intervals.select(key)[first].with_columns(low=low, high=high, offset=offset)
        return cls(owners, begin + moved, end + moved, moved)

    def place(self, spans: pl.DataFrame, moments: Ints) -> Ints:
        """Places of moments of the spans' owners; -1 for an owner without intervals."""
        key = [name for name in self.owners.columns if name not in {"low", "high", "offset"}]
        wanted = spans.select(pl.col(name).cast(self.owners.schema[name], strict=False) for name in key)
        found = wanted.with_columns(at=moments).join(self.owners, on=key, how="left", maintain_order="left")
        inside = pl.col("at").clip(pl.col("low"), pl.col("high"))
        places: Ints = found.select((inside - pl.col("low") + pl.col("offset")).fill_null(-1)).to_series().to_numpy()
        return places

    def totals_within(self, first: Ints, last: Ints, kind: pl.Series) -> list[Ints]:
        """Nanoseconds of intervals of each kind (0, 1, 2) between each pair of places."""
        if not len(self.begin):
            return [np.zeros(len(first), dtype=np.int64)] * _KINDS
        length = self.end - self.begin
        rows = [np.maximum(_last_at(self.begin, places), 0) for places in (first, last)]
        inside = [np.clip(at - self.begin[row], 0, length[row]) for at, row in zip((first, last), rows, strict=True)]
        totals = []
        for number in range(_KINDS):
            counted = kind.to_numpy() == number
            counted_length = np.where(counted, length, 0)
            before = np.cumsum(counted_length) - counted_length
            until = [before[row] + counted[row] * part for row, part in zip(rows, inside, strict=True)]
            totals.append(until[1] - until[0])
        return totals

    def overlaps(self, spans: pl.DataFrame, begin: Ints, end: Ints) -> pl.DataFrame:
        """Each span with each interval of its owner that overlaps it.

        Columns: ``span``, ``interval`` (row numbers), ``begin_ns``, ``end_ns`` (of the overlap).
        """
        first, last = self.place(spans, begin), self.place(spans, end)
        low = _last_at(self.end, first) + 1
        count = np.where(last > first, np.maximum(_last_at(self.begin, last - 1) + 1 - low, 0), 0)
        span = np.repeat(np.arange(len(first)), count)
        interval = np.arange(len(span)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
        moved = self.moved[interval]
        return pl.DataFrame(
            {
                "span": span,
                "interval": interval,
                "begin_ns": np.maximum(begin[span], self.begin[interval] - moved),
                "end_ns": np.minimum(end[span], self.end[interval] - moved),
            }
        )


def _last_at(sorted_values: Ints, places: Ints) -> Ints:
    """Row of the last value not above each place, or -1; searched in sorted order, which is fastest in memory."""
    order = np.argsort(places, kind="stable")
    rows = np.empty(len(places), dtype=np.int64)
    rows[order] = np.searchsorted(sorted_values, places[order], side="right") - 1
    return rows
