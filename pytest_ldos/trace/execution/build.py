"""Builds the execution model of a decoded trace, read at once or in windows.

The few events that name entities (init events) and trials are read first, and all threads are counted. Then the rows
of each window are built (`execution.window_rows`). Long columns of numbers are in memory-mapped files, text in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.ros2 import CARETS_OWN, Caret, Marker, Ros2
from pytest_ldos.trace.ctf.read import DecodedTrace, WindowedTrace
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.callbacks import (
    build_callback_runs,
    build_callbacks,
    build_executions,
    build_executors,
    build_waits,
    count_unpaired,
)
from pytest_ldos.trace.execution.columns import NEVER, Columns, IdArray, TimesNs
from pytest_ldos.trace.execution.coverage import build_missing_spans, find_missing_events
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, build_endpoints
from pytest_ldos.trace.execution.goals import build_actions, build_link_annotations, build_transitions, build_trials
from pytest_ldos.trace.execution.model import INSTANCES, ExecutionModel, Frames
from pytest_ldos.trace.execution.observed import Observed, count_threads
from pytest_ldos.trace.execution.threads import ThreadCensus, ThreadIndex
from pytest_ldos.trace.execution.window_rows import (
    CONTEXTS,
    WINDOWED_EVENTS,
    Carried,
    WholeTrace,
    WindowReader,
    build_frequent,
    observed_tables,
    read_frequent,
    under_usual_names,
)

NEEDED_EVENTS: Final = frozenset({*Caret, *CARETS_OWN, *Marker, *Ros2})
"""Events that `build_execution` reads. Given to `read_trace` as `events`, nothing else is decoded."""

READ_EVENTS: Final = NEEDED_EVENTS - {Ros2.RCL_INIT}  # events whose threads are those of the model


def build_execution(trace: DecodedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """Builds the model of a trace.

    Args:
        pids: processes to observe; all by default. Give the stack's own: another stack, a
            load or the ``ros2`` daemon may be in the same trace.

    Raises:
        TraceUnreadable: its events have no time.
    """
    _check_time(trace)
    trace = under_usual_names(trace)
    census = ThreadCensus(trace.traces)
    count_threads(census, trace, READ_EVENTS, pids)
    observed = Observed(trace, census, pids)
    endpoints = build_endpoints(observed)
    callbacks = build_callbacks(observed, endpoints)
    tables, unpaired = build_frequent(observed, endpoints, callbacks)
    frames, strange = _rare(observed, endpoints)
    tables["callback_runs"], _ = build_callback_runs(observed, callbacks, lossy=bool(trace.stats.losses))
    tables["waits"], _ = build_waits(observed)
    tables["executions"] = build_executions(observed, endpoints)[0]
    frames |= {name: mapped.frame_of(INSTANCES[name], columns) for name, columns in tables.items()}
    kinds = (*endpoints.kinds(), callbacks)
    ends = len(observed.events(Ros2.CALLBACK_END))
    return _model(observed, kinds, frames, unpaired, ends=ends, strange=strange)


def _rare(observed: Observed, endpoints: Endpoints) -> tuple[Frames, int]:
    """Tables of events that are always read at once, and the number of handles that nothing is known of."""
    annotations, strange = build_link_annotations(observed, endpoints)
    transitions = build_transitions(observed, endpoints)
    return {"link_annotations": annotations, "transitions": transitions, **build_trials(observed)}, strange


def _model(
    observed: Observed, kinds: Sequence[Kind], frames: Frames, unpaired: Mapping[str, int], *, ends: int, strange: int
) -> ExecutionModel:
    """The model of the given instances, with the number of `callback_end` and of unknown handles in annotations."""
    trace, threads = observed.trace, observed.threads
    frames = {**frames, **{kind.table: kind.frame() for kind in kinds}, **threads.frames()}
    frames |= build_executors(frames["threads"], frames["callback_runs"], frames["waits"])
    frames["missing_spans"] = build_missing_spans(trace, observed.census, READ_EVENTS)
    frames["actions"] = build_actions(frames["services"], frames["clients"])
    unpaired = {
        **unpaired,
        **count_unpaired(frames["callback_runs"], ends, trace.stats.losses),
        "handles in link annotations that nothing is known of": strange,
    }
    return ExecutionModel(
        **frames,
        stats=trace.stats,
        unknown=dict(+Counter({kind.table: len(kind.registry.unknown) for kind in kinds})),
        unpaired=dict(+Counter(unpaired)),
        missing_events=find_missing_events(threads.writers(), frames),
    )


def _check_time(trace: DecodedTrace) -> None:
    untimed = next((info for info in trace.traces if not info.clock), None)
    if untimed is not None and trace.stats.events:
        raise TraceUnreadable(untimed.directory, None, "its events have no time: the metadata gives them no clock")


def require_events(model: ExecutionModel, trace: Path) -> None:
    """Raises `TraceUnreadable`, with what the trace has instead, if it has no event that the model needs."""
    if len(model.processes):
        return
    events = model.stats.events
    reason = f"none of its {events} events says what ran (ros2:*, ldos:*)"
    if not events:
        has = "its streams hold no event" if model.stats.streams else "it has no stream of events"
        reason = f"{has}: nothing that could be traced ran while it was recorded"
    remedy = "record ros2:* before the nodes start, with a ROS 2 that can be traced (ros2 run tracetools status)"
    raise TraceUnreadable(trace, None, reason, remedy=remedy)


_OWNERS: Final = {
    "publications": ("publisher", "publishers"),
    "takes": ("subscription", "subscriptions"),
    "enqueues": ("subscription", "subscriptions"),
    "callback_runs": ("callback", "callbacks"),
}
"""Columns that may name an entity that no init event names."""


_RECENT: Final = 1 << 18  # last rows of a table, among which late ones are inserted at once


class _Parts:
    """Parts of one table, and late updates of their rows."""

    def __init__(self, table: str) -> None:
        self._table = table
        kinds = {name: pl.Series(dtype=kind).to_numpy().dtype for name, kind in INSTANCES[table].items()}
        self._columns = {name: mapped.Growing(kind) for name, kind in kinds.items() if name != "id"}
        self._open: IdArray = np.empty(0, dtype=np.int32)
        self._ends: list[tuple[IdArray, TimesNs]] = []
        self._late: list[Columns] = []

    def add(self, columns: Columns, *, since_ns: int, is_open: npt.NDArray[np.bool_] | None) -> None:
        """Adds the next part.

        Rows of tables with a `time_ns` before `since_ns`, the start of its window, are inserted in time order.
        `is_open`, of tables with ends, is true for rows that the next part repeats first, with their ends if known.
        """
        if is_open is not None:
            columns = self._new_rows(columns, is_open)
        elif late := int(np.searchsorted(columns["time_ns"], since_ns)):
            place = self._columns["time_ns"].so_far().searchsorted(columns["time_ns"][:late], side="right")
            old = int(np.searchsorted(place, self._columns["time_ns"].rows - _RECENT))
            self._late += [{name: values[:old].copy() for name, values in columns.items()}] if old else []
            for name, growing in self._columns.items():
                growing.insert(place[old:], columns[name][old:late])
            columns = {name: values[late:] for name, values in columns.items()}
        for name, growing in self._columns.items():
            growing.add(columns[name])

    def _new_rows(self, columns: Columns, is_open: npt.NDArray[np.bool_]) -> Columns:
        """Rows that begin in a part, with ids of the whole table; records the ends of earlier rows."""
        before, count, rows = self._open, len(self._open), self._columns["thread"].rows
        ids = np.concatenate((before, np.arange(rows, rows + len(is_open) - count, dtype=np.int32)))
        self._open = ids[is_open]
        if "parent" in columns:
            columns["parent"] = mapped.pick(ids, columns["parent"], -1)
        has_end = columns["end_ns"][:count] != NEVER
        if has_end.any():
            self._ends.append((before[has_end], columns["end_ns"][:count][has_end]))
        return {name: values[count:] for name, values in columns.items()}

    def finish(self, renumbered: Mapping[str, IdArray | None]) -> pl.DataFrame:
        """The whole table; `renumbered` are new numbers of entities by table, ``None`` if unchanged."""
        if self._late:
            late = mapped.in_time_order(self._late)
            place = self._columns["time_ns"].so_far().searchsorted(late["time_ns"], side="right")
            for name, growing in self._columns.items():
                growing.insert(place, late[name])
        columns = {name: growing.finish() for name, growing in self._columns.items()}
        for rows, end_ns in self._ends:
            columns["end_ns"][rows] = end_ns
        column, owner = _OWNERS.get(self._table, ("", ""))
        if (numbers := renumbered.get(owner)) is not None:
            for part in mapped.chunks(len(columns[column])):
                columns[column][part] = numbers[columns[column][part]]
        return mapped.frame_of(INSTANCES[self._table], columns)


def build_execution_in_windows(trace: WindowedTrace, *, pids: Collection[int] | None = None) -> ExecutionModel:
    """Builds the model of a trace window by window; see `build_execution`.

    If events of different threads have equal times, those of the later window come second. If the trace is read by
    several threads, two of them work ahead: three windows are in memory.

    Raises:
        TraceUnreadable: see `build_execution`, and `WindowedTrace.read`.
        NotWritten: the disk for temporary files is full.
    """
    whole = _look_over(trace, pids)
    named = Observed(whole.once, whole.census, None)
    endpoints = build_endpoints(named)
    kinds = (*endpoints.kinds(), build_callbacks(named, endpoints))
    parts: dict[str, _Parts] = {}
    unpaired: Counter[str] = Counter()
    ends = 0
    for window, reader in zip(trace.windows, _ahead(_follow(trace, whole), trace.threads), strict=True):
        some = reader.rows()
        unpaired.update(some.counts)
        ends += some.ends
        parts = parts or {name: _Parts(name) for name in some.tables}
        numbers = {kind.table: kind.registry.adopt(some.discovered[kind.table]) for kind in kinds}
        for name, columns in some.tables.items():
            column, owner = _OWNERS.get(name, ("", ""))
            if (number := numbers.get(owner)) is not None:  # of the window's entities in the whole model
                columns[column] = mapped.pick(number, columns[column], -1)
            parts[name].add(columns, since_ns=window[0], is_open=some.is_open.get(name))
    _states.trim()
    frames, strange = _rare(named, endpoints)
    renumbered = {kind.table: kind.registry.renumber() for kind in kinds}
    with ThreadPoolExecutor(trace.threads) as threads:
        finished = {name: threads.submit(parts.pop(name).finish, renumbered) for name in list(parts)}
        frames |= {name: finished.pop(name).result() for name in list(finished)}
    return _model(named, kinds, frames, unpaired, ends=ends, strange=strange)


def _look_over(trace: WindowedTrace, pids: Collection[int] | None) -> WholeTrace:
    with ThreadPoolExecutor(trace.threads) as threads:
        read = threads.submit(trace.read, events=READ_EVENTS - WINDOWED_EVENTS)
        counts = threads.submit(trace.count, events=READ_EVENTS, by=(*CONTEXTS, "procname"))
        once = under_usual_names(read.result())
    _check_time(once)
    census = ThreadCensus(once.traces)
    count_threads(census, under_usual_names(replace(once, events=counts.result())), READ_EVENTS, pids)
    once = replace(once, events=observed_tables(once, census, pids))
    return WholeTrace(once, census, pids)


def _follow(trace: WindowedTrace, whole: WholeTrace) -> Iterator[WindowReader]:
    """A reader for each window, after it has followed it; it is free again at the next but one."""
    readers, carried = cycle(WindowReader(whole) for _ in range(2)), Carried()
    threads = ThreadIndex(whole.census)
    decoded = (read_frequent(trace, window, whole, threads) for window in trace.windows)
    for number, (tables, reader) in enumerate(zip(_ahead(decoded, trace.threads), readers, strict=False), 1):
        carried = reader.follow(tables, carried, is_last=number == len(trace.windows))
        yield reader


Item = TypeVar("Item")


def _ahead(items: Iterator[Item], threads: int) -> Iterator[Item]:
    """The items; if there are several threads, each is computed by another one while its predecessor is in use."""
    if threads == 1:
        yield from items
        return
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
