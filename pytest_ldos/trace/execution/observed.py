"""Events of the observed processes, with the thread that wrote each."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.tables import Column, EventTable
from pytest_ldos.trace.execution.columns import IdArray, TimesNs
from pytest_ldos.trace.execution.threads import NOBODY, ThreadCensus, ThreadIndex
from pytest_ldos.trace.execution.timeline import Clock, Timeline

_WRITTEN_BY: Final = "tracetools of ROS 2 Humble or later writes it"


@dataclass(frozen=True)
class Events:
    """Events of one name from the observed processes, in time order.

    Attributes:
        times_ns, thread, process: of each event; shape ``(n,)``.
    """

    name: str
    times_ns: TimesNs
    thread: IdArray
    process: IdArray
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)
    _rows: npt.NDArray[np.intp] | None = field(default=None, repr=False)
    _source: Path = Path()

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Numbers of a field: codes for text; one row per event for lists of one length."""
        if len(self) == 0:
            return np.empty(0, dtype=np.int64)
        values = self._column(name).values
        return values if self._rows is None else values[self._rows]

    def handles(self, name: str) -> npt.NDArray[np.uint64]:
        """Field of addresses, whatever their width."""
        return self[name].astype(np.uint64, copy=False)

    def texts(self, name: str) -> list[str]:
        """Strings of a text field."""
        return [] if len(self) == 0 else self._column(name).texts()[self._selected].tolist()

    def hexadecimals(self, name: str) -> list[str]:
        """Field of bytes, all of one length, as hexadecimal digits."""
        return [bytes(each).hex() for each in self[name].astype(np.uint8)] if len(self) else []

    def lists(self, name: str) -> list[list[int]]:
        """Elements of a list field."""
        return [] if len(self) == 0 else [self._column(name)[int(row)] for row in self._selected]

    @property
    def _selected(self) -> npt.NDArray[np.intp]:
        return np.arange(len(self)) if self._rows is None else self._rows

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            reason = f"{self.name} has no field {name!r} ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason)
        column = self._columns[name]
        missing = 0 if column.valid is None else int(np.count_nonzero(~column.valid[self._selected]))
        if missing:
            reason = f"{self.name} has no field {name!r} in {missing} of {len(self)} events ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason, remedy="observe only processes of ROS 2 Humble or later")
        return column

    def optional(self, name: str, otherwise: int) -> npt.NDArray[Any]:
        """Numbers of a field that earlier releases of tracetools do not write; `otherwise` in events without it."""
        column = self._columns.get(name)
        if column is None or len(self) == 0:
            return np.full(len(self), otherwise)
        values = column.values[self._selected]
        return values if column.valid is None else np.where(column.valid[self._selected], values, otherwise)


def count_threads(
    census: ThreadCensus, trace: DecodedTrace, names: Iterable[str], pids: Collection[int] | None
) -> None:
    """Adds events of some names to a census, of some processes or of all."""
    for name in names:
        table = trace.events.get(name)
        if table is not None:
            census.add(table, rows_of(table, census, pids, trace.directory))


def rows_of(
    table: EventTable, census: ThreadCensus, pids: Collection[int] | None, directory: Path
) -> npt.NDArray[np.intp] | None:
    """Events of some processes, ``None`` for all.

    Raises:
        TraceUnreadable: processes were asked for, and the events do not name theirs.
    """
    if pids is None:
        return None
    found = census.pids(table)
    if (found == NOBODY).any():
        reason = f"{table.name} has no context vpid, so that processes cannot be told apart"
        raise TraceUnreadable(directory, None, reason, remedy="record with: lttng add-context --userspace --type=vpid")
    return np.flatnonzero(np.isin(found, np.array(sorted(pids))))


class Observed:
    """Events of some processes.

    Args:
        census: all threads of these processes, also of parts of the trace that are not here.
        pids: of the processes; ``None`` for all in the trace.
    """

    def __init__(self, trace: DecodedTrace, census: ThreadCensus, pids: Collection[int] | None) -> None:
        self._trace = trace
        self._pids = pids
        self._events: dict[str, Events] = {}
        self._timelines: dict[str, Timeline] = {}
        self._census = census
        self.threads = ThreadIndex(census)

    def events(self, name: str) -> Events:
        """Events of one name; empty where the trace has no such event."""
        if name not in self._events:
            self._events[name] = self._select(name)
        return self._events[name]

    def timeline(self, name: str) -> Timeline:
        """Events of one name, ordered by thread."""
        if name not in self._timelines:
            events = self.events(name)
            self._timelines[name] = self.clock.timeline(events.thread, events.times_ns)
        return self._timelines[name]

    def without(self, name: str, events: Events) -> npt.NDArray[np.bool_]:
        """True for each event of a process that wrote no event of the given name anywhere in the trace."""
        is_without = np.ones(int(events.process.max(initial=-1)) + 1, dtype=bool)
        writers = [each for each in self._writers.get(name, ()) if each < len(is_without)]
        is_without[writers] = False
        return is_without[events.process]

    @cached_property
    def _writers(self) -> dict[str, frozenset[int]]:
        return self.threads.writers()

    @cached_property
    def clock(self) -> Clock:
        """Makes times of several threads comparable as one number."""
        return Clock(*(table.timestamp_ns for table in self._trace.events.values()))

    def _select(self, name: str) -> Events:
        table = self._trace.events.get(name)
        if table is None or len(table) == 0:
            none = np.empty(0, dtype=np.int32)
            return Events(name, np.empty(0, dtype=np.int64), none, none)
        rows = rows_of(table, self._census, self._pids, self._trace.directory)
        thread = self.threads.index(table, rows)
        times = table.timestamp_ns if rows is None else table.timestamp_ns[rows]
        process = self.threads.process_of(thread)
        return Events(name, times, thread, process, dict(table.columns), rows, self._trace.directory)
