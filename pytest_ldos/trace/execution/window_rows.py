"""Model rows of one window of a trace, and the state carried into the next one.

A publication and a take are reported by several events, one right after the other on one thread.

The next window gets:

- open callbacks, executions and the last wait of each thread; their rows get their ends later;
- events of publications and takes that the border cuts; their rows are built there.

To find that state is half of the work, so that a window can be followed while the rows of its predecessor are built.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.ros2 import AFTER_JAZZY, CARETS_OWN, FIELDS, Marker, Ros2
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable, Window, WindowedTrace
from pytest_ldos.trace.execution.callbacks import build_callback_runs, build_callbacks, build_executions, build_waits
from pytest_ldos.trace.execution.columns import NEVER, Columns, TimesNs, ranks
from pytest_ldos.trace.execution.coverage import PUBLISHED, TAKEN
from pytest_ldos.trace.execution.endpoints import Discovered, Endpoints, Kind, build_endpoints
from pytest_ldos.trace.execution.goals import build_requests, build_ticks
from pytest_ldos.trace.execution.messages import build_enqueues, build_publications, build_takes
from pytest_ldos.trace.execution.observed import Observed, rows_of
from pytest_ldos.trace.execution.threads import ThreadCensus, ThreadIndex

Tables = Mapping[str, EventTable]  # by event
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer[Any]] | Mask


def select_rows(table: EventTable, rows: Rows) -> EventTable:
    columns = {}
    for name, column in table.columns.items():
        valid = None if column.valid is None else column.valid[rows]
        if column.offsets is None:
            columns[name] = replace(column, values=column.values[rows], valid=valid)
            continue
        lengths = np.diff(column.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        values = column.values[np.repeat(column.offsets[:-1][rows], lengths) + ranks(lengths)]
        columns[name] = replace(column, values=values, offsets=offsets, valid=valid)
    return EventTable(table.name, table.timestamp_ns[rows], table.cpu_id[rows], table.trace[rows], columns)


def _join_tables(first: EventTable | None, second: EventTable | None) -> EventTable | None:
    """Rows of two tables of one event, one after the other; their columns have one value in each row."""
    if first is None or not len(first):
        return second
    if second is None or not len(second):
        return first
    columns = {}
    for name, one in first.columns.items():
        if other := second.columns.get(name):
            valid = [np.ones(len(each), dtype=bool) if each.valid is None else each.valid for each in (one, other)]
            is_whole = one.valid is None and other.valid is None
            words, codes = one.dictionary, other.values
            if words is not None and other.dictionary is not None:
                words = tuple(dict.fromkeys((*words, *other.dictionary)))
                codes = np.array([*map(words.index, other.dictionary), -1])[codes]
            columns[name] = replace(
                one,
                values=np.concatenate((one.values, codes)),
                dictionary=words,
                valid=None if is_whole else np.concatenate(valid),
            )
    times, cpus, traces = (
        np.concatenate((getattr(first, name), getattr(second, name))) for name in ("timestamp_ns", "cpu_id", "trace")
    )
    return EventTable(first.name, times, cpus, traces, columns)


def under_usual_names(trace: DecodedTrace) -> DecodedTrace:
    """The trace with CARET's own events under ROS 2's names."""
    events = dict(trace.events)
    for name, usual in CARETS_OWN.items():
        table = events.pop(name, None)
        # Before ROS 2 Jazzy, its event of a publication has only what rcl's has.
        if table is not None and len(table) and (usual != Ros2.RMW_PUBLISH or "timestamp" in table.columns):
            joined = _join_tables(events.get(usual), replace(table, name=usual))
            assert joined is not None
            events[usual] = select_rows(joined, np.argsort(joined.timestamp_ns, kind="stable"))
    return replace(trace, events=events)


_CALLS: Final = (
    (Ros2.RCLCPP_PUBLISH, (Ros2.RCLCPP_PUBLISH, Ros2.INTRA_PUBLISH, Ros2.RING_BUFFER_ENQUEUE, Ros2.RCL_PUBLISH)),
    (Ros2.RMW_TAKE, (Ros2.RMW_TAKE, Ros2.RCL_TAKE)),
)
"""Events of a call: the one that begins it, if it is recorded, and steps that another may follow.

Any other event of the thread ends the call.
"""


def _find_unfinished(tables: Tables) -> dict[str, Mask]:
    """True for each event of a call that may continue after the window; names without any are left out."""
    of_thread = {name: table[THREAD] for name, table in tables.items()}
    count = 1 + max((int(each.max(initial=-1)) for each in of_thread.values()), default=-1)
    last_ns = {name: np.full(count, NEVER, dtype=np.int64) for name in tables}
    for name, table in tables.items():
        last_ns[name][of_thread[name]] = table.timestamp_ns
    found: dict[str, Mask] = {}
    for first, steps in _CALLS:
        others = (times_ns for name, times_ns in last_ns.items() if name not in steps)
        done_ns = np.max([np.full(count, NEVER, dtype=np.int64), *others], axis=0)
        begun_ns = last_ns.get(first, done_ns)
        for name in steps:
            if name in tables:
                times_ns, thread = tables[name].timestamp_ns, of_thread[name]
                is_held = (times_ns > done_ns[thread]) & (times_ns >= begun_ns[thread])
                if is_held.any():
                    found[name] = is_held
    return found


CONTEXTS: Final = ("vpid", "vtid", "pid_ns")
THREAD: Final = "number of the thread"

WINDOWED_EVENTS: Final = AFTER_JAZZY | {
    *PUBLISHED,
    *(name for name, usual in CARETS_OWN.items() if usual in PUBLISHED),
    *TAKEN,
    Ros2.INTRA_PUBLISH,
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

_FIELDS: Final = {name: (*CONTEXTS, *FIELDS[CARETS_OWN.get(name, name)]) for name in WINDOWED_EVENTS}

_OPEN: Final = {
    Ros2.CALLBACK_START: "callback_runs",
    Ros2.EXECUTOR_WAIT_FOR_WORK: "waits",
    Ros2.EXECUTOR_EXECUTE: "executions",
}
"""Table by event, for events that begin a row whose end comes later."""


@dataclass(frozen=True)
class WholeTrace:
    """Facts about the whole trace that each window needs."""

    once: DecodedTrace  # the observed processes' events that are read at once
    census: ThreadCensus
    pids: Collection[int] | None  # observed processes; ``None`` for all


@dataclass(frozen=True)
class Carried:
    """Events of rows that are open at a border, and of calls that it cuts; `earlier` as in `build_executions`."""

    events: Tables = field(default_factory=dict)
    earlier: tuple[TimesNs, ...] = ()


@dataclass(frozen=True)
class WindowRows:
    """Rows of a window; ids of entities and rows are the window's own."""

    tables: Mapping[str, Columns]  # rows that were open before the window come first
    is_open: Mapping[str, Mask]  # by table with ends; true for rows that are open after the window
    discovered: Mapping[str, Discovered]  # by table of entities; handles without an init event
    counts: Mapping[str, int]  # of events that the model has no rows for
    ends: int  # number of `callback_end`


class _Followed(NamedTuple):
    """Events of a window, its rows that may end later, those of them that are open, and how many ran before it."""

    observed: Observed
    ending: dict[str, Columns]
    is_open: Mapping[str, Mask]
    earlier_runs: int


def read_frequent(trace: WindowedTrace, window: Window, whole: WholeTrace, threads: ThreadIndex) -> Tables:
    """The frequent events of a window, with their threads in place of the contexts."""
    some = under_usual_names(trace.read(events=WINDOWED_EVENTS, fields=_FIELDS, window=window))
    found = {}
    for name, table in observed_tables(some, whole.census, whole.pids).items():
        own = {each: column for each, column in table.columns.items() if each not in CONTEXTS}
        found[name] = replace(table, columns={**own, THREAD: Column(name=THREAD, values=threads.index(table))})
    return found


class WindowReader:
    """Builds the rows of windows, one at a time."""

    def __init__(self, whole: WholeTrace) -> None:
        self._whole = whole
        named = Observed(whole.once, whole.census, None)
        self._lossy = bool(whole.once.stats.losses)
        self._endpoints = build_endpoints(named)
        self._callbacks = build_callbacks(named, self._endpoints)
        self._followed: list[_Followed] = []  # of these, `rows` takes the only one away: it is large

    def follow(self, tables: Tables, carried: Carried, *, is_last: bool) -> Carried:
        """Takes the frequent events of a window, and returns the state that is carried into the next one."""
        joined = {name: _join_tables(carried.events.get(name), tables.get(name)) for name in sorted(WINDOWED_EVENTS)}
        own = {str(name): table for name, table in joined.items() if table is not None and len(table)}
        on: dict[str, EventTable] = {}
        if not is_last:
            for name, is_held in _find_unfinished(own).items():
                on[name], own[name] = select_rows(own[name], is_held), select_rows(own[name], ~is_held)
        once, of_thread = self._whole.once, {name: table[THREAD] for name, table in own.items()}
        observed = Observed(replace(once, events={**once.events, **own}), self._whole.census, None, of_thread)
        self._callbacks.registry.begin_window()
        runs, running = build_callback_runs(observed, self._callbacks, lossy=self._lossy)
        waits, is_waiting = build_waits(observed)
        executions, is_executing, latest = build_executions(observed, self._endpoints, carried.earlier)
        is_open = {
            "callback_runs": np.isin(np.arange(len(runs["thread"])), running),
            "waits": is_waiting,
            "executions": is_executing,
        }
        for name, table in _OPEN.items():
            if is_open[table].any():
                on[str(name)] = select_rows(own[name], is_open[table])
        ending = {"callback_runs": runs, "waits": waits, "executions": executions}
        earlier = len(carried.events.get(Ros2.CALLBACK_START, ()))
        self._followed = [_Followed(observed, ending, is_open, earlier)]
        return Carried(on, tuple(each[is_executing] for each in latest))

    def rows(self) -> WindowRows:
        """Rows of the window that was followed last; only once."""
        observed, ending, is_open, earlier = self._followed.pop()
        kinds = self._endpoints.kinds()
        for kind in kinds:
            kind.registry.begin_window()
        tables, counts = build_frequent(observed, self._endpoints, self._callbacks, earlier_runs=earlier)
        discovered = {kind.table: kind.registry.discovered() for kind in (*kinds, self._callbacks)}
        ends = len(observed.events(Ros2.CALLBACK_END))
        return WindowRows({**tables, **ending}, is_open, discovered, counts, ends)


def build_frequent(
    observed: Observed, endpoints: Endpoints, callbacks: Kind, *, earlier_runs: int = 0
) -> tuple[dict[str, Columns], dict[str, int]]:
    """Tables of frequent events whose rows end at once, and counts of events that the model has no rows for.

    The first `earlier_runs` rows of `callback_start` were counted by an earlier window.
    """
    publications, own = build_publications(observed, endpoints)
    takes, without = build_takes(observed, endpoints, callbacks, earlier_runs=earlier_runs)
    tables = {
        "publications": publications,
        "takes": takes,
        "enqueues": build_enqueues(observed, endpoints),
        "requests": build_requests(observed, endpoints),
        **build_ticks(observed),
    }
    return tables, {"publications of the middleware itself": own, **without}


def observed_tables(trace: DecodedTrace, census: ThreadCensus, pids: Collection[int] | None) -> dict[str, EventTable]:
    found = {}
    for name, table in trace.events.items():
        rows = rows_of(table, census, pids, trace.directory) if len(table) else slice(None)
        found[name] = table if isinstance(rows, slice) else select_rows(table, rows)
    return found
