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
"""Chunks are divided by this: states take more memory than rows of a table."""

_COLUMNS: Final = ("executor", "thread", "begin_ns", "end_ns", "state")


def executor_states(model: ExecutionModel) -> pl.DataFrame:
    """States of all executor threads, in order, without gaps between a thread's first and last state.

    A thread has no state while events of its process may be missing.

    Columns: `executor`, `thread`, `begin_ns`, `end_ns`, `state`. A thread is *waiting* for work until it
    looks for ready entities. It is *executing* from its choice of an executable until it looks again,
    or while a callback runs without a recorded choice (services, actions). In between it is
    *processing*: finding and taking the next executable. Threads that share an executor look one
    at a time, so the time from the end of a callback to the thread's next wait or execution counts as
    waiting, too. A thread without recorded waits and choices, such as one of rclcpp's events executor, has no
    states (see `without_states`).

    Tracepoints: ``rclcpp_executor_*``, ``callback_start``, ``callback_end``.
    """
    return _states(model, _recorded(model.waits, model.executions, model.callback_runs, _NOTHING, _reporting(model)))


def _states(model: ExecutionModel, recorded: pl.DataFrame) -> pl.DataFrame:
    """States of recorded spans, and of the gaps between a thread's spans."""
    sharing = model.threads.join(model.executors, left_on="executor", right_on="id").filter(pl.col("threads") > 1)
    between = _between(recorded, sharing["id"])
    whole = pl.concat([_known(model, recorded), _known(model, between, by_ends=False)])
    whole = whole.filter(pl.col("end_ns") > pl.col("begin_ns")).sort("thread", "begin_ns")
    executors = model.threads.select("executor", thread="id")
    return whole.join(executors, on="thread", maintain_order="left").select(_COLUMNS)


def _known(model: ExecutionModel, states: pl.DataFrame, *, by_ends: bool = True) -> pl.DataFrame:
    """States while the process is whole.

    Args:
        by_ends: False for states inferred from the absence of events.
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


def _recorded(
    waits: pl.DataFrame, executions: pl.DataFrame, runs: pl.DataFrame, last: pl.DataFrame, reporting: pl.Series
) -> pl.DataFrame:
    """Recorded spans in order, without the parts that earlier spans of their thread cover.

    Args:
        last: the last span of each thread before these.
        reporting: see `_reporting`; other threads have no states.
    """
    waits = waits.select("thread", "begin_ns", "end_ns", state=pl.lit(WAITING))
    runs = runs.filter(pl.col("thread").is_in(reporting.implode()))
    executing = _executing(executions, runs).select("thread", "begin_ns", "end_ns", state=pl.lit(EXECUTING))
    recorded = pl.concat([waits, executing]).drop_nulls().sort("thread", "begin_ns", "end_ns", maintain_order=True)
    return _without_overlap(pl.concat([last, recorded]).sort("thread", maintain_order=True) if len(last) else recorded)


def _reporting(model: ExecutionModel) -> pl.Series:
    """Threads with recorded waits or choices of an executor."""
    return (
        pl.concat([recorded["thread"].unique() for recorded in (model.waits, model.executions)]).drop_nulls().unique()
    )


def without_states(model: ExecutionModel) -> int:
    """Number of threads with callbacks but without recorded waits and choices of an executor."""
    ran = model.callback_runs["thread"].drop_nulls().unique()
    return len(ran.filter(~ran.is_in(_reporting(model).implode())))


def states_in_windows(model: ExecutionModel) -> Iterator[pl.DataFrame]:
    """The rows of `executor_states`, window by window; a state that crosses a border is split."""
    last, reporting = _NOTHING, _reporting(model)
    for waits, executions, runs in _windows(model):
        recorded = _recorded(waits, executions, runs, last, reporting)
        yield _states(model, recorded)
        ended = recorded.group_by("thread", maintain_order=True).last()
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
    """Waits, executions and runs, in windows of their begin."""
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
    """Spans of chosen executables, and of callbacks without a recorded choice."""
    ran = runs.select("thread", "end_ns", begin_ns="start_ns")
    return pl.concat([executions.select("thread", "end_ns", "begin_ns"), ran])


def _without_overlap(recorded: pl.DataFrame) -> pl.DataFrame:
    """Spans in order, without the parts that earlier spans of their thread cover."""
    covered = pl.col("end_ns").cum_max().shift(1).over("thread").fill_null(np.iinfo(np.int64).min)
    return recorded.with_columns(begin_ns=pl.max_horizontal("begin_ns", covered)).filter(
        pl.col("end_ns") >= pl.col("begin_ns")
    )


def _between(recorded: pl.DataFrame, sharing: pl.Series) -> pl.DataFrame:
    following = pl.col("begin_ns").shift(-1).over("thread")
    queueing = pl.col("thread").is_in(sharing.implode()) & (pl.col("state") == EXECUTING)
    state = pl.when(queueing).then(pl.lit(WAITING)).otherwise(pl.lit(PROCESSING))
    gaps = recorded.select("thread", begin_ns="end_ns", end_ns=following, state=state)
    return gaps.filter(pl.col("end_ns") > pl.col("begin_ns"))
