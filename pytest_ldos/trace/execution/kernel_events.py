"""Kernel events, ordered by the thread that they concern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.tracepoints import KERNEL_FIELDS, Kernel
from pytest_ldos.trace.ctf.origin import TraceInfo
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.tables import Column, EventTable

NOBODY: Final = -1
_NOT_READ: Final = {"prev_prio", "next_prio", "prio", "orig_cpu"}
_WAIT_BITS: Final = 0xFF
_DEAD_BITS: Final = 0x30
IDLE_TID: Final = 0

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Kinds = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]

_EMPTY: Final = {"host": np.int16, "time_ns": np.int64, "kind": np.int8}


class Kind(IntEnum):
    """Effect of an event on a thread; events that take a thread off its CPU come first."""

    PREEMPTED = 0
    WENT_TO_SLEEP = 1
    DIED = 2
    MIGRATED = 3
    WOKEN = 4
    SWITCHED_IN = 5


@dataclass(frozen=True)
class KernelEvents:
    """Events and the threads that they concern; all arrays have the same length.

    `name` is a code; `rival` is the thread that took the CPU from a preempted one.
    """

    host: npt.NDArray[np.int16]
    tid: Codes
    time_ns: Ints
    kind: Kinds
    cpu: Codes
    name: Codes
    rival: Codes
    rival_name: Codes

    def take(self, rows: npt.NDArray[np.integer] | Flags) -> KernelEvents:
        return KernelEvents(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True)
class Vocabulary:
    """Meaning of the codes in `KernelEvents`.

    Attributes:
        hosts: names of the hosts with a kernel trace.
        of_trace: for each trace of the `DecodedTrace`, the code of its kernel's host, or -1.
        names: of threads, with their codes.
    """

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
            known.of_trace.append(known.hosts.index(name) if is_kernel else NOBODY)
        return known

    def code_names(self, column: Column) -> Codes:
        words = column.dictionary or ()
        codes = [self.names.setdefault(word, len(self.names)) for word in words]
        return np.array([*codes, NOBODY], dtype=np.int32)[column.values]

    def hosts_of(self, table: EventTable) -> npt.NDArray[np.int16]:
        return np.array(self.of_trace, dtype=np.int16)[table.trace]


def collect_kernel_events(trace: DecodedTrace, vocabulary: Vocabulary) -> KernelEvents:
    """All events, arranged so that a stable sort by time keeps simultaneous events in a possible order."""
    parts: list[KernelEvents] = []
    switches = _table(trace, Kernel.SWITCH)
    wakes = Kernel.WAKEUP if _table(trace, Kernel.WAKEUP) else Kernel.WAKING
    if switches is not None:
        at_once, out = _left_at_once(switches), _switched_out(switches, vocabulary)
        into = _about(switches, vocabulary, prefix="next_", kind=Kind.SWITCHED_IN, cpu=switches.cpu_id)
        parts = [out.take(~at_once), into, out.take(at_once)] if at_once.any() else [out, into]
    moves = _moves(trace, Kernel.MIGRATE, vocabulary, kind=Kind.MIGRATED, cpu="dest_cpu")
    for name in (wakes, Kernel.WAKEUP_NEW):
        moves += _moves(trace, name, vocabulary, kind=Kind.WOKEN, cpu="target_cpu")
    parts[1:1] = moves
    parts = [part if np.all(part.host >= 0) else part.take(part.host >= 0) for part in parts]
    return KernelEvents(*(_joined(parts, name) for name in KernelEvents.__dataclass_fields__))


def _table(trace: DecodedTrace, event: Kernel) -> EventTable | None:
    """The events in the form that lttng-modules writes, or ``None`` where there are none of that form."""
    table = trace.events.get(event)
    needed = set(KERNEL_FIELDS[event]) - _NOT_READ
    return table if table is not None and len(table) and needed <= set(table.columns) else None


def _joined(parts: list[KernelEvents], name: str) -> npt.NDArray[Any]:
    columns = [getattr(part, name) for part in parts]
    return np.concatenate(columns) if columns else np.empty(0, dtype=_EMPTY.get(name, np.int32))


def _switched_out(table: EventTable, vocabulary: Vocabulary) -> KernelEvents:
    state = table["prev_state"].astype(np.int64)
    waits = state & _WAIT_BITS
    kind = np.where(waits == 0, Kind.PREEMPTED, np.where(waits & _DEAD_BITS, Kind.DIED, Kind.WENT_TO_SLEEP))
    rival = table["next_tid"].astype(np.int32)
    preempted = (kind == Kind.PREEMPTED) & (rival != IDLE_TID)
    return KernelEvents(
        host=vocabulary.hosts_of(table),
        tid=table["prev_tid"].astype(np.int32),
        time_ns=table.timestamp_ns,
        kind=kind.astype(np.int8),
        cpu=table.cpu_id,
        name=vocabulary.code_names(table.columns["prev_comm"]),
        rival=np.where(preempted, rival, NOBODY).astype(np.int32),
        rival_name=np.where(preempted, vocabulary.code_names(table.columns["next_comm"]), NOBODY).astype(np.int32),
    )


def _left_at_once(table: EventTable) -> Flags:
    """True if a switch removes the thread that the CPU's last switch brought, within one clock tick."""
    found = np.zeros(len(table), dtype=np.bool_)
    if _has_ties(table):
        order = np.lexsort((np.arange(len(table)), table.cpu_id, table.trace))
        here, then = order[:-1], order[1:]
        same_cpu = (table.cpu_id[here] == table.cpu_id[then]) & (table.trace[here] == table.trace[then])
        same_thread = table["next_tid"][here] == table["prev_tid"][then]
        found[then] = same_cpu & same_thread & (table.timestamp_ns[here] == table.timestamp_ns[then])
    return found


def _has_ties(table: EventTable) -> bool:
    return bool(np.any(table.timestamp_ns[1:] == table.timestamp_ns[:-1]))


def _moves(trace: DecodedTrace, event: Kernel, vocabulary: Vocabulary, *, kind: Kind, cpu: str) -> list[KernelEvents]:
    table = _table(trace, event)
    return [] if table is None else [_about(table, vocabulary, prefix="", kind=kind, cpu=table[cpu])]


def _about(
    table: EventTable,
    vocabulary: Vocabulary,
    *,
    prefix: str,
    kind: Kind,
    cpu: npt.NDArray[Any],
) -> KernelEvents:
    nobody = np.full(len(table), NOBODY, dtype=np.int32)
    return KernelEvents(
        host=vocabulary.hosts_of(table),
        tid=table[f"{prefix}tid"].astype(np.int32),
        time_ns=table.timestamp_ns,
        kind=np.full(len(table), kind, dtype=np.int8),
        cpu=cpu.astype(np.int32),
        name=vocabulary.code_names(table.columns[f"{prefix}comm"]),
        rival=nobody,
        rival_name=nobody,
    )
