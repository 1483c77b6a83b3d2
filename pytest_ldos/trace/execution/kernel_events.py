"""Kernel events as columns, and the meaning of codes for hosts and names."""

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

KernelColumns = dict[str, Any]
"""Columns of one kind of event by name; of names, pairs of codes and of what each code means."""


class Move(IntEnum):
    """Effect of an event that is no switch on a thread; numbers as in ``native/states.hpp``."""

    MIGRATED = 3
    WOKEN = 4


@dataclass(frozen=True)
class Vocabulary:
    """Meaning of codes.

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

    def code_names(self, column: Column) -> tuple[npt.NDArray[np.uint32], list[int]]:
        """Codes of a column, and for each of them that of the vocabulary."""
        words = column.dictionary or ()
        meaning = [self.names.setdefault(word, len(self.names)) for word in words]
        return column.values.astype(np.uint32, copy=False), meaning


def switch_columns(trace: DecodedTrace, vocabulary: Vocabulary) -> KernelColumns:
    """Columns of ``sched_switch``; without rows where there is none."""
    table = _table(trace, Kernel.SWITCH)
    if table is None:
        return _EMPTY_SWITCHES
    return {
        **_common(table),
        "cpu": table.cpu_id,
        "prev_tid": _int32(table["prev_tid"]),
        "prev_state": table["prev_state"].astype(np.int64, copy=False),
        "prev_name": vocabulary.code_names(table.columns["prev_comm"]),
        "next_tid": _int32(table["next_tid"]),
        "next_name": vocabulary.code_names(table.columns["next_comm"]),
    }


def move_columns(trace: DecodedTrace, vocabulary: Vocabulary) -> list[tuple[int, KernelColumns]]:
    """Columns of the other events that are there, with their effect; in a possible order of simultaneous ones."""
    wakes = Kernel.WAKEUP if _table(trace, Kernel.WAKEUP) else Kernel.WAKING
    kinds = (
        (Kernel.MIGRATE, Move.MIGRATED, "dest_cpu"),
        (wakes, Move.WOKEN, "target_cpu"),
        (Kernel.WAKEUP_NEW, Move.WOKEN, "target_cpu"),
    )
    return [
        (int(move), _moves(table, vocabulary, cpu=cpu))
        for event, move, cpu in kinds
        if (table := _table(trace, event)) is not None
    ]


def _table(trace: DecodedTrace, event: Kernel) -> EventTable | None:
    """The events in the form that lttng-modules writes, or ``None`` where there are none of that form."""
    table = trace.events.get(event)
    needed = set(KERNEL_FIELDS[event]) - _NOT_READ
    return table if table is not None and len(table) and needed <= set(table.columns) else None


def _moves(table: EventTable, vocabulary: Vocabulary, *, cpu: str) -> KernelColumns:
    return {
        **_common(table),
        "tid": _int32(table["tid"]),
        "cpu": _int32(table[cpu]),
        "name": vocabulary.code_names(table.columns["comm"]),
    }


def _common(table: EventTable) -> KernelColumns:
    return {"time_ns": table.timestamp_ns, "trace": table.trace}


def _int32(values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    return values.astype(np.int32, copy=False)


def _none(kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.empty(0, dtype=kind)


_NO_NAMES: Final = (_none(np.uint32), list[int]())
_EMPTY_SWITCHES: Final[KernelColumns] = {
    "time_ns": _none(np.int64),
    "trace": _none(np.uint32),
    "cpu": _none(np.int32),
    "prev_tid": _none(np.int32),
    "prev_state": _none(np.int64),
    "prev_name": _NO_NAMES,
    "next_tid": _none(np.int32),
    "next_name": _NO_NAMES,
}
