"""Builds the execution model of a trace that is read in windows, the same as of the trace read whole.

What names entities (init events) and trials is little and is read first, and so are all threads. Then each window gives
its rows. Into the next one go:

- what is open on a thread: callbacks that run, executions, the last wait; their rows get their ends later;
- events of a publication or a take that the border cuts; their rows come later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.tracepoints import AFTER_JAZZY, FIELDS, Marker, Ros2
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.tables import EventTable
from pytest_ldos.trace.ctf.windows import Window, WindowedTrace
from pytest_ldos.trace.execution.actions import build_actions
from pytest_ldos.trace.execution.annotations import build_link_annotations
from pytest_ldos.trace.execution.build import READ_EVENTS, check_time, counted
from pytest_ldos.trace.execution.callback_runs import build_callback_runs, count_unpaired
from pytest_ldos.trace.execution.callbacks import build_callbacks
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, ids_of
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, build_endpoints
from pytest_ldos.trace.execution.event_tables import join_tables, select_rows
from pytest_ldos.trace.execution.executors import build_executions, build_executors, build_waits
from pytest_ldos.trace.execution.lifecycle import build_transitions
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Observed, count_threads, rows_of
from pytest_ldos.trace.execution.parts import Parts
from pytest_ldos.trace.execution.publications import build_publications
from pytest_ldos.trace.execution.requests import build_requests
from pytest_ldos.trace.execution.takes import build_enqueues, build_takes
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.trials import build_ticks, build_trials
from pytest_ldos.trace.execution.unfinished import find_unfinished

_CONTEXTS: Final = ("vpid", "vtid", "pid_ns")

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
"""Events of which a long trace has many; each of them gives rows of one window. All others are read at once."""

_FIELDS: Final = {name: (*_CONTEXTS, *FIELDS[name]) for name in WINDOWED_EVENTS}
_NONE: Final = np.empty(0, dtype=np.int32)
_NO_TIMES: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class _Open:
    """Rows that have begun and not ended: their events, which come first in the next window, and their ids."""

    table: EventTable | None = None
    ids: IdArray = field(default_factory=_NONE.copy)

    def numbers(self, rows: int, first: int) -> IdArray:
        """Ids of a window's rows, of which these are the first.

        Args:
            first: the id of the first new one.
        """
        return np.concatenate((self.ids, np.arange(first, first + rows - len(self.ids), dtype=np.int32)))


@dataclass
class _Carried:
    """Events that the next window begins with.

    Attributes:
        earlier: last take and last end of a callback in each open execution.
        held: of calls that the border cuts.
    """

    runs: _Open = field(default_factory=_Open)
    waits: _Open = field(default_factory=_Open)
    executions: _Open = field(default_factory=_Open)
    earlier: tuple[TimesNs, TimesNs] = (_NO_TIMES, _NO_TIMES)
    held: dict[str, EventTable] = field(default_factory=dict)

    def of(self, name: str) -> EventTable | None:
        opened = {
            Ros2.CALLBACK_START: self.runs,
            Ros2.EXECUTOR_WAIT_FOR_WORK: self.waits,
            Ros2.EXECUTOR_EXECUTE: self.executions,
        }
        return opened[Ros2(name)].table if name in opened else self.held.get(name)


def build_execution_in_windows(trace: WindowedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """Builds the model of a trace window by window; see `build_execution`.

    Of two events of different threads in one nanosecond, that of the later window comes second.

    Raises:
        TraceUnreadable: see `build_execution`, and `WindowedTrace.read`.
        NotWritten: the disk for temporary files is full.
    """
    with ExitStack() as files:
        return _Builder(trace, pids, files).build()


class _Builder:
    def __init__(self, trace: WindowedTrace, pids: Collection[int] | None, files: ExitStack) -> None:
        self._trace, self._pids = trace, pids
        once = trace.read(events=READ_EVENTS - WINDOWED_EVENTS)
        check_time(once)
        self._census = ThreadCensus(once.traces)
        count_threads(self._census, once, READ_EVENTS, pids)
        for window in trace.windows:
            some = trace.read(events=WINDOWED_EVENTS, fields=(*_CONTEXTS, "procname"), window=window)
            count_threads(self._census, some, WINDOWED_EVENTS, pids)
        self._once = replace(once, events=self._observed_tables(once))
        self._named = Observed(self._once, self._census, None)
        self._endpoints: Endpoints = build_endpoints(self._named)
        self._callbacks: Kind = build_callbacks(self._named, self._endpoints)
        self._parts = {name: Parts(name, files) for name in _WINDOWED_TABLES}
        self._since_ns = 0
        self._carried = _Carried()
        self._counts: Counter[str] = Counter()
        self._ends = 0

    def build(self) -> ExecutionModel:
        for window in self._trace.windows:
            self._add(window)
        kinds = (*self._endpoints.kinds(), self._callbacks)
        annotations, strange = build_link_annotations(self._named, self._endpoints)
        frames = {
            "link_annotations": annotations,
            "transitions": build_transitions(self._named, self._endpoints),
            **build_trials(self._named),
        }
        renumbered = {kind.table: kind.registry.renumber() for kind in kinds}
        frames |= {kind.table: kind.frame() for kind in kinds}
        frames |= {name: self._parts.pop(name).finish(renumbered) for name in _WINDOWED_TABLES}
        frames |= self._named.threads.frames()
        frames |= build_executors(frames["threads"], frames["callback_runs"], frames["waits"])
        frames["actions"] = build_actions(frames["services"], frames["clients"])
        stats = self._once.stats
        unpaired = {
            **self._counts,
            **count_unpaired(frames["callback_runs"], self._ends, stats.gaps),
            "handles in link annotations that nothing is known of": strange,
        }
        return ExecutionModel(
            **frames,
            stats=stats,
            unknown=counted({kind.table: len(kind.registry.unknown) for kind in kinds}),
            unpaired=counted(unpaired),
        )

    def _add(self, window: Window) -> None:
        """Adds the rows of a window."""
        self._since_ns = window[0]
        read = self._trace.read(events=WINDOWED_EVENTS, fields=_FIELDS, window=window)
        tables = self._observed_tables(read)
        joined: dict[str, EventTable | None] = {
            name: join_tables(self._carried.of(name), tables.get(name)) for name in sorted(WINDOWED_EVENTS)
        }
        whole: dict[str, EventTable] = {
            name: table for name, table in joined.items() if table is not None and len(table)
        }
        held: dict[str, EventTable] = {}
        if window != self._trace.windows[-1]:
            for name, is_held in find_unfinished(whole, self._named.threads).items():
                held[name], whole[name] = select_rows(whole[name], is_held), select_rows(whole[name], ~is_held)
        for kind in (*self._endpoints.kinds(), self._callbacks):
            kind.registry.begin_window()
        observed = Observed(replace(self._once, events={**self._once.events, **whole}), self._census, None)
        self._add_messages(observed)
        next_runs = self._add_runs(observed, whole)
        next_waits = self._add_waits(observed, whole)
        next_executions, earlier = self._add_executions(observed, whole)
        self._carried = _Carried(next_runs, next_waits, next_executions, earlier, held)

    def _observed_tables(self, trace: DecodedTrace) -> dict[str, EventTable]:
        """Tables with the events of the observed processes."""
        found = {}
        for name, table in trace.events.items():
            rows = rows_of(table, self._census, self._pids, trace.directory) if len(table) else None
            found[name] = table if rows is None else select_rows(table, rows)
        return found

    def _add_messages(self, observed: Observed) -> None:
        publications, own = build_publications(observed, self._endpoints)
        takes, without = build_takes(observed, self._endpoints)
        self._counts.update({"publications of the middleware itself": own, **without})
        frames = {
            "publications": publications,
            "takes": takes,
            "enqueues": build_enqueues(observed, self._endpoints),
            "requests": build_requests(observed, self._endpoints),
            **build_ticks(observed),
        }
        for name, frame in frames.items():
            self._parts[name].add(frame, since_ns=self._since_ns)

    def _add_runs(self, observed: Observed, tables: dict[str, EventTable]) -> _Open:
        frame, running = build_callback_runs(observed, self._callbacks, lossy=bool(self._once.stats.gaps))
        self._ends += len(observed.events(Ros2.CALLBACK_END))
        ids = self._carried.runs.numbers(len(frame), self._parts["callback_runs"].rows)
        parent = pl.Series(ids, dtype=pl.Int32).gather(frame["parent"])
        is_open = np.zeros(len(frame), dtype=bool)
        is_open[running] = True
        self._add_ending("callback_runs", frame.with_columns(parent=parent), ids, len(self._carried.runs.ids))
        return _opened(tables, Ros2.CALLBACK_START, is_open, ids)

    def _add_waits(self, observed: Observed, tables: dict[str, EventTable]) -> _Open:
        frame = build_waits(observed)
        ids = self._carried.waits.numbers(len(frame), self._parts["waits"].rows)
        self._add_ending("waits", frame, ids, len(self._carried.waits.ids))
        is_open = _is_last(ids_of(frame, "thread")) & frame["end_ns"].is_null().to_numpy()
        return _opened(tables, Ros2.EXECUTOR_WAIT_FOR_WORK, is_open, ids)

    def _add_executions(
        self, observed: Observed, tables: dict[str, EventTable]
    ) -> tuple[_Open, tuple[TimesNs, TimesNs]]:
        found = build_executions(observed, self._endpoints, self._carried.earlier)
        ids = self._carried.executions.numbers(len(found.frame), self._parts["executions"].rows)
        self._add_ending("executions", found.frame, ids, len(self._carried.executions.ids))
        earlier = (found.taken_ns[found.is_open], found.ended_ns[found.is_open])
        return _opened(tables, Ros2.EXECUTOR_EXECUTE, found.is_open, ids), earlier

    def _add_ending(self, table: str, frame: pl.DataFrame, ids: IdArray, carried: int) -> None:
        """Adds rows of which the first ones are there already, and notes the ends of these."""
        before = frame.head(carried)
        has_end = before["end_ns"].is_not_null()
        self._parts[table].end(ids[:carried][has_end.to_numpy()], before.filter(has_end)["end_ns"].to_numpy())
        self._parts[table].add(frame.slice(carried), since_ns=self._since_ns)


_WINDOWED_TABLES: Final = (
    "publications",
    "takes",
    "enqueues",
    "callback_runs",
    "waits",
    "executions",
    "requests",
    "control_cycles",
    "sim_steps",
)


def _opened(tables: dict[str, EventTable], name: str, is_open: npt.NDArray[np.bool_], ids: IdArray) -> _Open:
    return _Open(select_rows(tables[name], is_open), ids[is_open]) if is_open.any() else _Open()


def _is_last(thread: IdArray) -> npt.NDArray[np.bool_]:
    """True for the last row of each thread."""
    last = np.full(int(thread.max(initial=-1)) + 1, -1, dtype=np.int64)
    last[thread] = np.arange(len(thread))
    is_last = np.zeros(len(thread), dtype=bool)
    is_last[last[last >= 0]] = True
    return is_last
