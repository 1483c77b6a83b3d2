"""Tracks: processes with their threads, and below them the tracks of states and counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.show.export.perfetto import wire
from pytest_ldos.show.export.perfetto.fields import UNIT_TIME_NS, Counter, Process, Thread, Track
from pytest_ldos.trace.execution.model import ExecutionModel

_PIDS_PER_HOST: Final = 10_000_000
"""Above the kernel's limit (2^22). On the second host and later, its multiple is added to pids and tids."""

_NO_NUMBER: Final = 0

Uuids = npt.NDArray[np.uint64]


class Tracks:
    """Numbers the tracks of a trace and keeps their descriptors, parents before children."""

    def __init__(self, model: ExecutionModel) -> None:
        self._descriptors: list[bytes] = []
        self._last = 0
        self._several_hosts = len(model.hosts) > 1
        self.process = [self._add_process(model, row) for row in model.processes.iter_rows(named=True)]
        self.thread = [self._add_thread(model, row) for row in model.threads.iter_rows(named=True)]

    def descriptors(self) -> Iterable[bytes]:
        """Encoded fields of each ``TrackDescriptor``."""
        return self._descriptors

    def add(self, name: str, *, parent: int | None = None) -> int:
        """Adds a track of slices."""
        return self._add(wire.text(Track.NAME, name), parent=parent)

    def add_counter(self, name: str, *, unit: str | None = None, parent: int | None = None) -> int:
        """Adds a track of values, in nanoseconds unless a unit is given."""
        counted = wire.number(Counter.UNIT, UNIT_TIME_NS) if unit is None else wire.text(Counter.UNIT_NAME, unit)
        return self._add(wire.text(Track.NAME, name), wire.message(Track.COUNTER, counted), parent=parent)

    def below_threads(self, name: str, threads: pl.Series) -> Uuids:
        """For each thread in `threads`, the number of a new track of that name below it; 0 for other threads."""
        found = np.zeros(len(self.thread) + 1, dtype=np.uint64)
        for thread in threads.unique().drop_nulls().sort():
            found[thread] = self.add(name, parent=self.thread[thread])
        return found

    def of_threads(self) -> Uuids:
        """By thread, the number of its track; the last, found by row -1, is for unknown threads."""
        return np.array([*self.thread, self.add("unknown thread")], dtype=np.uint64)

    def _add(self, *fields: bytes, parent: int | None = None) -> int:
        self._last += 1
        above = b"" if parent is None else wire.number(Track.PARENT_UUID, parent)
        self._descriptors.append(b"".join((wire.number(Track.UUID, self._last), above, *fields)))
        return self._last

    def _add_process(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        host, pid = int(row["host"] or 0), int(row["pid"] or 0)
        name = str(row["name"] or "unknown")
        if self._several_hosts:
            name = f"{name} @ {model.hosts['name'][host]}"
        if pid <= _NO_NUMBER:
            return self._add(wire.text(Track.NAME, name))
        nodes = model.nodes.filter(pl.col("process") == row["id"])["name"].drop_nulls().unique().sort()
        described = [wire.number(Process.PID, _numbered(host, pid)), wire.text(Process.NAME, name)]
        described += [wire.text(Process.LABELS, node) for node in nodes]
        return self._add(wire.message(Track.PROCESS, *described))

    def _add_thread(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        process = int(row["process"] or 0)
        host, pid = (int(model.processes[column][process]) for column in ("host", "pid"))
        tid, name = int(row["tid"] or 0), str(row["name"] or "unknown")
        parent = self.process[process]
        if pid <= _NO_NUMBER or tid <= _NO_NUMBER:
            return self._add(wire.text(Track.NAME, name), parent=parent)
        numbers = wire.number(Thread.PID, _numbered(host, pid)), wire.number(Thread.TID, _numbered(host, tid))
        return self._add(wire.message(Track.THREAD, *numbers, wire.text(Thread.NAME, name)), parent=parent)


def _numbered(host: int, pid: int) -> int:
    return host * _PIDS_PER_HOST + pid
