"""Thread states from kernel events, and the time that threads run, wait and are blocked in given spans.

The kernel's thread ids are global to a host. User space's `vpid` and `vtid` belong to a PID
namespace: they equal the kernel's ids outside containers, and differ inside.

A process runs while any of its threads does, so helper threads that emit no events count as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.ros2 import Kernel
from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution.columns import ranks
from pytest_ldos.trace.execution.coverage import losses_of_hosts
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.threads import Vocabulary, move_columns, switch_columns
from pytest_ldos.trace.perf import with_switches

SCHEDULING_EVENTS: Final = frozenset(Kernel)
"""Events that `build_thread_states` reads, to be given to `read_trace` as `events`."""

RUNNING, RUNNABLE, BLOCKED = STATES = ("running", "runnable", "blocked")


def build_thread_states(trace: DecodedTrace) -> pl.DataFrame:
    """State of each thread over time, from kernel events.

    Tracepoints: ``sched_switch``, ``sched_wakeup``, ``sched_wakeup_new``, ``sched_migrate_task``; ``sched_waking`` only
    where no ``sched_wakeup`` was recorded. A thread that leaves its CPU with no wait bit in `prev_state` (0, or the bit
    above them by which lttng-modules marks a preemption) is runnable; any other is blocked until it is woken, or, where
    no wakeups were recorded, until it runs again.

    Columns, by host, tid and time, intervals of a thread disjoint:

    - host: name of the host the kernel ran on.
    - tid: the kernel's, global to the host; the CPUs' idle threads (0) are left out.
    - name: of the thread, as the kernel has it (15 characters).
    - begin_ns, end_ns: nanoseconds since the epoch. A thread's last state lasts to the last event of the host's kernel.
    - state: ``running``, ``runnable`` (waiting for a CPU) or ``blocked``.
    - cpu: the CPU it ran on or waited for; null where it was blocked.
    - preempted_by, preempted_by_name: the thread that took the CPU; null where the thread was not preempted, but woken.

    Before a thread's first event its state is unknown, and there is no row. A loss
    (`trace.stats`) ends the intervals of its host, and the thread's next event starts over.
    An interval that contradicts the event at its end is also left out.

    Without kernel events, perf's context switches are read (`trace.perf`). They contain no wakeups: the time that a
    woken thread waits for a CPU counts as blocked.

    Raises:
        TraceUnreadable: a file of perf's is damaged.

    Reference: lttng-modules, ``instrumentation/events/sched.h``.
    """
    trace = with_switches(trace)
    vocabulary = Vocabulary.of(trace.traces)
    found = _states.build(
        switches=switch_columns(trace, vocabulary),
        moves=move_columns(trace, vocabulary),
        host_of_trace=vocabulary.of_trace,
        losses=losses_of_hosts(trace.stats, vocabulary),
    )
    names = (None, *vocabulary.names)
    return pl.DataFrame(
        {
            "host": _words(found["host"], vocabulary.hosts),
            "tid": found["tid"],
            "name": _words(found["name"], names),
            "begin_ns": found["begin_ns"],
            "end_ns": found["end_ns"],
            "state": _words(found["state"], STATES),
            "cpu": _nullable(found["cpu"]),
            "preempted_by": _nullable(found["preempted_by"]),
            "preempted_by_name": _words(found["preempted_by_name"], names),
        }
    )


def _nullable(codes: npt.NDArray[np.int32]) -> pl.Series:
    series = pl.Series(codes)
    return series.set(series < 0, None)


def _words(codes: npt.NDArray[Any], words: Sequence[str | None]) -> pl.Series:
    kind = pl.Enum([word for word in words if word is not None])
    return pl.Series(words, dtype=kind).gather(pl.Series(codes))


def count_switches(
    states: pl.DataFrame, *, begin_ns: int, end_ns: int, tids: Collection[int] | None = None
) -> SwitchCounts:
    """Context switches and migrations of threads within a time span; `tids` are the kernel's, all by default.

    A thread that stops running and is then blocked left its CPU voluntarily; one that is then runnable was
    preempted. It migrated if it continues to run on another CPU than before.
    """
    chosen = states if tids is None else states.filter(pl.col("tid").is_in(list(tids)))
    same = pl.col("begin_ns").shift(-1).over("host", "tid") == pl.col("end_ns")
    following = pl.col("state").cast(pl.String).shift(-1).over("host", "tid")
    left = chosen.with_columns(next_state=pl.when(same).then(following)).filter(
        (pl.col("state") == RUNNING) & pl.col("end_ns").is_between(begin_ns, end_ns, closed="left")
    )
    runs = chosen.filter(pl.col("state") == RUNNING).with_columns(before=pl.col("cpu").shift(1).over("host", "tid"))
    moved = runs.filter(
        pl.col("begin_ns").is_between(begin_ns, end_ns, closed="left") & (pl.col("before") != pl.col("cpu"))
    )
    return SwitchCounts(
        voluntary=left.filter(pl.col("next_state") == BLOCKED).height,
        involuntary=left.filter(pl.col("next_state") == RUNNABLE).height,
        migrations=moved.height,
    )


Ints = npt.NDArray[np.int64]

_KINDS: Final = 3


@dataclass(frozen=True)
class Timeline:
    """Disjoint intervals of many owners (threads, CPUs) laid end to end on one line.

    Each time of an owner has a place on the line, so that one binary search finds it. Times
    before the owner's first interval or after its last map to the first or last edge.

    Attributes:
        owners: key columns with ``low``, ``high`` (nanoseconds) and ``offset`` (on the line).
        begin, end, moved: places of the intervals, in order, and their offset from nanoseconds.
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
        return found.select((inside - pl.col("low") + pl.col("offset")).fill_null(-1)).to_series().to_numpy()

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
        """Each span with each interval of its owner that overlaps it: row numbers, and begin and end of the overlap."""
        first, last = self.place(spans, begin), self.place(spans, end)
        low = _last_at(self.end, first) + 1
        count = np.where(last > first, np.maximum(_last_at(self.begin, last - 1) + 1 - low, 0), 0)
        span = np.repeat(np.arange(len(first)), count)
        interval = np.repeat(low, count) + ranks(count)
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


_KEY: Final = ["host", "tid"]


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
    runs = model.callback_runs.drop_nulls("end_ns").select("thread", "end_ns", callback_run="id", begin_ns="start_ns")
    owned = runs.join(threads_of_hosts(model), on="thread", maintain_order="left")
    return owned.select("callback_run", "host", "tid", "begin_ns", "end_ns")


def threads_of_hosts(model: ExecutionModel) -> pl.DataFrame:
    """Columns `thread` of the model, `tid`, name of its `host`, and `pid`."""
    hosts = model.hosts.select("name", host="id")
    processes = model.processes.select("host", "pid", process="id").join(hosts, on="host")
    owned = model.threads.select("process", "tid", thread="id").join(processes, on="process")
    return owned.select("thread", "tid", "pid", host="name")


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
    waits = Timeline.of(states, _KEY).overlaps(spans, begin, end)
    waits = waits.with_columns(states[name].gather(waits["interval"]) for name in ("state", "host", "cpu"))
    waits = waits.filter(pl.col("state") == RUNNABLE)
    runs = states.filter(pl.col("state") == RUNNING).select("host", "tid", "cpu", "begin_ns", "end_ns")
    runs = runs.sort("host", "cpu", "begin_ns", maintain_order=True)
    is_same_cpu = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in ("host", "cpu"))
    following_ns = pl.when(is_same_cpu).then(pl.col("begin_ns").shift(-1))
    runs = runs.with_columns(end_ns=pl.min_horizontal("end_ns", following_ns))  # of two that overlap, cut the first
    held = Timeline.of(runs, ["host", "cpu"]).overlaps(waits, waits["begin_ns"].to_numpy(), waits["end_ns"].to_numpy())
    return (
        held.select(
            span=waits["span"].gather(held["span"]),
            tid=runs["tid"].gather(held["interval"]),
            host=runs["host"].gather(held["interval"]),
            ns=pl.col("end_ns") - pl.col("begin_ns"),
        )
        .group_by("span", "host", "tid")
        .agg(pl.col("ns").sum())
        .join(states.group_by(_KEY).agg(pl.col("name").last()), on=_KEY, how="left")
        .sort(["span", "ns", "tid"], descending=[False, True, False])
        .select("span", "tid", "name", "ns")
    )


def _edges(spans: pl.DataFrame) -> tuple[Ints, Ints]:
    begin, end = (spans[name].cast(pl.Int64).to_numpy() for name in ("begin_ns", "end_ns"))
    if np.any(end < begin):
        raise ValueError(f"span {int(np.argmax(end < begin))} ends before it begins")
    return begin, end


@dataclass(frozen=True)
class ProcessSplit:
    """Parts of a span, nanoseconds; their sum is the span."""

    ran: int
    # own, others: waited for a CPU that the measurement's own processes occupied, or only others
    own: int
    others: int
    blocked: int
    unknown: int  # not covered by kernel events, or the process that occupied the CPU is unknown

    @property
    def whole(self) -> int:
        return self.ran + self.own + self.others + self.blocked + self.unknown


def split_process(
    states: pl.DataFrame, owners: Mapping[int, int], pid: int, *, begin_ns: int, end_ns: int, own_side: Collection[int]
) -> ProcessSplit:
    """Splits the time of a process of one host within a span.

    `owners` are the pids of threads by tid, and `own_side` the pids of the measurement.
    """
    near = states.filter((pl.col("begin_ns") < end_ns) & (pl.col("end_ns") > begin_ns))
    mine = near.filter(pl.col("tid").is_in([tid for tid, owner in owners.items() if owner == pid]))
    own: list[tuple[int, int]] = []  # spans in which the measurement's own processes had the CPU waited for
    others: list[tuple[int, int]] = []
    waits, running = _spans_in(mine, RUNNABLE, "cpu"), near.filter(pl.col("state") == RUNNING)
    for begin, end, cpu in waits:
        held = running.filter((pl.col("cpu") == cpu) & (pl.col("begin_ns") < end) & (pl.col("end_ns") > begin))
        for tid, since, until in held.select("tid", "begin_ns", "end_ns").iter_rows():
            is_own = owners.get(tid) in own_side or owners.get(tid) == pid
            (own if is_own else others).append((max(begin, since), min(end, until)))
    waiting = [(begin, end) for begin, end, _ in waits]
    layers = [
        np.array(spans, dtype=np.int64).reshape(-1, 2)
        for spans in (_spans_in(mine, RUNNING), own, others, waiting, _spans_in(mine, BLOCKED))
    ]
    edges = np.unique(np.clip(np.concatenate([[[begin_ns, end_ns]], *layers]), begin_ns, end_ns))
    widths, left = np.diff(edges), np.ones(max(len(edges) - 1, 0), dtype=np.bool_)
    lengths = []
    for layer in layers:  # each without what earlier layers cover
        here = left & _covered(layer, edges)
        lengths.append(int(widths[here].sum()))
        left &= ~here
    ran, by_own, by_others, _, blocked = lengths
    return ProcessSplit(ran, by_own, by_others, blocked, end_ns - begin_ns - ran - by_own - by_others - blocked)


def _spans_in(states: pl.DataFrame, state: str, *more: str) -> list[tuple[int, ...]]:
    return states.filter(pl.col("state") == state).select("begin_ns", "end_ns", *more).rows()


def _covered(spans: Ints, edges: Ints) -> npt.NDArray[np.bool_]:
    """True for each piece between neighbouring edges that a span covers; the spans have shape ``(n, 2)``."""
    changes = np.zeros(len(edges), dtype=np.int64)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 0], edges[0], edges[-1])), 1)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 1], edges[0], edges[-1])), -1)
    return np.cumsum(changes)[:-1] > 0
