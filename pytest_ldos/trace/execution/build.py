"""Builds the execution model of a decoded trace, read at once or in windows.

Long numeric columns are in memory-mapped files, text columns in memory.

The few events that name entities (init events) and trials are read first, and all threads are counted. Then the rows
of each window are built (`execution.window_rows`), in this or in other processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.tracepoints import Marker, Ros2
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.windows import Window, WindowedTrace
from pytest_ldos.trace.execution.actions import build_actions, build_requests, build_transitions
from pytest_ldos.trace.execution.callbacks import build_callback_runs, build_callbacks, count_unpaired
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_of, times_of
from pytest_ldos.trace.execution.coverage import build_missing_spans, find_missing_events
from pytest_ldos.trace.execution.endpoints import build_endpoints
from pytest_ldos.trace.execution.executors import build_executions, build_executors, build_waits
from pytest_ldos.trace.execution.mapped import Growing, chunks, room_for
from pytest_ldos.trace.execution.messages import build_enqueues, build_publications, build_takes
from pytest_ldos.trace.execution.model import ExecutionModel, Frames
from pytest_ldos.trace.execution.observed import Observed, count_threads
from pytest_ldos.trace.execution.schema import INSTANCES
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.trials import build_link_annotations, build_ticks, build_trials
from pytest_ldos.trace.execution.window_rows import (
    CONTEXTS,
    WINDOWED_EVENTS,
    Carried,
    WholeTrace,
    WindowReader,
    WindowRows,
    observed_tables,
)

NEEDED_EVENTS: Final = frozenset({*Marker, *Ros2})
"""Events that `build_execution` reads. Given to `read_trace` as `events`, nothing else is decoded."""


READ_EVENTS: Final = NEEDED_EVENTS - {Ros2.RCL_INIT}
"""Events whose threads are those of the model."""


def build_execution(trace: DecodedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """Builds the model of a trace.

    Args:
        pids: processes to observe; all by default. Give the stack's own: another stack, a
            load or the ``ros2`` daemon may be in the same trace.

    Raises:
        TraceUnreadable: its events have no time.
    """
    check_time(trace)
    census = ThreadCensus(trace.traces)
    count_threads(census, trace, READ_EVENTS, pids)
    observed = Observed(trace, census, pids)
    endpoints = build_endpoints(observed)
    callbacks = build_callbacks(observed, endpoints)
    publications, own = build_publications(observed, endpoints)
    takes, without = build_takes(observed, endpoints, callbacks)
    runs, _ = build_callback_runs(observed, callbacks, lossy=bool(trace.stats.losses))
    annotations, strange = build_link_annotations(observed, endpoints)
    frames = {
        "link_annotations": annotations,
        "publications": publications,
        "takes": takes,
        "enqueues": build_enqueues(observed, endpoints),
        "callback_runs": runs,
        "waits": build_waits(observed),
        "executions": build_executions(observed, endpoints).frame,
        "requests": build_requests(observed, endpoints),
        "transitions": build_transitions(observed, endpoints),
        **build_trials(observed),
        **build_ticks(observed),
    }
    kinds = (*endpoints.kinds(), callbacks)
    frames |= {kind.table: kind.frame() for kind in kinds}
    frames |= observed.threads.frames()
    frames |= build_executors(frames["threads"], runs, frames["waits"])
    frames["missing_spans"] = build_missing_spans(trace, census, READ_EVENTS)
    frames["actions"] = build_actions(frames["services"], frames["clients"])
    unpaired = {
        "publications of the middleware itself": own,
        **without,
        **count_unpaired(runs, len(observed.events(Ros2.CALLBACK_END)), trace.stats.losses),
        "handles in link annotations that nothing is known of": strange,
    }
    return ExecutionModel(
        **frames,
        stats=trace.stats,
        unknown=counted({kind.table: len(kind.registry.unknown) for kind in kinds}),
        unpaired=counted(unpaired),
        missing_events=find_missing_events(observed.threads.writers(), frames),
    )


def check_time(trace: DecodedTrace) -> None:
    """Requires events to have times.

    Raises:
        TraceUnreadable: a trace has no clock.
    """
    untimed = next((info for info in trace.traces if not info.clock), None)
    if untimed is not None and trace.stats.events:
        raise TraceUnreadable(untimed.directory, None, "its events have no time: the metadata gives them no clock")


def require_events(model: ExecutionModel, trace: Path) -> None:
    """Requires a trace to have events that the model needs.

    Raises:
        TraceUnreadable: it has none; the message lists the events it has.
    """
    if len(model.processes):
        return
    events = model.stats.events
    reason = f"none of its {events} events says what ran (ros2:*, ldos:*)"
    if not events:
        has = "its streams hold no event" if model.stats.streams else "it has no stream of events"
        reason = f"{has}: nothing that could be traced ran while it was recorded"
    raise TraceUnreadable(
        trace,
        None,
        reason,
        remedy="record ros2:* before the nodes start, with a ROS 2 that can be traced (ros2 run tracetools status)",
    )


def counted(counts: dict[str, int]) -> dict[str, int]:
    """Non-zero counts."""
    return {name: count for name, count in counts.items() if count}


OWNERS: Final = {
    "publications": ("publisher", "publishers"),
    "takes": ("subscription", "subscriptions"),
    "enqueues": ("subscription", "subscriptions"),
    "callback_runs": ("callback", "callbacks"),
}
"""Columns that may name an entity that no init event names."""

Numbers = npt.NDArray[Any]


class Parts:
    """Parts of one table, and late updates of their rows.

    Raises:
        NotWritten: by any method, the disk for temporary files is full.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._schema = {name: kind for name, kind in INSTANCES[table].items() if name != "id"}
        self._numbers: dict[str, Growing] = {}
        self._texts: dict[str, list[pl.Series]] = {name: [] for name, kind in self._schema.items() if kind is pl.String}
        self._late: list[pl.DataFrame] = []
        self._ends: list[tuple[IdArray, TimesNs]] = []
        self.rows = 0

    def add(self, frame: pl.DataFrame, *, since_ns: int) -> None:
        """Adds the next part.

        Args:
            since_ns: start of its window; earlier rows of tables with a `time_ns` are inserted in time order.
        """
        if "time_ns" in self._schema:
            is_late = frame["time_ns"] < since_ns
            if is_late.any():
                self._late.append(_copied(frame.filter(is_late)))
                frame = frame.filter(~is_late)
        for name in self._schema:
            if name in self._texts:
                self._texts[name].append(frame[name])
                continue
            values = _numbers(frame, name)
            self._numbers.setdefault(name, Growing(values.dtype)).add(values)
        self.rows += len(frame)

    def end(self, rows: IdArray, end_ns: TimesNs) -> None:
        """Records the `end_ns` of earlier rows."""
        if len(rows):
            self._ends.append((rows, end_ns.copy()))

    def finish(self, renumbered: Mapping[str, IdArray | None]) -> pl.DataFrame:
        """The whole table.

        Args:
            renumbered: new numbers of entities by table; ``None`` if unchanged.
        """
        columns: dict[str, Any] = {name: growing.finish() for name, growing in self._numbers.items()}
        columns |= {name: pl.concat(parts) for name, parts in self._texts.items()}
        for rows, end_ns in self._ends:
            columns["end_ns"][rows] = end_ns
        if self._late:
            columns = _with_late(columns, pl.concat(self._late).sort("time_ns", maintain_order=True))
        column, owner = OWNERS.get(self._table, ("", ""))
        numbers = renumbered.get(owner)
        if numbers is not None:
            for part in chunks(len(columns[column])):
                columns[column][part] = numbers[columns[column][part]]
        return frame_of(INSTANCES[self._table], columns)


def _copied(frame: pl.DataFrame) -> pl.DataFrame:
    """Copies a few rows; a slice of contiguous rows would keep the whole table alive in Polars."""
    return pl.DataFrame(frame.rows(), schema=frame.schema, orient="row")


def _with_late(columns: Mapping[str, Any], late: pl.DataFrame) -> dict[str, Any]:
    """Columns with late rows inserted in time order."""
    time_ns = columns["time_ns"]
    place = np.searchsorted(time_ns, late["time_ns"].to_numpy(), side="right")
    return {
        name: _text_inserted(values, late[name], place)
        if isinstance(values, pl.Series)
        else _inserted(values, _numbers(late, name), place)
        for name, values in columns.items()
    }


def _inserted(values: Numbers, late: Numbers, place: IdArray) -> Numbers:
    """Like `numpy.insert`, for an array of any length."""
    both = room_for(len(values) + len(late), values.dtype)
    both[place + np.arange(len(late))] = late
    for part in chunks(len(values)):
        shift = np.searchsorted(place, np.arange(part.start, part.stop), side="right")
        both[np.arange(part.start, part.stop) + shift] = values[part]
    return both


def _text_inserted(values: pl.Series, late: pl.Series, place: IdArray) -> pl.Series:
    return pl.Series(values.name, np.insert(values.to_numpy(), place, late.to_numpy()), dtype=pl.String)


def _numbers(frame: pl.DataFrame, name: str) -> Numbers:
    """Column with -1 for no id and `NEVER` for no time."""
    kind = frame.schema[name]
    if kind == pl.Int32:
        return ids_of(frame, name)
    return times_of(frame, name) if kind == pl.Int64 else frame[name].to_numpy()


@dataclass(frozen=True)
class WindowTask:
    """A window that another process may read, with `WindowReader.read`."""

    window: Window
    carried: Carried


Spread = Callable[[WindowedTrace, WholeTrace, Iterator[WindowTask]], Iterator[WindowRows]]
"""Reads windows in other processes; yields rows in the order of the windows."""


def build_execution_in_windows(
    trace: WindowedTrace, *, pids: Collection[int] | None = None, spread: Spread | None = None
) -> ExecutionModel:
    """Builds the model of a trace window by window; see `build_execution`.

    If events of different threads have equal times, those of the later window come second.

    Args:
        spread: reads the windows in other processes; by default, this process reads them in order.

    Raises:
        TraceUnreadable: see `build_execution`, and `WindowedTrace.read`.
        NotWritten: the disk for temporary files is full.
    """
    whole = _look_over(trace, pids)
    rows = _read(trace, whole) if spread is None else spread(trace, whole, _tasks(trace, whole))
    joined = _Joined(whole)
    for window, some in zip(trace.windows, rows, strict=True):
        joined.add(window, some)
    return joined.finish()


def _look_over(trace: WindowedTrace, pids: Collection[int] | None) -> WholeTrace:
    """Reads the events that are read at once, and counts all threads."""
    once = trace.read(events=READ_EVENTS - WINDOWED_EVENTS)
    check_time(once)
    census = ThreadCensus(once.traces)
    count_threads(census, once, READ_EVENTS, pids)
    for window in trace.windows:
        some = trace.read(events=WINDOWED_EVENTS, fields=(*CONTEXTS, "procname"), window=window)
        count_threads(census, some, WINDOWED_EVENTS, pids)
    whole = WholeTrace(once, census, pids)
    return replace(whole, once=replace(once, events=observed_tables(once, whole)))


def _read(trace: WindowedTrace, whole: WholeTrace) -> Iterator[WindowRows]:
    reader, carried = WindowReader(trace, whole), Carried()
    for window in trace.windows:
        rows, carried = reader.read(window, carried)
        yield rows


def _tasks(trace: WindowedTrace, whole: WholeTrace) -> Iterator[WindowTask]:
    """Each window with the state that its predecessor leaves open."""
    reader, carried = WindowReader(trace, whole), Carried()
    for window in trace.windows:
        yield WindowTask(window, carried)
        if window != trace.windows[-1]:
            carried = reader.carry(window, carried)


_TABLES: Final = (
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


class _Joined:
    """The rows of all windows, in order."""

    def __init__(self, whole: WholeTrace) -> None:
        self._once, self._census = whole.once, whole.census
        self._named = Observed(whole.once, whole.census, None)
        self._endpoints = build_endpoints(self._named)
        self._kinds = (*self._endpoints.kinds(), build_callbacks(self._named, self._endpoints))
        self._parts = {name: Parts(name) for name in _TABLES}
        self._open: dict[str, IdArray] = {}
        self._counts: Counter[str] = Counter()
        self._ends = 0

    def add(self, window: Window, rows: WindowRows) -> None:
        """Adds the rows of the next window."""
        self._counts.update(rows.counts)
        self._ends += rows.ends
        numbers = {kind.table: kind.registry.adopt(rows.discovered[kind.table]) for kind in self._kinds}
        for name, frame in rows.frames.items():
            own = _renumbered(name, frame, numbers)
            if name in rows.is_open:
                own = self._with_ids(name, own, rows)
            self._parts[name].add(own, since_ns=window[0])

    def _with_ids(self, name: str, frame: pl.DataFrame, rows: WindowRows) -> pl.DataFrame:
        """Rows that begin in a window, with ids of the whole table; records the ends of earlier rows."""
        before = self._open.get(name, np.empty(0, dtype=np.int32))
        first = self._parts[name].rows
        ids = np.concatenate((before, np.arange(first, first + len(frame) - len(before), dtype=np.int32)))
        self._open[name] = ids[rows.is_open[name]]
        if "parent" in frame.columns:
            frame = frame.with_columns(parent=pl.Series(ids, dtype=pl.Int32).gather(frame["parent"]))
        earlier = frame.head(len(before))
        has_end = earlier["end_ns"].is_not_null()
        self._parts[name].end(before[has_end.to_numpy()], earlier.filter(has_end)["end_ns"].to_numpy())
        return frame.slice(len(before))

    def finish(self) -> ExecutionModel:
        """The model of all windows."""
        annotations, strange = build_link_annotations(self._named, self._endpoints)
        frames: Frames = {
            "link_annotations": annotations,
            "transitions": build_transitions(self._named, self._endpoints),
            **build_trials(self._named),
        }
        renumbered = {kind.table: kind.registry.renumber() for kind in self._kinds}
        frames |= {kind.table: kind.frame() for kind in self._kinds}
        frames |= {name: self._parts.pop(name).finish(renumbered) for name in _TABLES}
        frames |= self._named.threads.frames()
        frames |= build_executors(frames["threads"], frames["callback_runs"], frames["waits"])
        frames["missing_spans"] = build_missing_spans(self._once, self._census, READ_EVENTS)
        frames["actions"] = build_actions(frames["services"], frames["clients"])
        unpaired = {
            **self._counts,
            **count_unpaired(frames["callback_runs"], self._ends, self._once.stats.losses),
            "handles in link annotations that nothing is known of": strange,
        }
        return ExecutionModel(
            **frames,
            stats=self._once.stats,
            unknown=counted({kind.table: len(kind.registry.unknown) for kind in self._kinds}),
            unpaired=counted(unpaired),
            missing_events=find_missing_events(self._named.threads.writers(), frames),
        )


def _renumbered(name: str, frame: pl.DataFrame, numbers: Mapping[str, IdArray | None]) -> pl.DataFrame:
    """Rows with the ids of their entities in the whole model."""
    column, owner = OWNERS.get(name, ("", ""))
    own = numbers.get(owner)
    if own is None:
        return frame
    return frame.with_columns(pl.Series(own, dtype=pl.Int32).gather(frame[column]).alias(column))
