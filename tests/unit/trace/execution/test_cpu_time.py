"""Spans of threads, split by thread state."""

from __future__ import annotations

import polars as pl
import pytest

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.scheduling import build_thread_states, cpu_rivals, spans_of_runs, split_spans
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.kernel import EPOCH_NS, PREEMPTED, THREADS, KernelTrace, write_three_threads

A, B, C = THREADS


@pytest.fixture
def states(tmp_path):
    write_three_threads(tmp_path)
    return build_thread_states(read_trace(tmp_path))


def spans(*rows, host="builder"):
    return pl.DataFrame(
        [(host, tid, EPOCH_NS + begin, EPOCH_NS + end) for tid, begin, end in rows],
        schema=["host", "tid", "begin_ns", "end_ns"],
        orient="row",
    )


@pytest.mark.parametrize(
    ("span", "running", "runnable", "blocked", "unknown"),
    [
        ((A, 10, 70), 35, 15, 10, 0),
        ((A, 15, 22), 5, 2, 0, 0),
        ((A, 45, 52), 0, 2, 5, 0),
        ((A, 0, 12), 2, 0, 0, 10),
        ((A, 75, 100), 0, 0, 5, 20),
        ((A, 33, 33), 0, 0, 0, 0),
        ((A, 90, 95), 0, 0, 0, 5),
        ((A, 1, 2), 0, 0, 0, 1),
        ((999, 10, 70), 0, 0, 0, 60),
    ],
)
def test_parts_sum_to_the_span(states, span, running, runnable, blocked, unknown):
    assert split_spans(states, spans(span)).row(0) == (running, runnable, blocked, unknown)


def test_spans_may_be_in_any_order_and_overlap(states):
    found = split_spans(states, spans((A, 45, 52), (B, 20, 30), (A, 10, 70), (C, 5, 55)))
    assert found["running_ns"].to_list() == [0, 10, 35, 50]


def test_another_host_has_other_threads(states):
    assert split_spans(states, spans((A, 10, 70), host="elsewhere"))["unknown_ns"].to_list() == [60]


def test_a_span_that_ends_before_it_begins_is_refused(states):
    with pytest.raises(ValueError, match="span 1 ends before it begins"):
        split_spans(states, spans((A, 1, 2), (A, 3, 2)))
    with pytest.raises(ValueError, match="span 0"):
        cpu_rivals(states, spans((A, 3, 2)))


def test_without_kernel_events_all_time_is_unknown(states):
    nothing = states.clear()
    assert split_spans(nothing, spans((A, 10, 70)))["unknown_ns"].to_list() == [60]
    assert cpu_rivals(nothing, spans((A, 10, 70))).is_empty()


def test_rivals_ran_while_a_thread_waited_for_the_cpu(states):
    found = cpu_rivals(states, spans((A, 10, 70), (A, 25, 45), (B, 20, 30), (A, 52, 60)))
    assert found.rows() == [
        (0, B, "thread-102", 10),
        (0, C, "thread-103", 5),
        (1, B, "thread-102", 5),
        (3, C, "thread-103", 3),
    ]


def test_rivals_are_ordered_by_time(tmp_path):
    kernel = KernelTrace()
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=PREEMPTED)
    kernel.switch(25, 0, B, C)
    kernel.switch(45, 0, C, 0)
    kernel.switch(47, 0, 0, B)
    kernel.switch(50, 0, B, A)
    kernel.switch(60, 0, A, 0)
    kernel.write(tmp_path)
    states = build_thread_states(read_trace(tmp_path))
    found = cpu_rivals(states, spans((A, 0, 100)))
    assert found.rows() == [(0, C, "thread-103", 20), (0, B, "thread-102", 8)]
    assert split_spans(states, spans((A, 0, 100)))["runnable_ns"].to_list() == [30]


def test_callback_is_split_into_running_and_waiting(tmp_path):
    start = Event("ros2:callback_start", 1, {"_callback": Int(64), "_is_intra_process": Int(32)})
    end = Event("ros2:callback_end", 2, {"_callback": Int(64)})
    context = {"_vpid": A, "_vtid": A}
    records = [
        Record(start, 12, {"_callback": 1, "_is_intra_process": 0}, context),
        Record(end, 36, {"_callback": 1}, context),
        Record(start, 38, {"_callback": 1, "_is_intra_process": 0}, context),
    ]
    builder = TraceBuilder([start, end], context=dict.fromkeys(context, Int(32)), clock_offset=EPOCH_NS)
    builder.write(tmp_path / "ust", {"s": [Packet(records)]})
    kernel = KernelTrace()
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=PREEMPTED)
    kernel.switch(30, 0, B, A)
    kernel.switch(50, 0, A, 0)
    kernel.write(tmp_path)
    trace = read_trace(tmp_path)
    runs, found = spans_of_runs(build_execution(trace)), build_thread_states(trace)
    assert runs["callback_run"].to_list() == [0]
    assert split_spans(found, runs).row(0) == (14, 10, 0, 0)
    assert cpu_rivals(found, runs).rows() == [(0, B, "thread-102", 10)]
