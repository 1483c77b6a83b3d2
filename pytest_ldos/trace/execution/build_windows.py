"""Builds the execution model of a trace that is read in windows, the same as of the trace read whole.

What names entities (init events) and trials is little and is read first, and so are all threads. Then each window gives
its rows (`execution.window_rows`), here or in other processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.ctf.windows import Window, WindowedTrace
from pytest_ldos.trace.execution.actions import build_actions
from pytest_ldos.trace.execution.annotations import build_link_annotations
from pytest_ldos.trace.execution.build import READ_EVENTS, check_time, counted
from pytest_ldos.trace.execution.callback_runs import count_unpaired
from pytest_ldos.trace.execution.callbacks import build_callbacks
from pytest_ldos.trace.execution.columns import IdArray
from pytest_ldos.trace.execution.coverage import build_missing_spans
from pytest_ldos.trace.execution.endpoints import build_endpoints
from pytest_ldos.trace.execution.executors import build_executors
from pytest_ldos.trace.execution.lifecycle import build_transitions
from pytest_ldos.trace.execution.missing_events import find_missing_events
from pytest_ldos.trace.execution.model import ExecutionModel, Frames
from pytest_ldos.trace.execution.observed import Observed, count_threads
from pytest_ldos.trace.execution.parts import OWNERS, Parts
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.trials import build_trials
from pytest_ldos.trace.execution.window_rows import (
    CONTEXTS,
    WINDOWED_EVENTS,
    Carried,
    WholeTrace,
    WindowReader,
    WindowRows,
    observed_tables,
)


@dataclass(frozen=True)
class WindowTask:
    """A window that another process may read: `WindowReader.read` gives its rows."""

    window: Window
    carried: Carried


Spread = Callable[[WindowedTrace, WholeTrace, Iterator[WindowTask]], Iterator[WindowRows]]
"""Reads windows elsewhere; rows come in the order of the windows."""


def build_execution_in_windows(
    trace: WindowedTrace, *, pids: Collection[int] | None = None, spread: Spread | None = None
) -> ExecutionModel:
    """Builds the model of a trace window by window; see `build_execution`.

    Of two events of different threads in one nanosecond, that of the later window comes second.

    Args:
        spread: has the windows read by other processes; one after the other in this one without it.

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
    """Reads what is read at once, and counts all threads."""
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
    """Each window with what is open before it, which is known as soon as the window before was looked at."""
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
        """Rows that begin in a window, with ids of the whole table; notes the ends of rows that began before it."""
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
