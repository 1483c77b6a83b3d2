"""A process's time, split by the process that occupied its CPU."""

from __future__ import annotations

import polars as pl
import pytest

from pytest_ldos.trace.execution.scheduling import BLOCKED, RUNNABLE, RUNNING, ProcessSplit, split_process

PLANNER, HELPER, SIMULATOR, CARGO = 10, 11, 20, 30
OWNERS = {PLANNER: 1, HELPER: 1, SIMULATOR: 2, CARGO: 3}


def split(*rows, begin=0, end=100):
    columns = {"tid": pl.Int64, "state": pl.String, "begin_ns": pl.Int64, "end_ns": pl.Int64, "cpu": pl.Int32}
    states = pl.DataFrame(rows, schema=columns, orient="row")
    return split_process(states, OWNERS, 1, begin_ns=begin, end_ns=end, own_side={1, 2})


def test_parts_of_a_span():
    found = split(
        (PLANNER, RUNNING, -50, 20, 0),
        (PLANNER, RUNNABLE, 20, 60, 0),
        (SIMULATOR, RUNNING, 20, 30, 0),
        (CARGO, RUNNING, 30, 60, 0),
        (CARGO, RUNNING, 0, 60, 1),
        (PLANNER, RUNNING, 60, 70, 0),
        (PLANNER, BLOCKED, 70, 95, None),
    )
    assert found == ProcessSplit(ran=30, own=10, others=30, blocked=25, unknown=5)


def test_a_process_runs_while_one_of_its_threads_does():
    found = split((PLANNER, RUNNABLE, 0, 100, 0), (CARGO, RUNNING, 0, 100, 0), (HELPER, RUNNING, 40, 100, 1))
    assert found == ProcessSplit(ran=60, own=0, others=40, blocked=0, unknown=0)


def test_time_counts_for_others_only_if_no_own_thread_waited():
    """One thread waits for the simulator, another for another process: without the latter, it would still have waited."""
    found = split(
        (PLANNER, RUNNABLE, 0, 100, 0),
        (SIMULATOR, RUNNING, 0, 100, 0),
        (HELPER, RUNNABLE, 0, 100, 1),
        (CARGO, RUNNING, 0, 100, 1),
    )
    assert found == ProcessSplit(ran=0, own=100, others=0, blocked=0, unknown=0)


@pytest.mark.parametrize("helper", [(), ((HELPER, BLOCKED, 0, 100, None),)])
def test_wait_without_known_rival_is_unknown(helper):
    assert split((PLANNER, RUNNABLE, 0, 100, 0), *helper) == ProcessSplit(0, 0, 0, 0, 100)


def test_unknown_threads_count_as_other_processes():
    found = split((PLANNER, RUNNABLE, 10, 50, 0), (99, RUNNING, 0, 30, 0), (SIMULATOR, BLOCKED, 0, 100, None))
    assert found == ProcessSplit(ran=0, own=0, others=20, blocked=0, unknown=80)


def test_empty_span():
    assert split(begin=5, end=5) == ProcessSplit(0, 0, 0, 0, 0)
