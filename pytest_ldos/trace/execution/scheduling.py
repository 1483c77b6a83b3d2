"""Thread states, context switches and migrations, from kernel events.

The kernel's thread ids are global to a host. User space's `vpid` and `vtid` belong to a PID
namespace: they equal the kernel's ids outside containers, and differ inside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.base.tracepoints import Kernel
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution.coverage import losses_of_hosts
from pytest_ldos.trace.execution.threads import Vocabulary, move_columns, switch_columns
from pytest_ldos.trace.perf.switches import with_switches

SCHEDULING_EVENTS: Final = frozenset(Kernel)
"""Events that `build_thread_states` reads, to be given to `read_trace` as `events`."""

RUNNING, RUNNABLE, BLOCKED = STATES = ("running", "runnable", "blocked")


def build_thread_states(trace: DecodedTrace) -> pl.DataFrame:
    """State of each thread over time, from kernel events.

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
    An interval that contradicts the event at its end is also left out.

    Without kernel events, perf's context switches are read (`trace.perf`). They contain no wakeups: the time that a
    woken thread waits for a CPU counts as blocked.

    Raises:
        TraceUnreadable: a file of perf's is damaged.

    Reference: lttng-modules, ``instrumentation/events/sched.h``.
    """
    trace = with_switches(trace)
    vocabulary = Vocabulary.of(trace.traces)
    found = _states.build(
        switches=switch_columns(trace, vocabulary),
        moves=move_columns(trace, vocabulary),
        host_of_trace=vocabulary.of_trace,
        losses=losses_of_hosts(trace.stats, vocabulary),
    )
    names = (None, *vocabulary.names)
    return pl.DataFrame(
        {
            "host": _words(found["host"], vocabulary.hosts),
            "tid": found["tid"],
            "name": _words(found["name"], names),
            "begin_ns": found["begin_ns"],
            "end_ns": found["end_ns"],
            "state": _words(found["state"], STATES),
            "cpu": _nullable(found["cpu"]),
            "preempted_by": _nullable(found["preempted_by"]),
            "preempted_by_name": _words(found["preempted_by_name"], names),
        }
    )


def _nullable(codes: npt.NDArray[np.int32]) -> pl.Series:
    """Numbers, null where they are negative."""
    series = pl.Series("code", codes)
    return series.to_frame().select(pl.when(pl.col("code") >= 0).then(pl.col("code"))).to_series()


def _words(codes: npt.NDArray[Any], words: Sequence[str | None]) -> pl.Series:
    kind = pl.Enum([word for word in words if word is not None])
    return pl.Series(words, dtype=kind).gather(pl.Series(codes))


def count_switches(
    states: pl.DataFrame, *, begin_ns: int, end_ns: int, tids: Collection[int] | None = None
) -> SwitchCounts:
    """Context switches and migrations of threads within a time span.

    A thread that stops running and is then blocked left its CPU voluntarily; one that is then runnable was
    preempted. It migrated if it continues to run on another CPU than before.

    Args:
        states: result of `build_thread_states`.
        tids: the kernel's ids of the threads to count; all by default.
    """
    chosen = states if tids is None else states.filter(pl.col("tid").is_in(list(tids)))
    same = pl.col("begin_ns").shift(-1).over("host", "tid") == pl.col("end_ns")
    following = pl.col("state").cast(pl.String).shift(-1).over("host", "tid")
    left = chosen.with_columns(next_state=pl.when(same).then(following)).filter(
        (pl.col("state") == RUNNING) & pl.col("end_ns").is_between(begin_ns, end_ns, closed="left")
    )
    runs = chosen.filter(pl.col("state") == RUNNING).with_columns(before=pl.col("cpu").shift(1).over("host", "tid"))
    moved = runs.filter(
        pl.col("begin_ns").is_between(begin_ns, end_ns, closed="left") & (pl.col("before") != pl.col("cpu"))
    )
    return SwitchCounts(
        voluntary=left.filter(pl.col("next_state") == BLOCKED).height,
        involuntary=left.filter(pl.col("next_state") == RUNNABLE).height,
        migrations=moved.height,
    )
