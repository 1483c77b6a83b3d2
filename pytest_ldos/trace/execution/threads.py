"""Hosts, processes and threads that wrote the events."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.tables import EventTable
from pytest_ldos.trace.execution.columns import IdArray, frame_of
from pytest_ldos.trace.execution.model import Frames
from pytest_ldos.trace.execution.schema import ENTITIES

_LARGEST_TID: Final = 1 << 22
"""The kernel's limit of thread ids; larger ones are looked up in another way."""

NOBODY: Final = 0
"""Pid and tid where the trace was recorded without these contexts."""

Numbers = npt.NDArray[Any]


class ThreadIndex:
    """Numbers every (host, pid, tid) in the order in which `index` first meets it.

    Contexts: ``vpid``, ``vtid``, ``procname``.
    """

    def __init__(self, trace: DecodedTrace) -> None:
        self._hosts = [info.host for info in trace.traces]
        self._host_names = sorted(set(self._hosts))
        self._pids = np.array([info.pid or NOBODY for info in trace.traces], dtype=np.int64)
        self._host_of_trace = np.array([self._host_names.index(name) for name in self._hosts], dtype=np.int64)
        self._threads: dict[tuple[int, int, int], int] = {}
        self._processes: dict[tuple[int, int], int] = {}
        self._process_of_thread: list[int] = []
        self._names: Counter[tuple[int, str]] = Counter()

    def index(self, table: EventTable, rows: npt.NDArray[np.intp] | None = None) -> IdArray:
        """The thread of each event of a table, or of some of its rows."""
        chosen: Any = slice(None) if rows is None else rows
        pid, tid = self.pids(table)[chosen], _tids(table)[chosen]
        if len(tid) == 0:
            return np.empty(0, dtype=np.int32)
        host = self._hosts_in(table, chosen)
        threads = self._index_by_tid(host, pid, tid)
        if threads is None:
            threads = self._index_by_all(host, pid, tid)
        self._note_names(table, chosen, threads)
        return threads

    def pids(self, table: EventTable) -> Numbers:
        """Process of each event: from its context, otherwise the owner of the trace's buffer, otherwise `NOBODY`."""
        return table["vpid"] if "vpid" in table.columns else self._pids[table.trace]

    def process_of(self, thread: IdArray) -> IdArray:
        return np.array(self._process_of_thread, dtype=np.int32)[thread] if len(thread) else thread

    def frames(self) -> Frames:
        """The tables `hosts`, `processes` and `threads` (without executors)."""
        names = self._most_frequent_names()
        main = {
            self._process_of_thread[number]: names.get(number) for (_, pid, tid), number in self._order() if pid == tid
        }
        processes = sorted(self._processes.items(), key=lambda item: item[1])
        return {
            "hosts": frame_of(ENTITIES["hosts"], {"name": self._host_names}),
            "processes": frame_of(
                ENTITIES["processes"],
                {
                    "host": [host for (host, _), _ in processes],
                    "pid": [pid for (_, pid), _ in processes],
                    "name": [main.get(number) or self._any_name(number, names) for _, number in processes],
                },
            ),
            "threads": frame_of(
                ENTITIES["threads"],
                {
                    "process": self._process_of_thread,
                    "tid": [tid for (_, _, tid), _ in self._order()],
                    "name": [names.get(number) for _, number in self._order()],
                    "executor": np.full(len(self._threads), -1, dtype=np.int32),
                },
            ),
        }

    def _order(self) -> list[tuple[tuple[int, int, int], int]]:
        return list(self._threads.items())

    def _hosts_in(self, table: EventTable, rows: Any) -> Numbers:
        """Host of each event; a single element where all events come from one host."""
        if len(self._host_names) == 1:
            return np.zeros(1, dtype=np.int64)
        hosts: Numbers = self._host_of_trace[table.trace[rows]]
        return hosts

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
        number = self._threads.setdefault((host, pid, tid), len(self._threads))
        if number == len(self._process_of_thread):
            self._process_of_thread.append(self._processes.setdefault((host, pid), len(self._processes)))
        return number

    def _note_names(self, table: EventTable, rows: Any, threads: IdArray) -> None:
        """Counts the names under which each thread appears."""
        column = table.columns.get("procname")
        if column is None or column.dictionary is None:
            return
        words = len(column.dictionary)
        counts = np.bincount(threads.astype(np.int64) * words + column.values[rows])
        for pair in np.flatnonzero(counts).tolist():
            self._names[(pair // words, column.dictionary[pair % words])] += int(counts[pair])

    def _most_frequent_names(self) -> dict[int, str]:
        return {thread: name for (thread, name), _ in reversed(self._names.most_common())}

    def _any_name(self, process: int, names: dict[int, str]) -> str | None:
        found = (names.get(thread) for thread, owner in enumerate(self._process_of_thread) if owner == process)
        return next((name for name in found if name is not None), None)


def _tids(table: EventTable) -> Numbers:
    return table["vtid"] if "vtid" in table.columns else np.full(len(table), NOBODY, dtype=np.int64)
