"""What each executor thread did at any time: waiting, processing or executing."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.execution.model import ExecutionModel

WAITING: Final = "waiting"
PROCESSING: Final = "processing"
EXECUTING: Final = "executing"

_COLUMNS: Final = ("executor", "thread", "begin_ns", "end_ns", "state")


def executor_states(model: ExecutionModel) -> pl.DataFrame:
    """States of all executor threads, in order, without gaps from a thread's first to its last.

    Columns: `executor`, `thread`, `begin_ns`, `end_ns`, `state`. *Waiting* for work ends when
    the thread looks for what is ready; it is *executing* from its choice to the next
    look, or while a callback runs that no choice announces (services, actions); between the
    two it is *processing*: finding and taking what is next. Threads that share an executor look one
    at a time: what passes after a callback until a thread's next wait or execution is waiting, too.

    Tracepoints: ``rclcpp_executor_*``, ``callback_start``, ``callback_end``.
    """
    waits = model.waits.select("thread", "begin_ns", "end_ns", state=pl.lit(WAITING))
    executing = _executing(model).select("thread", "begin_ns", "end_ns", state=pl.lit(EXECUTING))
    told = pl.concat([waits, executing]).drop_nulls().sort("thread", "begin_ns", "end_ns", maintain_order=True)
    told = _without_overlap(told)
    sharing = model.threads.join(model.executors, left_on="executor", right_on="id").filter(pl.col("threads") > 1)
    between = _between(told, sharing["id"])
    whole = pl.concat([told, between]).filter(pl.col("end_ns") > pl.col("begin_ns")).sort("thread", "begin_ns")
    executors = model.threads.select("executor", thread="id")
    return whole.join(executors, on="thread", maintain_order="left").select(_COLUMNS)


def busy_shares(model: ExecutionModel) -> pl.DataFrame:
    """How much of its time each executor thread spent in which state.

    Columns: `executor`, `thread`, `observed_ns`, and `waiting`, `processing`, `executing` as
    fractions of it.
    """
    spans = executor_states(model).with_columns(span=pl.col("end_ns") - pl.col("begin_ns"))
    per_thread = spans.group_by("executor", "thread", maintain_order=True).agg(
        pl.col("span").sum().alias("observed_ns"),
        *(
            (pl.col("span").filter(pl.col("state") == state).sum() / pl.col("span").sum()).alias(state)
            for state in (WAITING, PROCESSING, EXECUTING)
        ),
    )
    return per_thread.sort("executor", "thread")


def _executing(model: ExecutionModel) -> pl.DataFrame:
    """What was chosen and executed, and callbacks that ran without a choice being told."""
    runs = model.callback_runs.select("thread", "end_ns", begin_ns="start_ns")
    chosen = model.executions.select("thread", "end_ns", "begin_ns")
    return pl.concat([chosen, runs])


def _without_overlap(told: pl.DataFrame) -> pl.DataFrame:
    """Spans in order, each without what an earlier one of its thread covers already."""
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
