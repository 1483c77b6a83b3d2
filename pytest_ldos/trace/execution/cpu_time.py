"""Time that threads spent running, waiting for a CPU and blocked, within given spans.

A process runs while any of its threads does, so helper threads that emit no events count as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import BLOCKED, RUNNABLE, RUNNING, STATES

Ints = npt.NDArray[np.int64]

_KINDS: Final = 3


@dataclass(frozen=True)
class Timeline:
    """Disjoint intervals of many owners (threads, CPUs) laid end to end on one line.

    Each time of an owner has a place on the line, so that one binary search finds it. Times
    before the owner's first interval or after its last map to the first or last edge.

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
        """Builds a timeline of intervals sorted by key and time, with ``begin_ns`` and ``end_ns``."""
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
        """Places of times of the spans' owners; -1 for an owner without intervals."""
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


_MOST_TIDS: Final = 1 << 23
"""Above the kernel's limit (2^22); larger numbers are sorted instead of indexed."""


def dense_codes(host: npt.NDArray[Any], tid: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger]:
    """Small number for each (host, tid), in the same order; of the type that sorts fastest."""
    if not len(tid):
        return np.empty(0, dtype=np.uint16)
    low, high = int(tid.min()), int(tid.max())
    keys = tid if low >= 0 and not host.any() else host.astype(np.int64) * (high - low + 1) + tid - low
    most = int(keys.max())
    if most >= _MOST_TIDS:
        codes: npt.NDArray[np.unsignedinteger] = np.unique(keys, return_inverse=True)[1].astype(np.uint32)
        return codes
    present = np.zeros(most + 1, dtype=np.bool_)
    present[keys] = True
    numbers = np.cumsum(present) - 1
    narrow = numbers.astype(np.uint16 if numbers[-1] < 1 << 16 else np.uint32)
    found: npt.NDArray[np.unsignedinteger] = narrow[keys]
    return found


_KEY: Final = ["host", "tid"]
_EDGES: Final = (pl.col("start_ns").alias("begin_ns"), pl.col("end_ns"))


def split_spans(states: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Time for which the thread of each span was running, runnable, blocked, or in an unknown state.

    Args:
        states: result of `build_thread_states`.
        spans: columns ``host`` (name), ``tid`` (the kernel's; equal to `vtid` only outside containers),
            ``begin_ns``, ``end_ns``; one row per span, in any order; spans may overlap.

    Columns, one row per span, in the same order: ``running_ns``, ``runnable_ns``, ``blocked_ns`` and
    ``unknown_ns`` (not covered by kernel events). They are never negative, and their sum is exactly the span.

    Raises:
        ValueError: a span ends before it begins.
    """
    begin, end = _edges(spans)
    line = Timeline.of(states, _KEY)
    totals = line.totals_within(line.place(spans, begin), line.place(spans, end), states["state"].to_physical())
    parts = {f"{name}_ns": totals[number] for number, name in enumerate(STATES)}
    return pl.DataFrame(parts | {"unknown_ns": end - begin - np.sum(totals, axis=0)})


def spans_of_runs(model: ExecutionModel) -> pl.DataFrame:
    """Spans of the callback runs that have an end, for `split_spans` and `cpu_rivals`.

    A thread is identified by host and `vtid`, which equals the kernel's tid outside containers only.

    Columns: ``callback_run``, ``host``, ``tid``, ``begin_ns``, ``end_ns``.
    """
    processes = model.processes.join(model.hosts.select(host="id", host_name="name"), on="host")
    threads = model.threads.join(processes.select("host_name", process="id"), on="process")
    runs = model.callback_runs.drop_nulls("end_ns")
    owned = runs.join(threads.select("host_name", "tid", thread="id"), on="thread", maintain_order="left")
    return owned.select(pl.col("id").alias("callback_run"), pl.col("host_name").alias("host"), "tid", *_EDGES)


def cpu_rivals(states: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Threads that occupied the CPU while the thread of a span was runnable.

    They preempted it, or kept it waiting after it was woken or migrated.

    Args:
        states, spans: as for `split_spans`.

    Columns, by span, longest first: ``span`` (row number), ``tid``, ``name``, ``ns``. Their sum in
    a span is its ``runnable_ns``, less the time in which no thread is known to have run.

    Raises:
        ValueError: a span ends before it begins.
    """
    begin, end = _edges(spans)
    line = Timeline.of(states, _KEY)
    waits = line.overlaps(spans, begin, end)
    waits = waits.with_columns(states[name].gather(waits["interval"]) for name in ("state", "host", "cpu"))
    waits = waits.filter(pl.col("state") == RUNNABLE)
    runs = _until_next(states.filter(pl.col("state") == RUNNING).select("host", "tid", "cpu", "begin_ns", "end_ns"))
    on_cpu = Timeline.of(runs, ["host", "cpu"])
    held = on_cpu.overlaps(waits, waits["begin_ns"].to_numpy(), waits["end_ns"].to_numpy())
    return (
        held.select(
            span=waits["span"].gather(held["span"]),
            tid=runs["tid"].gather(held["interval"]),
            host=runs["host"].gather(held["interval"]),
            ns=pl.col("end_ns") - pl.col("begin_ns"),
        )
        .group_by("span", "host", "tid")
        .agg(pl.col("ns").sum())
        .join(_names(states), on=["host", "tid"], how="left")
        .sort(["span", "ns", "tid"], descending=[False, True, False])
        .select("span", "tid", "name", "ns")
    )


def _edges(spans: pl.DataFrame) -> tuple[Ints, Ints]:
    begin, end = (spans[name].cast(pl.Int64).to_numpy() for name in ("begin_ns", "end_ns"))
    if np.any(end < begin):
        raise ValueError(f"span {int(np.argmax(end < begin))} ends before it begins")
    return begin, end


def _until_next(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs by CPU and time; of two that appear to overlap, the first is cut at the start of the second."""
    by_time = np.argsort(runs["begin_ns"].to_numpy(), kind="stable")
    cpus = dense_codes(runs["host"].to_physical().to_numpy(), runs["cpu"].cast(pl.Int64).to_numpy())[by_time]
    order = np.argsort(cpus, kind="stable")
    runs, cpus = runs[by_time[order]], cpus[order]
    following = runs["begin_ns"].shift(-1).set(pl.Series(np.append(cpus[1:] != cpus[:-1], True)[: len(runs)]), None)
    return runs.with_columns(end_ns=pl.min_horizontal("end_ns", following))


def _names(states: pl.DataFrame) -> pl.DataFrame:
    """The last name of each thread."""
    return states.group_by(_KEY).agg(pl.col("name").last())


Spans = npt.NDArray[np.int64]
"""Begin and end of each span; shape ``(n, 2)``."""

_NONE: Final = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class ProcessSplit:
    """Parts of a span, nanoseconds; their sum is the span.

    Attributes:
        own: waited for a CPU that the measurement's own processes occupied.
        others: waited only for CPUs that other processes occupied.
        unknown: not covered by kernel events, or the process that occupied the CPU is unknown.
    """

    ran: int
    own: int
    others: int
    blocked: int
    unknown: int

    @property
    def whole(self) -> int:
        """Length of the span."""
        return self.ran + self.own + self.others + self.blocked + self.unknown


def split_process(
    states: pl.DataFrame,
    owners: Mapping[int, int],
    pid: int,
    *,
    begin_ns: int,
    end_ns: int,
    own_side: Collection[int],
) -> ProcessSplit:
    """Splits the time of a process within a span.

    Args:
        states: result of `build_thread_states`, of one host.
        owners: pid of each thread, by tid.
        own_side: pids of the measurement.
    """
    near = states.filter((pl.col("begin_ns") < end_ns) & (pl.col("end_ns") > begin_ns))
    tids = [tid for tid, owner in owners.items() if owner == pid]
    mine = near.filter(pl.col("tid").is_in(tids))
    waits = list(_rivals(mine.filter(pl.col("state") == RUNNABLE), near.filter(pl.col("state") == RUNNING)))
    by_side = {
        is_own: [span for tid, span in waits if (owners.get(tid) in own_side or owners.get(tid) == pid) is is_own]
        for is_own in (True, False)
    }
    layers = [
        _spans(mine.filter(pl.col("state") == RUNNING)),
        _stacked(by_side[True]),
        _stacked(by_side[False]),
        _spans(mine.filter(pl.col("state") == BLOCKED)),
    ]
    waiting = _spans(mine.filter(pl.col("state") == RUNNABLE))
    ran, own, others, blocked = _lengths(layers, waiting, begin_ns, end_ns)
    return ProcessSplit(ran, own, others, blocked, end_ns - begin_ns - ran - own - others - blocked)


def _rivals(waits: pl.DataFrame, runs: pl.DataFrame) -> Iterator[tuple[int, Spans]]:
    """Threads that occupied the CPU for which a thread waited, with the common time of both."""
    for begin_ns, end_ns, cpu in waits.select("begin_ns", "end_ns", "cpu").iter_rows():
        held = runs.filter((pl.col("cpu") == cpu) & (pl.col("begin_ns") < end_ns) & (pl.col("end_ns") > begin_ns))
        for tid, since_ns, until_ns in held.select("tid", "begin_ns", "end_ns").iter_rows():
            yield tid, np.array([[max(begin_ns, since_ns), min(end_ns, until_ns)]], dtype=np.int64)


def _lengths(layers: list[Spans], waiting: Spans, begin_ns: int, end_ns: int) -> list[int]:
    """Length of each layer without what earlier layers cover; the last layer also excludes `waiting`."""
    edges = np.unique(np.clip(np.concatenate([[[begin_ns, end_ns]], *layers, waiting]), begin_ns, end_ns))
    widths, left = np.diff(edges), np.ones(max(len(edges) - 1, 0), dtype=np.bool_)
    found = []
    for layer in layers:
        if layer is layers[-1]:
            left = left & ~_covered(waiting, edges)
        here = left & _covered(layer, edges)
        found.append(int(widths[here].sum()))
        left = left & ~here
    return found


def _covered(spans: Spans, edges: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """True for each piece between neighbouring edges that a span covers."""
    changes = np.zeros(len(edges), dtype=np.int64)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 0], edges[0], edges[-1])), 1)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 1], edges[0], edges[-1])), -1)
    covered: npt.NDArray[np.bool_] = np.cumsum(changes)[:-1] > 0
    return covered


def _spans(rows: pl.DataFrame) -> Spans:
    return rows.select("begin_ns", "end_ns").to_numpy().astype(np.int64).reshape(-1, 2)


def _stacked(parts: list[Spans]) -> Spans:
    return np.concatenate(parts) if parts else _NONE
