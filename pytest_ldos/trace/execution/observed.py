"""Events of the observed processes with their threads, ordered by thread and time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, chunks, computed, frame_of, index_by
from pytest_ldos.trace.execution.model import INSTANCES
from pytest_ldos.trace.execution.threads import NO_PROCESS, Rows, ThreadCensus, ThreadIndex

Keys = npt.NDArray[np.int64]  # thread and time as one number, ordered by thread first; shape ``(n,)``

_KEY_BITS = 63
_ERA_NS = 1 << 46  # smallest gap between eras: about 20 hours


class Clock:
    """Turns (thread, time) into keys.

    Hosts with unset clocks are in separate eras. The time between two eras is left out, so that enough bits remain for
    the threads. The given times are all that it covers; those between the first and last of an era may be omitted.
    """

    def __init__(self, *times_ns: TimesNs) -> None:
        every = [times for times in times_ns if len(times)]
        first = min((int(times.min()) for times in every), default=0)
        self.last_ns = max((int(times.max()) for times in every), default=0)
        self._first_ns, self._before_ns = np.array([first], dtype=np.int64), np.zeros(1, dtype=np.int64)
        if self.last_ns - first > _ERA_NS:
            self._first_ns, self._before_ns = _eras(every)
        self._bits = max(int(self._since_first(np.array([self.last_ns]))[0]).bit_length(), 1)

    @classmethod
    def of(cls, *columns: pl.Series) -> Clock:
        """Clock of long columns of times, without their nulls."""
        parts = (mapped.rows_of(column, part) for column in columns for part in chunks(len(column)))
        return cls(*(edges(part.drop_nulls().to_numpy()) for part in parts))

    def _since_first(self, times_ns: TimesNs) -> TimesNs:
        if len(self._first_ns) == 1:
            since: TimesNs = times_ns - self._first_ns[0]
            return since
        era = np.maximum(np.searchsorted(self._first_ns, times_ns, side="right") - 1, 0)
        return times_ns - self._first_ns[era] + self._before_ns[era]

    def keys(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Keys:
        """Keys of (thread, time) pairs; the threads must not be -1. Refuses a trace that is too long."""
        if len(thread) and int(thread.max()) >= 1 << (_KEY_BITS - self._bits):
            raise ConfigurationError(
                "the trace is too long for the number of its threads", remedy="read it in parts, with `window`"
            )
        return (thread.astype(np.int64) << self._bits) | self._since_first(times_ns)

    def timeline(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Timeline:
        """Timeline of events given in time order."""
        if len(thread) <= mapped.CHUNK_ROWS:
            narrow = thread.astype(np.uint16) if len(thread) and thread.max() < 1 << 16 else thread
            rows = np.argsort(narrow, kind="stable").astype(np.int32)
            return Timeline(self.keys(thread, times_ns)[rows], rows, self._bits)
        rows = index_by(thread, int(thread.max()) + 1).rows
        keys = computed(len(rows), np.int64, lambda part: self.keys(thread[rows[part]], times_ns[rows[part]]))
        return Timeline(keys, rows, self._bits)


def _eras(every: list[TimesNs]) -> tuple[TimesNs, TimesNs]:
    """Begin of each era, and the total length of the eras before it."""
    times_ns = np.unique(np.concatenate([edges(each[part]) for each in every for part in chunks(len(each))]))
    begin = np.concatenate(([0], np.flatnonzero(np.diff(times_ns) > _ERA_NS) + 1))
    end = np.append(begin[1:], len(times_ns)) - 1
    lengths = times_ns[end] - times_ns[begin] + 1
    return times_ns[begin], np.cumsum(lengths) - lengths


def edges(times_ns: TimesNs) -> TimesNs:
    """First and last time of each interval of `_ERA_NS`, which determine the same eras as all times."""
    if not len(times_ns):
        return times_ns
    first_ns, last_ns = times_ns.min(), times_ns.max()
    if last_ns - first_ns <= _ERA_NS:
        return np.array([first_ns, last_ns])
    ordered = np.sort(times_ns)
    stretch = ordered // _ERA_NS
    begins = np.flatnonzero(np.diff(stretch, prepend=stretch[0] - 1))
    return np.concatenate((ordered[begins], ordered[np.append(begins[1:], len(ordered)) - 1]))


@dataclass(frozen=True)
class Timeline:
    """Events of one kind: ascending keys, and the row of each event in its table; shape ``(n,)``."""

    keys: Keys
    rows: IdArray
    bits: int

    def last_for(self, others: Timeline, *, before: bool = False) -> IdArray:
        """Row that `last` returns for each event of another timeline, in the order of its table; faster than `last`."""
        return in_table(others, self.last(others.keys, before=before))

    def next_for(self, others: Timeline, *, after: bool = False) -> IdArray:
        return in_table(others, self.next(others.keys, after=after))

    def last(self, keys: Keys, *, before: bool = False, skip: int = 0) -> IdArray:
        """Row of the last event of the key's thread at its time or before; `skip` goes back further by so many."""
        position = np.searchsorted(self.keys, keys, side="left" if before else "right") - 1 - skip
        return self._rows(position, keys)

    def next(self, keys: Keys, *, after: bool = False) -> IdArray:
        """Row of the first event of the key's thread at its time or after (`after`: strictly after)."""
        return self._rows(np.searchsorted(self.keys, keys, side="right" if after else "left"), keys)

    def _rows(self, position: npt.NDArray[np.intp], keys: Keys) -> IdArray:
        if len(self.keys) == 0:
            return np.full(len(keys), -1, dtype=np.int32)
        inside = (position >= 0) & (position < len(self.keys))
        held = np.where(inside, position, 0)
        same = inside & (self.keys[held] >> self.bits == keys >> self.bits)
        return np.where(same, self.rows[held], np.int32(-1))


def in_table(timeline: Timeline, values: IdArray) -> IdArray:
    """Values in timeline order, reordered to the table's order; shape ``(n,)``."""
    ordered = np.empty(len(values), dtype=np.int32)
    ordered[timeline.rows] = values
    return ordered


_WRITTEN_BY: Final = "tracetools of ROS 2 Humble or later writes it"


@dataclass(frozen=True)
class Events:
    """Events of one name from the observed processes, in time order, with the thread and process of each."""

    name: str
    times_ns: TimesNs
    thread: IdArray
    process: IdArray
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)
    _rows: Rows = field(default_factory=lambda: slice(None), repr=False)
    _source: Path = Path()

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Numbers of a field: codes for text; one row per event for lists of one length."""
        if len(self) == 0:
            return np.empty(0, dtype=np.int64)
        return self._column(name).values[self._rows]

    def table(self, name: str, /, **columns: Any) -> pl.DataFrame:
        """Table of the model with time and thread of each event, and the given columns."""
        return frame_of(INSTANCES[name], {"time_ns": self.times_ns, "thread": self.thread, **columns})

    def handles(self, name: str) -> npt.NDArray[np.uint64]:
        return self[name].astype(np.uint64, copy=False)

    def texts(self, name: str) -> list[str]:
        return [] if len(self) == 0 else self._column(name).texts()[self._rows].tolist()

    def hexadecimals(self, name: str) -> list[str]:
        """Field of bytes, all of one length, as hexadecimal digits."""
        return [bytes(each).hex() for each in self[name].astype(np.uint8)] if len(self) else []

    def lists(self, name: str) -> list[list[int]]:
        column = self._column(name) if len(self) else ()
        return [column[row] for row in np.arange(len(column))[self._rows].tolist()]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            reason = f"{self.name} has no field {name!r} ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason)
        column = self._columns[name]
        missing = 0 if column.valid is None else int(np.count_nonzero(~column.valid[self._rows]))
        if missing:
            reason = f"{self.name} has no field {name!r} in {missing} of {len(self)} events ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason, remedy="observe only processes of ROS 2 Humble or later")
        return column

    def optional(self, name: str, otherwise: int) -> npt.NDArray[Any]:
        """Numbers of a field that older releases of tracetools lack; `otherwise` in events without it."""
        column = self._columns.get(name)
        if column is None or len(self) == 0:
            return np.full(len(self), otherwise)
        values = column.values[self._rows]
        return values if column.valid is None else np.where(column.valid[self._rows], values, otherwise)


def count_threads(
    census: ThreadCensus, trace: DecodedTrace, names: Iterable[str], pids: Collection[int] | None
) -> None:
    for name in names:
        table = trace.events.get(name)
        if table is not None:
            census.add(table, rows_of(table, census, pids, trace.directory))


def rows_of(table: EventTable, census: ThreadCensus, pids: Collection[int] | None, directory: Path) -> Rows:
    """Events of some processes, or all; refuses events that do not name theirs."""
    if pids is None:
        return slice(None)
    found = census.pids(table)
    if (found == NO_PROCESS).any():
        reason = f"{table.name} has no context vpid, so that processes cannot be distinguished"
        raise TraceUnreadable(directory, None, reason, remedy="record with: lttng add-context --userspace --type=vpid")
    return np.flatnonzero(np.isin(found, np.array(sorted(pids))))


class Observed:
    """Events of some processes; the census has all their threads, including those outside this window."""

    def __init__(self, trace: DecodedTrace, census: ThreadCensus, pids: Collection[int] | None) -> None:
        self.trace = trace
        self._pids = pids
        self._events: dict[str, Events] = {}
        self._timelines: dict[str, Timeline] = {}
        self.census = census
        self.threads = ThreadIndex(census)
        self._writers = self.threads.writers()
        self.clock = Clock(*(table.timestamp_ns for table in trace.events.values()))

    def events(self, name: str) -> Events:
        """Events of one name; empty where the trace has no such event."""
        if name in self._events:
            return self._events[name]
        table = self.trace.events.get(name)
        if table is None or len(table) == 0:
            none = np.empty(0, dtype=np.int32)
            self._events[name] = Events(name, np.empty(0, dtype=np.int64), none, none)
        else:
            rows = rows_of(table, self.census, self._pids, self.trace.directory)
            thread = self.threads.index(table, rows)
            times_ns = table.timestamp_ns[rows]
            process = self.threads.process_of(thread)
            columns, source = dict(table.columns), self.trace.directory
            self._events[name] = Events(name, times_ns, thread, process, columns, rows, source)
        return self._events[name]

    def timeline(self, name: str) -> Timeline:
        if name not in self._timelines:
            events = self.events(name)
            self._timelines[name] = self.clock.timeline(events.thread, events.times_ns)
        return self._timelines[name]

    def without(self, name: str, events: Events) -> npt.NDArray[np.bool_]:
        """True for each event of a process that never wrote the named event in the whole trace."""
        is_without = np.ones(int(events.process.max(initial=-1)) + 1, dtype=bool)
        writers = [each for each in self._writers.get(name, ()) if each < len(is_without)]
        is_without[writers] = False
        return is_without[events.process]
