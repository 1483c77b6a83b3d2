"""Thread states from kernel events: running, waiting for a CPU, or blocked.

The kernel's thread ids are global to a host. User space's `vpid` and `vtid` belong to a PID
namespace: they equal the kernel's ids outside containers, and differ inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.tracepoints import Kernel
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.kernel_events import (
    IDLE_TID,
    NOBODY,
    Codes,
    Flags,
    Ints,
    KernelEvents,
    Kind,
    Kinds,
    Vocabulary,
    collect_kernel_events,
)
from pytest_ldos.trace.execution.kernel_losses import split_at_losses
from pytest_ldos.trace.execution.thread_keys import dense_codes
from pytest_ldos.trace.perf.switches import with_switches

SCHEDULING_EVENTS: Final = frozenset(Kernel)
"""Events that `build_thread_states` reads, to be given to `read_trace` as `events`."""

RUNNING, RUNNABLE, BLOCKED = STATES = ("running", "runnable", "blocked")
_UNKNOWN: Final = 3

Rows = npt.NDArray[np.intp]
_STATE_AFTER: Final = np.array([1, 2, _UNKNOWN, _UNKNOWN, _UNKNOWN, 0], dtype=np.int8)


def build_thread_states(trace: DecodedTrace) -> pl.DataFrame:
    """State of each thread over time, as far as kernel events show it.

    Tracepoints: ``sched_switch``, ``sched_wakeup``, ``sched_wakeup_new``, ``sched_migrate_task``;
    ``sched_waking`` only where no ``sched_wakeup`` was recorded. A thread that leaves its CPU
    with no wait bit in `prev_state` (0, or the bit above them by which lttng-modules marks a
    preemption) is runnable; any other is blocked until it is woken, or, where no wakeups were
    recorded, until it runs again.

    Columns, by host, tid and time, intervals of a thread disjoint:

    - host: name of the host the kernel ran on.
    - tid: the kernel's, global to the host; the CPUs' idle threads (0) are left out.
    - name: of the thread, as the kernel has it (15 characters).
    - begin_ns, end_ns: nanoseconds since the epoch. A thread's last state lasts to the last
      event of the host's kernel.
    - state: ``running``, ``runnable`` (waiting for a CPU) or ``blocked``.
    - cpu: the CPU it ran on or waited for; null where it was blocked.
    - preempted_by, preempted_by_name: the thread that took the CPU; null where the thread
      was not preempted, but woken.

    Before a thread's first event its state is unknown, and there is no row. A loss
    (`trace.stats`) ends the intervals of its host, and the thread's next event starts over.
    An interval that contradicts the event at its end is left out, too.

    Without kernel events, the context switches are read that perf recorded beside the trace (`trace.perf`), which has
    no wakeups: time in which a woken thread waited for a CPU counts as blocked.

    Raises:
        TraceUnreadable: a file of perf's is damaged.

    Reference: lttng-modules, ``instrumentation/events/sched.h``.
    """
    trace = with_switches(trace)
    vocabulary = Vocabulary.of(trace.traces)
    found = collect_kernel_events(trace, vocabulary)
    epochs, limits = split_at_losses(found, trace.stats, vocabulary)
    threads = dense_codes(found.host, found.tid)
    by_time = np.argsort(found.time_ns, kind="stable")
    order = by_time[np.argsort(threads[by_time], kind="stable")]
    order = order[(epochs[order] >= 0) & (found.tid[order] != IDLE_TID)]
    first = _begins_anew(threads[order], epochs[order])
    return _intervals(found, order, first, limits=limits, vocabulary=vocabulary)


def _intervals(found: KernelEvents, order: Rows, first: Flags, *, limits: Ints, vocabulary: Vocabulary) -> pl.DataFrame:
    """Intervals from the events in the given order: by thread, then by time."""
    kind, cpu = found.kind[order], found.cpu[order]
    state, switch = _states(kind, first)
    rows = np.flatnonzero(_begins_state(kind, cpu, state, first=first))
    kind, cpu, state, first = kind[rows], cpu[rows], state[rows], first[rows]
    events, sources = order[rows], order[switch[rows]]
    begins, last = found.time_ns[events], np.append(first, True)[1:]
    ends = np.where(last, limits[events], np.append(begins, 0)[1:])
    good = (state != _UNKNOWN) & (ends > begins) & (~_contradicted(kind, cpu, state) | last)
    return _frame(found, events[good], sources[good], state=state[good], end_ns=ends[good], vocabulary=vocabulary)


def _begins_anew(threads: npt.NDArray[Any], epochs: Codes) -> Flags:
    """True for the first event of a thread, and for its first after a loss."""
    first = np.ones(len(threads), dtype=np.bool_)
    first[1:] = (threads[1:] != threads[:-1]) | (epochs[1:] != epochs[:-1])
    return first


def _states(kind: Kinds, first: Flags) -> tuple[Kinds, Codes]:
    """The state after each event, and the row of the switch that determines it.

    A switch sets the state; a later wakeup makes a thread runnable unless it is running or waiting for a CPU.
    """
    rows = np.arange(len(kind), dtype=np.int32)
    begin = np.maximum.accumulate(np.where(first, rows, 0))
    is_switch = (kind != Kind.WOKEN) & (kind != Kind.MIGRATED)
    switch = np.maximum.accumulate(np.where(is_switch, rows, -1))
    woken = np.maximum.accumulate(np.where(kind == Kind.WOKEN, rows, -1))
    has_switch = switch >= begin
    switch = np.where(has_switch, switch, rows)
    state = np.where(has_switch, _STATE_AFTER[kind[switch]], _UNKNOWN).astype(np.int8)
    woke = (woken >= begin) & (~has_switch | (woken > switch)) & (state >= STATES.index(BLOCKED))
    state[woke] = STATES.index(RUNNABLE)
    return state, switch


def _begins_state(kind: Kinds, cpu: Codes, state: Kinds, *, first: Flags) -> Flags:
    """True for rows that begin an interval: a switch, another state, or another CPU to wait for."""
    changed: Flags = first | ((kind != Kind.WOKEN) & (kind != Kind.MIGRATED))
    moved = (state[1:] == STATES.index(RUNNABLE)) & (cpu[1:] != cpu[:-1])
    changed[1:] |= (state[1:] != state[:-1]) | moved
    return changed


def _contradicted(kind: Kinds, cpu: Codes, state: Kinds) -> Flags:
    """True for intervals contradicted by the switch at their end: only a running thread leaves a CPU."""
    following = np.append(kind[1:], Kind.MIGRATED)
    leaves = following <= Kind.DIED
    runs = state == STATES.index(RUNNING)
    elsewhere = runs & (np.append(cpu[1:], NOBODY) != cpu)
    wrong: Flags = (leaves & (~runs | elsewhere)) | (runs & (following == Kind.SWITCHED_IN))
    return wrong


def _frame(
    found: KernelEvents, rows: Rows, sources: Rows, *, state: Kinds, end_ns: Ints, vocabulary: Vocabulary
) -> pl.DataFrame:
    waited = state == STATES.index(RUNNABLE)
    names = list(vocabulary.names)
    return pl.DataFrame(
        {
            "host": _words(found.host[rows], vocabulary.hosts),
            "tid": found.tid[rows].astype(np.int64),
            "name": _words(found.name[rows], names),
            "begin_ns": found.time_ns[rows],
            "end_ns": end_ns,
            "state": _words(state, STATES),
            "cpu": _nullable(np.where(state == STATES.index(BLOCKED), NOBODY, found.cpu[rows])),
            "preempted_by": _nullable(np.where(waited, found.rival[sources], NOBODY)),
            "preempted_by_name": _words(np.where(waited, found.rival_name[sources], NOBODY), names),
        }
    )


def _nullable(codes: npt.NDArray[Any]) -> pl.Series:
    series = pl.Series(codes)
    return series.set(series < 0, None)


def _words(codes: npt.NDArray[Any], words: Sequence[str]) -> pl.Series:
    return pl.Series(words, dtype=pl.Enum(words)).gather(_nullable(codes).cast(pl.UInt32))
