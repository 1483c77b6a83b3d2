"""How often threads left their CPUs, from the kernel's events."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from pytest_ldos.execution.scheduling import BLOCKED, RUNNABLE, RUNNING
from pytest_ldos.host.context_switches import SwitchCounts


def count_switches(
    states: pl.DataFrame, *, begin_ns: int, end_ns: int, tids: Collection[int] | None = None
) -> SwitchCounts:
    """Context switches and migrations of threads in a span of time.

    A thread that stops running and is blocked left its CPU by itself; one that is runnable then was preempted. It
    migrated where it goes on running on another CPU than before.

    Args:
        states: of `build_thread_states`.
        tids: the kernel's, of the threads that count; all unless given.
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
