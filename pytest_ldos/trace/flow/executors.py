"""State of each executor thread over time: waiting, processing or executing."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import ids_of
from pytest_ldos.trace.execution.model import ExecutionModel

WAITING: Final = "waiting"
PROCESSING: Final = "processing"
EXECUTING: Final = "executing"

_MOST_ROWS: Final = 2_000_000
"""Waits, executions and runs of threads that are looked at together."""

_COLUMNS: Final = ("executor", "thread", "begin_ns", "end_ns", "state")


def executor_states(model: ExecutionModel) -> pl.DataFrame:
    """States of all executor threads, in order, without gaps between a thread's first and last state.

    Columns: `executor`, `thread`, `begin_ns`, `end_ns`, `state`. A thread is *waiting* for work until it
    looks for ready entities. It is *executing* from its choice of an executable until it looks again,
    or while a callback runs that no choice announces (services, actions). Between the two it is
    *processing*: finding and taking the next executable. Threads that share an executor look one
    at a time, so the time from the end of a callback to the thread's next wait or execution counts as
    waiting, too. A thread that reports neither waits nor choices, as those of rclcpp's events executor, has no
    states (see `without_states`).

    Tracepoints: ``rclcpp_executor_*``, ``callback_start``, ``callback_end``.
    """
    return _states(model, model.waits, model.executions, model.callback_runs)


def _states(model: ExecutionModel, waits: pl.DataFrame, executions: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """States of the threads of some waits, executions and runs; all of each thread, or none."""
    waits = waits.select("thread", "begin_ns", "end_ns", state=pl.lit(WAITING))
    executing = _executing(executions, runs).select("thread", "begin_ns", "end_ns", state=pl.lit(EXECUTING))
    reporting = pl.concat([waits["thread"], executions["thread"]]).unique()
    executing = executing.filter(pl.col("thread").is_in(reporting.implode()))
    told = pl.concat([waits, executing]).drop_nulls().sort("thread", "begin_ns", "end_ns", maintain_order=True)
    told = _without_overlap(told)
    sharing = model.threads.join(model.executors, left_on="executor", right_on="id").filter(pl.col("threads") > 1)
    between = _between(told, sharing["id"])
    whole = pl.concat([told, between]).filter(pl.col("end_ns") > pl.col("begin_ns")).sort("thread", "begin_ns")
    executors = model.threads.select("executor", thread="id")
    return whole.join(executors, on="thread", maintain_order="left").select(_COLUMNS)


def without_states(model: ExecutionModel) -> int:
    """Number of threads that ran callbacks and reported neither waits nor choices of an executor."""
    silent = model.callback_runs.select("thread").unique()
    for told in (model.waits, model.executions):
        silent = silent.join(told.select("thread").unique(), on="thread", how="anti")
    return len(silent.drop_nulls())


def busy_shares(model: ExecutionModel) -> pl.DataFrame:
    """Fraction of its time that each executor thread spent in each state.

    Columns: `executor`, `thread`, `observed_ns`, and `waiting`, `processing`, `executing` as
    fractions of it.
    """
    parts = [_shares(model, threads) for threads in _batches(model)]
    return pl.concat(parts).sort("executor", "thread")


def _batches(model: ExecutionModel) -> list[pl.Series]:
    """Threads that are looked at together: as many as have `_MOST_ROWS`, so that long traces fit into memory."""
    tables = (model.waits, model.executions, model.callback_runs)
    rows = sum(np.bincount(ids_of(table, "thread"), minlength=len(model.threads)) for table in tables)
    batch = np.cumsum(rows) // _MOST_ROWS
    threads = pl.DataFrame({"thread": model.threads["id"], "batch": batch})
    return [part["thread"] for part in threads.partition_by("batch", maintain_order=True)] or [model.threads["id"]]


def _shares(model: ExecutionModel, threads: pl.Series) -> pl.DataFrame:
    """Busy shares of some threads."""
    own = pl.col("thread").is_between(threads.min(), threads.max())
    tables = (model.waits, model.executions, model.callback_runs)
    states = _states(model, *(tables if len(threads) == len(model.threads) else (each.filter(own) for each in tables)))
    spans = states.with_columns(span=pl.col("end_ns") - pl.col("begin_ns"))
    return spans.group_by("executor", "thread", maintain_order=True).agg(
        pl.col("span").sum().alias("observed_ns"),
        *(
            (pl.col("span").filter(pl.col("state") == state).sum() / pl.col("span").sum()).alias(state)
            for state in (WAITING, PROCESSING, EXECUTING)
        ),
    )


def _executing(executions: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Spans of chosen executables, and of callbacks that ran without a reported choice."""
    ran = runs.select("thread", "end_ns", begin_ns="start_ns")
    return pl.concat([executions.select("thread", "end_ns", "begin_ns"), ran])


def _without_overlap(told: pl.DataFrame) -> pl.DataFrame:
    """Spans in order, each without the part that an earlier span of its thread covers."""
    covered = pl.col("end_ns").cum_max().shift(1).over("thread").fill_null(np.iinfo(np.int64).min)
    return told.with_columns(begin_ns=pl.max_horizontal("begin_ns", covered)).filter(
        pl.col("end_ns") >= pl.col("begin_ns")
    )


def _between(told: pl.DataFrame, sharing: pl.Series) -> pl.DataFrame:
    following = pl.col("begin_ns").shift(-1).over("thread")
    queueing = pl.col("thread").is_in(sharing.implode()) & (pl.col("state") == EXECUTING)
    state = pl.when(queueing).then(pl.lit(WAITING)).otherwise(pl.lit(PROCESSING))
    gaps = told.select("thread", begin_ns="end_ns", end_ns=following, state=state)
    return gaps.filter(pl.col("end_ns") > pl.col("begin_ns"))
