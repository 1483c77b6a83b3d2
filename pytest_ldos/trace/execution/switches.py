"""Counts context switches and migrations of threads, from kernel events."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.trace.execution.scheduling import BLOCKED, RUNNABLE, RUNNING


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
