"""Model rows of one window of a trace, and the state carried into the next one.

A publication and a take are reported by several events, one right after the other on one thread.

The next window gets:

- open callbacks, executions and the last wait of each thread; their rows get their ends later;
- events of publications and takes that the border cuts; their rows are built there.

Different processes can read the windows: each needs only its window and the carried state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.tracepoints import AFTER_JAZZY, FIELDS, Marker, Ros2
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.windows import Window, WindowedTrace
from pytest_ldos.trace.execution.actions import build_requests
from pytest_ldos.trace.execution.callbacks import build_callback_runs, build_callbacks
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_of
from pytest_ldos.trace.execution.endpoints import Discovered, Endpoints, Kind, build_endpoints
from pytest_ldos.trace.execution.executors import Executions, build_executions, build_waits
from pytest_ldos.trace.execution.messages import build_enqueues, build_publications, build_takes
from pytest_ldos.trace.execution.observed import Observed, rows_of
from pytest_ldos.trace.execution.threads import ThreadCensus, ThreadIndex
from pytest_ldos.trace.execution.trials import build_ticks

Rows = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]


def select_rows(table: EventTable, rows: Rows) -> EventTable:
    """Some rows of a table."""
    columns = {name: _selected(column, rows) for name, column in table.columns.items()}
    return EventTable(table.name, table.timestamp_ns[rows], table.cpu_id[rows], table.trace[rows], columns)


def join_tables(first: EventTable | None, second: EventTable | None) -> EventTable | None:
    """Rows of two tables of one event, one after the other; their columns are numbers, or lists of one length."""
    if first is None or not len(first):
        return second
    if second is None or not len(second):
        return first
    columns = {
        name: _joined(column, second.columns[name]) for name, column in first.columns.items() if name in second.columns
    }
    times, cpus, traces = (
        np.concatenate((getattr(first, name), getattr(second, name))) for name in ("timestamp_ns", "cpu_id", "trace")
    )
    return EventTable(first.name, times, cpus, traces, columns)


def _selected(column: Column, rows: Rows) -> Column:
    valid = None if column.valid is None else column.valid[rows]
    if column.offsets is None:
        return replace(column, values=column.values[rows], valid=valid)
    lengths = np.diff(column.offsets)[rows]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    elements = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
    values = column.values[np.repeat(column.offsets[:-1][rows], lengths) + elements]
    return replace(column, values=values, offsets=offsets, valid=valid)


def _joined(first: Column, second: Column) -> Column:
    valid = None
    if first.valid is not None or second.valid is not None:
        valid = np.concatenate([_validity(first), _validity(second)])
    return replace(first, values=np.concatenate((first.values, second.values)), valid=valid)


def _validity(column: Column) -> npt.NDArray[np.bool_]:
    return np.ones(len(column), dtype=bool) if column.valid is None else column.valid


@dataclass(frozen=True)
class _Call:
    """Events of one call.

    Attributes:
        first: the event that begins a call, if it is recorded.
        steps: events that another may follow; any other event of the thread ends the call.
    """

    first: str
    steps: tuple[str, ...]


_CALLS: Final = (
    _Call(
        Ros2.RCLCPP_PUBLISH,
        (Ros2.RCLCPP_PUBLISH, Ros2.INTRA_PUBLISH, Ros2.RING_BUFFER_ENQUEUE, Ros2.RCL_PUBLISH),
    ),
    _Call(Ros2.RMW_TAKE, (Ros2.RMW_TAKE, Ros2.RCL_TAKE)),
)


def find_unfinished(tables: Mapping[str, EventTable], threads: ThreadIndex) -> dict[str, npt.NDArray[np.bool_]]:
    """True for each event of a call that may continue after the tables' end; names without any are left out.

    Args:
        tables: all events of the window's threads.
    """
    of_thread = {name: threads.index(table) for name, table in tables.items()}
    count = 1 + max((int(each.max(initial=-1)) for each in of_thread.values()), default=-1)
    last_ns = {name: _last(tables[name], thread, count) for name, thread in of_thread.items()}
    found = {}
    for call in _CALLS:
        done_ns = np.full(count, NEVER, dtype=np.int64)
        for name, times_ns in last_ns.items():
            if name not in call.steps:
                done_ns = np.maximum(done_ns, times_ns)
        begun_ns = last_ns.get(call.first, done_ns)
        for name in call.steps:
            if name in tables:
                times_ns, thread = tables[name].timestamp_ns, of_thread[name]
                is_held = (times_ns > done_ns[thread]) & (times_ns >= begun_ns[thread])
                if is_held.any():
                    found[name] = is_held
    return found


def _last(table: EventTable, thread: IdArray, count: int) -> TimesNs:
    """Time of the last event of each thread."""
    times_ns = np.full(count, NEVER, dtype=np.int64)
    times_ns[thread] = table.timestamp_ns
    return times_ns


CONTEXTS: Final = ("vpid", "vtid", "pid_ns")

WINDOWED_EVENTS: Final = AFTER_JAZZY | {
    Ros2.RCLCPP_PUBLISH,
    Ros2.RCL_PUBLISH,
    Ros2.RMW_PUBLISH,
    Ros2.INTRA_PUBLISH,
    Ros2.RMW_TAKE,
    Ros2.RCL_TAKE,
    Ros2.RCLCPP_TAKE,
    Ros2.RING_BUFFER_ENQUEUE,
    Ros2.RING_BUFFER_DEQUEUE,
    Ros2.CALLBACK_START,
    Ros2.CALLBACK_END,
    Ros2.EXECUTOR_WAIT_FOR_WORK,
    Ros2.EXECUTOR_GET_NEXT_READY,
    Ros2.EXECUTOR_EXECUTE,
    Marker.CONTROL_CYCLE,
    Marker.SIM_STEP,
}
"""Frequent events, read window by window. All others are read at once."""

_FIELDS: Final = {name: (*CONTEXTS, *FIELDS[name]) for name in WINDOWED_EVENTS}

_OPEN: Final = {
    Ros2.CALLBACK_START: "callback_runs",
    Ros2.EXECUTOR_WAIT_FOR_WORK: "waits",
    Ros2.EXECUTOR_EXECUTE: "executions",
}
"""Table by event, for events that begin a row whose end comes later."""

_NO_TIMES: Final = np.empty(0, dtype=np.int64)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WholeTrace:
    """Facts about the whole trace that each window needs.

    Attributes:
        once: the observed processes' events that are read at once.
        census: all threads of these processes.
        pids: observed processes; ``None`` for all.
    """

    once: DecodedTrace
    census: ThreadCensus
    pids: Collection[int] | None


@dataclass(frozen=True)
class Carried:
    """Events carried into a window.

    Attributes:
        events: those of open rows, and of calls that the border cuts.
        earlier: last take and last callback end of each open execution.
    """

    events: Mapping[str, EventTable] = field(default_factory=dict)
    earlier: tuple[TimesNs, TimesNs] = (_NO_TIMES, _NO_TIMES)


@dataclass(frozen=True)
class WindowRows:
    """Rows of a window; ids of entities and rows are the window's own.

    Attributes:
        frames: by table; rows that were open before the window come first.
        is_open: by table with ends; true for rows that are open after the window.
        discovered: by table of entities; handles without an init event.
        counts: of events that the model has no rows for.
        ends: number of `callback_end`.
    """

    frames: Mapping[str, pl.DataFrame]
    is_open: Mapping[str, Mask]
    discovered: Mapping[str, Discovered]
    counts: Mapping[str, int]
    ends: int


class WindowReader:
    """Reads windows of a trace, in any order."""

    def __init__(self, trace: WindowedTrace, whole: WholeTrace) -> None:
        self._trace, self._whole = trace, whole
        named = Observed(whole.once, whole.census, None)
        self._threads = named.threads
        self._lossy = bool(whole.once.stats.losses)
        self._endpoints: Endpoints = build_endpoints(named)
        self._callbacks: Kind = build_callbacks(named, self._endpoints)

    def read(self, window: Window, carried: Carried) -> tuple[WindowRows, Carried]:
        """Rows of a window, and the state carried into the next one."""
        events = self._events(window, carried)
        ending = self._ending(events, carried)
        earlier = carried.events.get(Ros2.CALLBACK_START)
        return self._rows(events, ending, 0 if earlier is None else len(earlier)), _carry(events, ending)

    def carry(self, window: Window, carried: Carried) -> Carried:
        """The state carried into the next window; cheaper than `read`."""
        events = self._events(window, carried)
        return _carry(events, self._ending(events, carried))

    def _events(self, window: Window, carried: Carried) -> _Events:
        read = self._trace.read(events=WINDOWED_EVENTS, fields=_FIELDS, window=window)
        tables = observed_tables(read, self._whole)
        joined: dict[str, EventTable | None] = {
            name: join_tables(carried.events.get(name), tables.get(name)) for name in sorted(WINDOWED_EVENTS)
        }
        whole: dict[str, EventTable] = {
            name: table for name, table in joined.items() if table is not None and len(table)
        }
        held: dict[str, EventTable] = {}
        if window != self._trace.windows[-1]:
            for name, is_held in find_unfinished(whole, self._threads).items():
                held[name], whole[name] = select_rows(whole[name], is_held), select_rows(whole[name], ~is_held)
        once = self._whole.once
        return _Events(Observed(replace(once, events={**once.events, **whole}), self._whole.census, None), whole, held)

    def _ending(self, events: _Events, carried: Carried) -> _Ending:
        self._callbacks.registry.begin_window()
        runs, running = build_callback_runs(events.observed, self._callbacks, lossy=self._lossy)
        waits = build_waits(events.observed)
        executions = build_executions(events.observed, self._endpoints, carried.earlier)
        runs_on = np.zeros(len(runs), dtype=bool)
        runs_on[running] = True
        waits_on = _is_last(ids_of(waits, "thread")) & waits["end_ns"].is_null().to_numpy()
        is_open = {"callback_runs": runs_on, "waits": waits_on, "executions": executions.is_open}
        return _Ending(runs, waits, executions, is_open)

    def _rows(self, events: _Events, ending: _Ending, earlier_runs: int) -> WindowRows:
        kinds = self._endpoints.kinds()
        for kind in kinds:
            kind.registry.begin_window()
        observed = events.observed
        publications, own = build_publications(observed, self._endpoints)
        takes, without = build_takes(observed, self._endpoints, self._callbacks, earlier_runs=earlier_runs)
        frames = {
            "publications": publications,
            "takes": takes,
            "enqueues": build_enqueues(observed, self._endpoints),
            "requests": build_requests(observed, self._endpoints),
            **build_ticks(observed),
            "callback_runs": ending.runs,
            "waits": ending.waits,
            "executions": ending.executions.frame,
        }
        return WindowRows(
            frames=frames,
            is_open=ending.is_open,
            discovered={kind.table: kind.registry.discovered() for kind in (*kinds, self._callbacks)},
            counts={"publications of the middleware itself": own, **without},
            ends=len(observed.events(Ros2.CALLBACK_END)),
        )


@dataclass(frozen=True)
class _Events:
    """Events of a window with those carried into it, without those `held` for the next one."""

    observed: Observed
    tables: Mapping[str, EventTable]
    held: Mapping[str, EventTable]


@dataclass(frozen=True)
class _Ending:
    """Rows of a window that may end after it."""

    runs: pl.DataFrame
    waits: pl.DataFrame
    executions: Executions
    is_open: Mapping[str, Mask]


def _carry(events: _Events, ending: _Ending) -> Carried:
    opened = {
        str(name): select_rows(events.tables[name], ending.is_open[table])
        for name, table in _OPEN.items()
        if ending.is_open[table].any()
    }
    on = ending.executions.is_open
    return Carried({**events.held, **opened}, (ending.executions.taken_ns[on], ending.executions.ended_ns[on]))


def observed_tables(trace: DecodedTrace, whole: WholeTrace) -> dict[str, EventTable]:
    """Tables with the events of the observed processes."""
    found = {}
    for name, table in trace.events.items():
        rows = rows_of(table, whole.census, whole.pids, trace.directory) if len(table) else None
        found[name] = table if rows is None else select_rows(table, rows)
    return found


def _is_last(thread: IdArray) -> Mask:
    """True for the last row of each thread."""
    last = np.full(int(thread.max(initial=-1)) + 1, -1, dtype=np.int64)
    last[thread] = np.arange(len(thread))
    is_last = np.zeros(len(thread), dtype=bool)
    is_last[last[last >= 0]] = True
    return is_last
