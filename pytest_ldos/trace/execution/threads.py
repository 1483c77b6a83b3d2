"""Hosts, processes and threads that wrote the events, and which events each process wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.trace.ctf.origin import TraceInfo
from pytest_ldos.trace.ctf.tables import EventTable
from pytest_ldos.trace.execution.columns import IdArray, frame_of
from pytest_ldos.trace.execution.model import Frames
from pytest_ldos.trace.execution.schema import ENTITIES

_PID_BITS: Final = 22
_LARGEST_TID: Final = 1 << _PID_BITS
"""The kernel's limit of process and thread ids; larger ones are looked up in another way."""

NOBODY: Final = 0
"""Pid and tid where the trace was recorded without these contexts."""

_MOST_KEYS: Final = 1 << 23
"""Distinct keys up to which they are counted in an array."""

Numbers = npt.NDArray[Any]

_NAMESPACES: Final = (1 << 32) - 1
"""The kernel numbers namespaces by 32 bits; a trace may hold anything."""

Thread = tuple[int, int, int]
"""Host's number, process (see `ThreadCensus.owners`) and tid."""


class ThreadCensus:
    """Every thread that wrote an event, with its names.

    Contexts: ``vpid``, ``vtid``, ``procname``, and ``pid_ns`` where processes of several PID namespaces are recorded.

    Attributes:
        writers: processes (host's number and `owners`) that wrote each event; empty for one that is only declared.
    """

    def __init__(self, traces: Sequence[TraceInfo]) -> None:
        self._hosts = [info.host for info in traces]
        self.host_names = sorted(set(self._hosts))
        self._pids = np.array([info.pid or NOBODY for info in traces], dtype=np.int64)
        self._host_of_trace = np.array([self.host_names.index(name) for name in self._hosts], dtype=np.int64)
        self.names: dict[Thread, Counter[str]] = {}
        self.writers: dict[str, set[tuple[int, int]]] = {}
        self._traces: dict[tuple[int, int], set[int]] = {}

    def add(self, table: EventTable, rows: npt.NDArray[np.intp] | None = None) -> None:
        """Counts the events of a table, or some of its rows."""
        writers = self.writers.setdefault(table.name, set())
        host, pid, tid = self.owners(table, rows)
        if len(tid) == 0:
            return
        column = table.columns.get("procname")
        named = column is not None and column.dictionary is not None
        words: Sequence[str] = (column.dictionary or ()) if column is not None and named else ("",)
        codes = column.values if column is not None and named else np.zeros(len(table), dtype=np.int64)
        trace = table.trace[:1] if table.trace.strides == (0,) else table.trace[slice(None) if rows is None else rows]
        for (*owner, number, code), count in _distinct(host, pid, tid, trace, codes if rows is None else codes[rows]):
            names = self.names.setdefault((owner[0], owner[1], owner[2]), Counter())
            writers.add((owner[0], owner[1]))
            self._traces.setdefault((owner[0], owner[1]), set()).add(number)
            if named:
                names[words[code]] += count

    def traces_of_processes(self) -> list[set[int]]:
        """Numbers of the traces that hold events of each process, in the order of the table `processes`."""
        return [self._traces[process] for process in sorted(self._traces)]

    def owners(self, table: EventTable, rows: npt.NDArray[np.intp] | None = None) -> tuple[Numbers, Numbers, Numbers]:
        """Host, process and tid of each event; of the host a single element where there is only one.

        A process is its pid, with the PID namespace above it where the trace has one: two containers both have a pid 1.
        """
        chosen: Any = slice(None) if rows is None else rows
        pid, tid = self.pids(table)[chosen], _tids(table)[chosen]
        if "pid_ns" in table.columns:
            namespace = table["pid_ns"][chosen].astype(np.int64) & _NAMESPACES
            pid = pid.astype(np.int64) & (_LARGEST_TID - 1) | namespace << _PID_BITS
        one_host = len(self.host_names) == 1
        return np.zeros(1, dtype=np.int64) if one_host else self._host_of_trace[table.trace[chosen]], pid, tid

    def pids(self, table: EventTable) -> Numbers:
        """Pid of each event: from its context, otherwise the owner of the trace's buffer, otherwise `NOBODY`."""
        return table["vpid"] if "vpid" in table.columns else self._pids[table.trace]


class ThreadIndex:
    """Numbers threads and processes by host, pid and tid."""

    def __init__(self, census: ThreadCensus) -> None:
        self._census = census
        self._threads = {thread: number for number, thread in enumerate(sorted(census.names))}
        self._processes = {
            process: number for number, process in enumerate(sorted({(host, pid) for host, pid, _ in self._threads}))
        }
        self._process_of_thread = np.array(
            [self._processes[host, pid] for host, pid, _ in self._threads], dtype=np.int32
        )

    def index(self, table: EventTable, rows: npt.NDArray[np.intp] | None = None) -> IdArray:
        """The thread of each event of a table, or of some of its rows."""
        host, pid, tid = self._census.owners(table, rows)
        if len(tid) == 0:
            return np.empty(0, dtype=np.int32)
        threads = self._index_by_tid(host, pid, tid)
        return self._index_by_all(host, pid, tid) if threads is None else threads

    def pids(self, table: EventTable) -> Numbers:
        """See `ThreadCensus.pids`."""
        return self._census.pids(table)

    def process_of(self, thread: IdArray) -> IdArray:
        found: IdArray = self._process_of_thread[thread] if len(thread) else thread
        return found

    def writers(self) -> dict[str, frozenset[int]]:
        """Processes that wrote each event; without any for an event that is only declared."""
        found = self._census.writers.items()
        return {name: frozenset(self._processes[each] for each in writers) for name, writers in found}

    def frames(self) -> Frames:
        """The tables `hosts`, `processes` and `threads` (without executors)."""
        names = [_most_frequent(self._census.names[thread]) for thread in self._threads]
        main = {
            (host, process): name
            for (host, process, tid), name in zip(self._threads, names, strict=True)
            if _pid_of(process) == tid
        }
        some: dict[tuple[int, int], str | None] = {}
        for (host, pid, _), name in zip(self._threads, names, strict=True):
            some[host, pid] = some.get((host, pid)) or name
        return {
            "hosts": frame_of(ENTITIES["hosts"], {"name": self._census.host_names}),
            "processes": frame_of(
                ENTITIES["processes"],
                {
                    "host": [host for host, _ in self._processes],
                    "pid": [_pid_of(process) for _, process in self._processes],
                    "name": [main.get(process) or some[process] for process in self._processes],
                },
            ),
            "threads": frame_of(
                ENTITIES["threads"],
                {
                    "process": self._process_of_thread,
                    "tid": [tid for _, _, tid in self._threads],
                    "name": names,
                    "executor": np.full(len(self._threads), -1, dtype=np.int32),
                },
            ),
        }

    def _index_by_tid(self, host: Numbers, pid: Numbers, tid: Numbers) -> IdArray | None:
        """Looks threads up in an array with an element per tid.

        Returns ``None`` if a tid has several owners or is out of range.
        """
        if len(host) > 1 or tid.min() < 0 or tid.max() >= _LARGEST_TID:
            return None
        owner = np.zeros(int(tid.max()) + 1, dtype=np.int64)
        owner[tid] = pid
        if not np.array_equal(owner[tid], pid):
            return None
        seen = np.zeros(len(owner), dtype=bool)
        seen[tid] = True
        numbers = np.zeros(len(owner), dtype=np.int32)
        for each in np.flatnonzero(seen).tolist():
            numbers[each] = self._number(int(host[0]), int(owner[each]), each)
        return numbers[tid]

    def _index_by_all(self, host: Numbers, pid: Numbers, tid: Numbers) -> IdArray:
        triples = np.stack(np.broadcast_arrays(host, pid.astype(np.int64), tid.astype(np.int64)), axis=1)
        known, inverse = np.unique(triples, axis=0, return_inverse=True)
        numbers = np.array([self._number(*map(int, triple)) for triple in known], dtype=np.int32)
        return numbers[inverse.reshape(-1)]

    def _number(self, host: int, pid: int, tid: int) -> int:
        return self._threads[host, pid, tid]


def _distinct(
    host: Numbers, pid: Numbers, tid: Numbers, trace: Numbers, code: Numbers
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each combination of host, pid, tid, trace and name with its number of events."""
    parts = [host, pid, tid, trace, code]
    key = np.zeros(1, dtype=np.int64)
    for part in parts:
        if len(part) > 1:
            dense = _dense(part)
            key = key * (int(dense.max()) + 1) + dense
            key = _dense(key) if int(key.max()) > _MOST_KEYS else key
    key = _dense(np.broadcast_to(key, len(tid)))
    counts = np.bincount(key)
    row = np.zeros(len(counts), dtype=np.int64)
    row[key] = np.arange(len(key))
    columns = [(part[row] if len(part) > 1 else np.broadcast_to(part, len(row))).tolist() for part in parts]
    yield from zip(zip(*columns, strict=True), counts.tolist(), strict=True)


def _dense(values: Numbers) -> Numbers:
    """A small number for each distinct value."""
    low, span = int(values.min()), int(values.max()) - int(values.min()) + 1
    if span > _MOST_KEYS:
        return np.unique(values, return_inverse=True)[1].reshape(-1)
    if low == 0 and span == 1:
        return np.zeros(len(values), dtype=np.int64)
    numbers = np.zeros(span, dtype=np.int64)
    at = values - low if low else values
    numbers[at] = 1
    found: Numbers = (np.cumsum(numbers) - 1)[at]
    return found


def _most_frequent(names: Counter[str]) -> str | None:
    return min(names, key=lambda name: (-names[name], name), default=None)


def _pid_of(process: int) -> int:
    """The pid of a process, within its namespace where it has one."""
    return process & (_LARGEST_TID - 1) if process >= _LARGEST_TID else process


def _tids(table: EventTable) -> Numbers:
    return table["vtid"] if "vtid" in table.columns else np.full(len(table), NOBODY, dtype=np.int64)
