"""State of each executor thread over time: waiting, processing or executing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.columns import NEVER, ids_of, pick, rows_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel

WAITING: Final = "waiting"
PROCESSING: Final = "processing"
EXECUTING: Final = "executing"

_PARTS: Final = 4
"""Parts of a chunk of rows that are looked at together: states take more memory than rows of a table."""

_COLUMNS: Final = ("executor", "thread", "begin_ns", "end_ns", "state")


def executor_states(model: ExecutionModel) -> pl.DataFrame:
    """States of all executor threads, in order, without gaps between a thread's first and last state.

    Where events of its process may be missing, a thread has no state.

    Columns: `executor`, `thread`, `begin_ns`, `end_ns`, `state`. A thread is *waiting* for work until it
    looks for ready entities. It is *executing* from its choice of an executable until it looks again,
    or while a callback runs that no choice announces (services, actions). Between the two it is
    *processing*: finding and taking the next executable. Threads that share an executor look one
    at a time, so the time from the end of a callback to the thread's next wait or execution counts as
    waiting, too. A thread that reports neither waits nor choices, as those of rclcpp's events executor, has no
    states (see `without_states`).

    Tracepoints: ``rclcpp_executor_*``, ``callback_start``, ``callback_end``.
    """
    return _states(model, _told(model.waits, model.executions, model.callback_runs, _NOTHING, _reporting(model)))


def _states(model: ExecutionModel, told: pl.DataFrame) -> pl.DataFrame:
    """States of reported spans, and of the time between those of a thread."""
    sharing = model.threads.join(model.executors, left_on="executor", right_on="id").filter(pl.col("threads") > 1)
    between = _between(told, sharing["id"])
    whole = pl.concat([_known(model, told), _known(model, between, by_ends=False)])
    whole = whole.filter(pl.col("end_ns") > pl.col("begin_ns")).sort("thread", "begin_ns")
    executors = model.threads.select("executor", thread="id")
    return whole.join(executors, on="thread", maintain_order="left").select(_COLUMNS)


def _known(model: ExecutionModel, states: pl.DataFrame, *, by_ends: bool = True) -> pl.DataFrame:
    """States without the parts in which events of their process may be missing.

    Args:
        by_ends: False for states that are known only if no event of theirs is missing.
    """
    if not model.coverage:
        return states
    process = pick(ids_of(model.threads, "process"), ids_of(states, "thread"), -1)
    begin_ns, end_ns = times_of(states, "begin_ns"), times_of(states, "end_ns")
    if not by_ends:
        return states.filter(pl.Series(model.coverage.are_whole(process, begin_ns, end_ns)))
    row, begin_ns, end_ns = model.coverage.known_parts(process, begin_ns, end_ns)
    return states[row].with_columns(begin_ns=begin_ns, end_ns=end_ns)


_NOTHING: Final = pl.DataFrame(
    schema={"thread": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "state": pl.String}
)


def _told(
    waits: pl.DataFrame, executions: pl.DataFrame, runs: pl.DataFrame, last: pl.DataFrame, reporting: pl.Series
) -> pl.DataFrame:
    """Reported spans in order, each without the part that an earlier one of its thread covers.

    Args:
        last: the last span of each thread before these.
        reporting: see `_reporting`; other threads have no states.
    """
    waits = waits.select("thread", "begin_ns", "end_ns", state=pl.lit(WAITING))
    runs = runs.filter(pl.col("thread").is_in(reporting.implode()))
    executing = _executing(executions, runs).select("thread", "begin_ns", "end_ns", state=pl.lit(EXECUTING))
    told = pl.concat([waits, executing]).drop_nulls().sort("thread", "begin_ns", "end_ns", maintain_order=True)
    return _without_overlap(pl.concat([last, told]).sort("thread", maintain_order=True) if len(last) else told)


def _reporting(model: ExecutionModel) -> pl.Series:
    """Threads that report waits or choices of an executor."""
    return pl.concat([told["thread"].unique() for told in (model.waits, model.executions)]).drop_nulls().unique()


def without_states(model: ExecutionModel) -> int:
    """Number of threads that ran callbacks and reported neither waits nor choices of an executor."""
    ran = model.callback_runs["thread"].drop_nulls().unique()
    return len(ran.filter(~ran.is_in(_reporting(model).implode())))


def states_in_windows(model: ExecutionModel) -> Iterator[pl.DataFrame]:
    """The rows of `executor_states`, in windows of time; one that lasts beyond a window is in parts."""
    last, reporting = _NOTHING, _reporting(model)
    for waits, executions, runs in _windows(model):
        told = _told(waits, executions, runs, last, reporting)
        yield _states(model, told)
        ended = told.group_by("thread", maintain_order=True).last()
        last = ended.with_columns(begin_ns="end_ns").select(_NOTHING.columns)


def busy_shares(model: ExecutionModel) -> pl.DataFrame:
    """Fraction of its time that each executor thread spent in each state.

    Columns: `executor`, `thread`, `observed_ns`, and `waiting`, `processing`, `executing` as
    fractions of it.
    """
    parts = [_totals(_states(model, _NOTHING)), *map(_totals, states_in_windows(model))]
    whole = pl.concat(parts).group_by("executor", "thread").agg(pl.all().sum())
    shares = ((pl.col(state) / pl.col("observed_ns")).alias(state) for state in STATES)
    return whole.with_columns(*shares).sort("executor", "thread")


STATES: Final = (WAITING, PROCESSING, EXECUTING)


def _totals(states: pl.DataFrame) -> pl.DataFrame:
    """Time of each thread in each state."""
    spans = states.with_columns(span=pl.col("end_ns") - pl.col("begin_ns"))
    return spans.group_by("executor", "thread").agg(
        pl.col("span").sum().alias("observed_ns"),
        *(pl.col("span").filter(pl.col("state") == state).sum().alias(state) for state in STATES),
    )


def _windows(model: ExecutionModel) -> Iterator[list[pl.DataFrame]]:
    """Waits, executions and runs, by the time of their begin."""
    tables = ((model.waits, "begin_ns"), (model.executions, "begin_ns"), (model.callback_runs, "start_ns"))
    step = max(mapped.CHUNK_ROWS // _PARTS, 1)
    borders = sorted({int(time) for table, begin in tables for time in table[begin].gather_every(step, step)})
    if not borders:
        yield [table for table, _ in tables]
        return
    for first_ns, until_ns in pairwise([NEVER, *borders, np.iinfo(np.int64).max]):
        yield [_beginning(table, begin, int(first_ns), int(until_ns)) for table, begin in tables]


def _beginning(table: pl.DataFrame, begin: str, first_ns: int, until_ns: int) -> pl.DataFrame:
    """Rows that begin in a window."""
    if table[begin].is_sorted():
        return rows_of(table, slice(*np.searchsorted(table[begin].to_numpy(), [first_ns, until_ns]).tolist()))
    return table.filter(pl.col(begin).is_between(first_ns, until_ns, closed="left"))


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
