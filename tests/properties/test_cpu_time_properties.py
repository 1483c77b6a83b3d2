"""Whatever a kernel trace says, the parts of a span add up to it, and agree with a slow look at every nanosecond."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import STATES, build_thread_states, cpu_rivals, split_spans
from tests.builders.kernel import DEAD, EPOCH_NS, PREEMPTED, SLEEPS, WAKEUP_NEW, WAKING, KernelTrace

TIDS = st.integers(0, 4)
CPUS = st.integers(0, 2)
LONGEST = 60

switches = st.tuples(st.just("switch"), CPUS, TIDS, TIDS, st.sampled_from([0, PREEMPTED, SLEEPS, DEAD, 2]))
wakes = st.tuples(st.just("wake"), CPUS, TIDS, CPUS, st.sampled_from([None, WAKEUP_NEW, WAKING]))
moves = st.tuples(st.just("migrate"), CPUS, TIDS, CPUS, CPUS)
losses = st.tuples(st.just("lose"), CPUS)
steps = st.lists(st.tuples(st.integers(0, 3), st.one_of(switches, wakes, moves, losses)), max_size=30)
spans = st.lists(st.tuples(TIDS, st.integers(0, LONGEST), st.integers(0, LONGEST)), min_size=1, max_size=8)


def trace_of(events) -> KernelTrace:
    """Any events at all, most of them impossible together."""
    kernel, now = KernelTrace(), 0
    for pause, (what, cpu, *rest) in events:
        now += pause
        if what == "switch":
            kernel.switch(now, cpu, rest[0], rest[1], state=rest[2])
        elif what == "wake":
            kernel.wake(now, cpu, rest[0], target=rest[1], **({"event": rest[2]} if rest[2] else {}))
        elif what == "migrate":
            kernel.migrate(now, cpu, rest[0], orig=rest[1], dest=rest[2])
        else:
            kernel.lose(cpu, 1)
    return kernel


def frame_of(wanted) -> pl.DataFrame:
    rows = [("builder", tid, EPOCH_NS + min(a, b), EPOCH_NS + max(a, b)) for tid, a, b in wanted]
    return pl.DataFrame(rows, schema=["host", "tid", "begin_ns", "end_ns"], orient="row")


@given(steps, spans)
def test_parts_of_a_span_add_up(events, wanted):
    kernel = trace_of(events)
    with tempfile.TemporaryDirectory() as folder:
        kernel.streams[0]  # a kernel trace without any events is one too
        trace = read_trace(kernel.write(Path(folder)).parent)
    states, asked = build_thread_states(trace), frame_of(wanted)
    parts = split_spans(states, asked)
    assert parts.min_horizontal().min() >= 0
    assert parts.sum_horizontal().to_list() == (asked["end_ns"] - asked["begin_ns"]).to_list()
    for span, found in zip(asked.iter_rows(named=True), parts.rows(), strict=True):
        assert found == look_at_every_nanosecond(states, span)
    waited = cpu_rivals(states, asked).group_by("span").agg(pl.col("ns").sum())
    assert all(ns <= parts["runnable_ns"][span] for span, ns in waited.iter_rows())


def look_at_every_nanosecond(states: pl.DataFrame, span) -> tuple[int, ...]:
    rows = states.filter((pl.col("tid") == span["tid"]) & (pl.col("host") == span["host"])).to_dicts()
    seen: Counter = Counter()
    for moment in range(span["begin_ns"], span["end_ns"]):
        holding = [row["state"] for row in rows if row["begin_ns"] <= moment < row["end_ns"]]
        assert len(holding) <= 1, "two states at once"
        seen[holding[0] if holding else "unknown"] += 1
    return tuple(seen[state] for state in (*STATES, "unknown"))
