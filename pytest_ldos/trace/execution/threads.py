"""Hosts, processes and threads that wrote the events, and their scheduler events."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import KERNEL_FIELDS, Kernel
from pytest_ldos.trace.ctf.read import COUNT, Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.stats import TraceInfo
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution.columns import IdArray, frame_of
from pytest_ldos.trace.execution.model import ENTITIES, INSTANCES, ExecutionModel, Frames

_PID_BITS: Final = 22
_LARGEST_TID: Final = 1 << _PID_BITS  # the kernel's limit of process and thread ids; larger ids take a slower path
NO_PROCESS: Final = 0  # pid and tid in traces recorded without these contexts

Numbers = npt.NDArray[Any]

_NAMESPACES: Final = (1 << 32) - 1  # the kernel numbers namespaces by 32 bits; a trace may hold anything

Rows = npt.NDArray[np.intp] | slice
Thread = tuple[int, int, int]  # host's number, process (see `ThreadCensus.owners`) and tid


class ThreadCensus:
    """Every thread that wrote an event, with its names.

    Contexts: ``vpid``, ``vtid``, ``procname``, and ``pid_ns`` where processes of several PID namespaces are recorded.
    `writers` are the processes (host's number and `owners`) that wrote each event; empty if it is only declared.
    """

    def __init__(self, traces: Sequence[TraceInfo]) -> None:
        self._hosts = [info.host for info in traces]
        self.host_names = sorted(set(self._hosts))
        self._pids = np.array([info.pid or NO_PROCESS for info in traces], dtype=np.int64)
        self._host_of_trace = np.array([self.host_names.index(name) for name in self._hosts], dtype=np.int64)
        self.names: dict[Thread, Counter[str]] = {}
        self.writers: dict[str, set[tuple[int, int]]] = {}
        self._traces: dict[tuple[int, int], set[int]] = {}

    def add(self, table: EventTable, rows: Rows = slice(None)) -> None:
        writers = self.writers.setdefault(table.name, set())
        host, pid, tid = self.owners(table, rows)
        if len(tid) == 0:
            return
        column = table.columns.get("procname")
        words = (column and column.dictionary) or ()
        codes = column.values if column and words else np.broadcast_to(np.int64(-1), len(table))
        if column and column.valid is not None:  # the trace of this event lacks the context
            codes = np.where(column.valid, codes.astype(np.int64), -1)
        columns = [*np.broadcast_arrays(host, pid, tid, table.trace[rows], codes[rows])]
        first, group = _states.distinct(columns)
        values = (column[first].tolist() for column in columns)
        counts = np.bincount(group, weights=table[COUNT][rows] if COUNT in table.columns else None)
        for at, process, thread, number, code, count in zip(*values, counts.astype(np.int64).tolist(), strict=True):
            names = self.names.setdefault((at, process, thread), Counter())
            writers.add((at, process))
            self._traces.setdefault((at, process), set()).add(number)
            if code >= 0:
                names[words[code]] += count

    def traces_of_processes(self) -> list[set[int]]:
        """Numbers of the traces that hold events of each process, in the order of the table `processes`."""
        return [self._traces[process] for process in sorted(self._traces)]

    def owners(self, table: EventTable, rows: Rows = slice(None)) -> tuple[Numbers, Numbers, Numbers]:
        """Host, process (pid and, if recorded, PID namespace) and tid of each event; a single host is one element."""
        pid = self.pids(table)[rows]
        tid = table["vtid"][rows] if "vtid" in table.columns else np.full(len(pid), NO_PROCESS, dtype=np.int64)
        if "pid_ns" in table.columns:
            namespace = table["pid_ns"][rows].astype(np.int64) & _NAMESPACES
            pid = pid.astype(np.int64) & (_LARGEST_TID - 1) | namespace << _PID_BITS
        one_host = len(self.host_names) == 1
        return np.zeros(1, dtype=np.int64) if one_host else self._host_of_trace[table.trace[rows]], pid, tid

    def pids(self, table: EventTable) -> Numbers:
        """Pid of each event: from its context, else the owner of the trace's buffer, else `NO_PROCESS`."""
        return table["vpid"] if "vpid" in table.columns else self._pids[table.trace]


class ThreadIndex:
    """Numbers threads and processes by host, pid and tid."""

    def __init__(self, census: ThreadCensus) -> None:
        self._census = census
        self._threads = {thread: number for number, thread in enumerate(sorted(census.names))}
        processes = [(host, process) for host, process, _ in self._threads]
        self._processes = {process: number for number, process in enumerate(sorted(set(processes)))}
        self._process_of_thread = np.array([self._processes[process] for process in processes], dtype=np.int32)

    def index(self, table: EventTable, rows: Rows = slice(None)) -> IdArray:
        host, pid, tid = self._census.owners(table, rows)
        if len(tid) == 0:
            return np.empty(0, dtype=np.int32)
        columns = np.broadcast_arrays(host, pid, tid)
        first, group = _states.distinct([*columns])
        known = zip(*(column[first].tolist() for column in columns), strict=True)
        return np.array([self._threads[thread] for thread in known], dtype=np.int32)[group]

    def process_of(self, thread: IdArray) -> IdArray:
        return self._process_of_thread[thread] if len(thread) else thread

    def located(self, thread: IdArray) -> pl.DataFrame:
        """Columns: name of the `host`, `tid` and `pid` of each thread."""
        known = [(self._census.host_names[host], tid, _pid_of(pid)) for host, pid, tid in self._threads]
        return pl.DataFrame(known, {"host": pl.String, "tid": pl.Int64, "pid": pl.Int64}, orient="row")[thread]

    def writers(self) -> dict[str, frozenset[int]]:
        """Processes that wrote each event; empty for an event that is only declared."""
        found = self._census.writers.items()
        return {name: frozenset(self._processes[each] for each in writers) for name, writers in found}

    def frames(self) -> Frames:
        """The tables `hosts`, `processes` and `threads` (without executors)."""
        counts = [self._census.names[thread] for thread in self._threads]
        names = [min(each, key=lambda name: (-each[name], name), default=None) for each in counts]
        main: dict[tuple[int, int], str | None] = {}
        some: dict[tuple[int, int], str | None] = {}
        for (host, process, tid), name in zip(self._threads, names, strict=True):
            if _pid_of(process) == tid:
                main[host, process] = name
            some[host, process] = some.get((host, process)) or name
        processes = {
            "host": [host for host, _ in self._processes],
            "pid": [_pid_of(process) for _, process in self._processes],
            "name": [main.get(process) or some[process] for process in self._processes],
        }
        tids = [tid for _, _, tid in self._threads]
        no_executor = np.full(len(tids), -1, dtype=np.int32)
        threads = {"process": self._process_of_thread, "tid": tids, "name": names, "executor": no_executor}
        return {
            "hosts": frame_of(ENTITIES["hosts"], {"name": self._census.host_names}),
            "processes": frame_of(ENTITIES["processes"], processes),
            "threads": frame_of(ENTITIES["threads"], threads),
        }


def _pid_of(process: int) -> int:
    """The pid of a process, within its namespace if it has one."""
    return process & (_LARGEST_TID - 1) if process >= _LARGEST_TID else process


_NOT_OF_THIS_CLOCK: Final = frozenset(
    {"source_ns", "timeout_ns", "period_ns", "sim_time_ns", "planned_ns", "cpu_work_ns"}
)
"""Time columns that hold durations, or stamps of another clock."""

_LARGEST_NS: Final = 10**18  # about thirty years


def shift_clocks(model: ExecutionModel, offsets_ns: Mapping[str, int]) -> ExecutionModel:
    """The model with offsets (nanoseconds by host name) added to all times of some hosts; rows keep their places.

    Raises:
        ConfigurationError: no host has this name, or an offset is too large.
    """
    known = set(model.hosts["name"])
    for name, offset_ns in offsets_ns.items():
        if abs(offset_ns) > _LARGEST_NS:
            raise ConfigurationError(f"{offset_ns} ns is no offset of a clock", remedy="give nanoseconds below 10^18")
        if name not in known:
            raise ConfigurationError(f"no host {name!r} in the trace", remedy=f"it has {', '.join(sorted(known))}")
    offset = pl.col("name").replace_strict(offsets_ns, default=0, return_dtype=pl.Int64)
    offsets = model.hosts.select(host="id", offset=offset)
    by_process = model.processes.select("host", process="id").join(offsets, on="host").select("process", "offset")
    by_thread = model.threads.select("process", thread="id").join(by_process, on="process").select("thread", "offset")
    moved: dict[str, Any] = {}
    for name, frame in model.frames().items():
        schema = {**ENTITIES, **INSTANCES}[name]
        times = [column for column in schema if column.endswith("_ns") and column not in _NOT_OF_THIS_CLOCK]
        if times:
            owner, shifts = ("thread", by_thread) if "thread" in schema else ("process", by_process)
            joined = frame.join(shifts, on=owner, how="left", maintain_order="left")
            moved[name] = joined.with_columns(pl.col(times) + pl.col("offset").fill_null(0)).drop("offset")
    return dataclasses.replace(model, **moved)


NO_HOST: Final = -1
_MIGRATED, _WOKEN = 3, 4  # effects on a thread of events other than a switch, as in ``native/states.hpp``
_NOT_READ: Final = {"prev_prio", "next_prio", "prio", "orig_cpu"}

KernelColumns = dict[str, Any]
"""Columns of one kind of event, by name; columns of names are pairs of codes and their meanings."""


@dataclass(frozen=True)
class Vocabulary:
    """Codes of threads' names and of hosts with a kernel trace; `of_trace` has the code of each trace's host, or -1."""

    hosts: list[str] = field(default_factory=list)
    of_trace: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, traces: Sequence[TraceInfo]) -> Vocabulary:
        known = cls()
        for info in traces:
            name = str(info.environment.get("hostname", ""))
            is_kernel = info.environment.get("domain") == "kernel"
            if is_kernel and name not in known.hosts:
                known.hosts.append(name)
            known.of_trace.append(known.hosts.index(name) if is_kernel else NO_HOST)
        return known

    def code_names(self, column: Column) -> tuple[npt.NDArray[np.uint32], list[int]]:
        """A column's codes, and the vocabulary's code for each."""
        meaning = [self.names.setdefault(word, len(self.names)) for word in (column.dictionary or ())]
        return column.values.astype(np.uint32, copy=False), meaning


def switch_columns(trace: DecodedTrace, vocabulary: Vocabulary) -> KernelColumns:
    """Columns of ``sched_switch``; empty if the trace has none."""
    table = _table(trace, Kernel.SWITCH)
    if table is None:
        none = np.empty(0, dtype=np.int32)
        columns = {name: Column(name=name, values=none) for name in KERNEL_FIELDS[Kernel.SWITCH]}
        table = EventTable(Kernel.SWITCH, none.astype(np.int64), none, none.astype(np.uint32), columns)
    return {
        "time_ns": table.timestamp_ns,
        "trace": table.trace,
        "cpu": table.cpu_id,
        "prev_tid": table["prev_tid"].astype(np.int32, copy=False),
        "prev_state": table["prev_state"].astype(np.int64, copy=False),
        "prev_name": vocabulary.code_names(table.columns["prev_comm"]),
        "next_tid": table["next_tid"].astype(np.int32, copy=False),
        "next_name": vocabulary.code_names(table.columns["next_comm"]),
    }


def move_columns(trace: DecodedTrace, vocabulary: Vocabulary) -> list[tuple[int, KernelColumns]]:
    """Columns of the other events, with their effect; simultaneous events are in a consistent order."""
    wakes = Kernel.WAKEUP if _table(trace, Kernel.WAKEUP) else Kernel.WAKING
    kinds = (
        (Kernel.MIGRATE, _MIGRATED, "dest_cpu"),
        (wakes, _WOKEN, "target_cpu"),
        (Kernel.WAKEUP_NEW, _WOKEN, "target_cpu"),
    )
    found = []
    for event, move, cpu in kinds:
        if (table := _table(trace, event)) is not None:
            columns: KernelColumns = {
                "time_ns": table.timestamp_ns,
                "trace": table.trace,
                "tid": table["tid"].astype(np.int32, copy=False),
                "cpu": table[cpu].astype(np.int32, copy=False),
                "name": vocabulary.code_names(table.columns["comm"]),
            }
            found.append((move, columns))
    return found


def _table(trace: DecodedTrace, event: Kernel) -> EventTable | None:
    """The events in lttng-modules' layout, or ``None`` if there are none."""
    table = trace.events.get(event)
    needed = set(KERNEL_FIELDS[event]) - _NOT_READ
    return table if table is not None and len(table) and needed <= set(table.columns) else None
