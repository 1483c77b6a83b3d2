"""Events of own tracepoints: pairs of begins and ends, hosts with other clocks, and fields that some events lack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.ros2 import OwnEvent
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.stats import ReadStats, TraceInfo
from pytest_ldos.trace.execution.observed import TEXT_EVENT, OwnEvents, pair_events

NAMES = ("a:begin", "a:end", TEXT_EVENT)
BEGIN, END = OwnEvent("a:begin", ("vtid",)), OwnEvent("a:end", ("vtid",))


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans())))
def test_pairs_are_those_of_a_stack(events):
    tables = [
        pl.DataFrame(
            {
                "time_ns": [at for at, each in enumerate(events) if each[1] is begins],
                "0": [each[0] for each in events if each[1] is begins],
            },
            schema={"time_ns": pl.Int64, "0": pl.Int64},
        )
        for begins in (True, False)
    ]
    opened: dict[int, list[int]] = {}
    pairs, without_begin = [], []
    for at, (key, is_begin) in enumerate(events):
        stack = opened.setdefault(key, [])
        if is_begin:
            stack.append(at)
        elif stack:
            pairs.append((stack.pop(), at))
        else:
            without_begin.append(at)
    found = pair_events(*tables)
    assert found.pairs.select("begin_ns", "end_ns").rows() == pairs
    assert sorted(found.without_end_ns.to_list()) == sorted(at for stack in opened.values() for at in stack)
    assert sorted(found.without_begin_ns.to_list()) == without_begin


def table(name, *rows, text=None, **fields):
    """Rows are host's number, thread and time; a field is ``None`` in events without it."""
    trace, tid, times = (np.array(column) for column in zip(*rows, strict=True))
    columns = {"vpid": Column(name="vpid", values=tid // 10), "vtid": Column(name="vtid", values=tid)}
    for field, values in fields.items():
        valid = np.array([value is not None for value in values])
        numbers = np.array([value or 0 for value in values])
        columns[field] = Column(name=field, values=numbers, valid=None if valid.all() else valid)
    if text is not None:
        columns["msg"] = Column(name="msg", values=np.arange(len(text)), dictionary=tuple(text))
    return EventTable(name, times, np.zeros(len(rows), np.int32), trace.astype(np.uint32), columns)


def trace_of(*tables):
    infos = tuple(TraceInfo(Path(host), {"hostname": host}, "monotonic", 0) for host in ("arm", "base"))
    return DecodedTrace(Path(), {each.name: each for each in tables}, infos, ReadStats(()))


def spans_of(own, begin=BEGIN, end=END):
    return own.spans(begin, end).pairs.select("begin_ns", "end_ns").rows()


def test_equal_thread_numbers_of_two_hosts_are_two_threads():
    trace = trace_of(table("a:begin", (0, 70, 10), (1, 70, 20)), table("a:end", (0, 70, 30), (1, 70, 40)))
    assert spans_of(OwnEvents(trace, NAMES)) == [(10, 30), (20, 40)]
    moved = OwnEvents(trace, NAMES, offsets_ns={"base": -15})
    assert spans_of(moved) == [(5, 25), (10, 30)]
    assert spans_of(moved, OwnEvent("a:begin", ("vpid",)), OwnEvent("a:end", ("vpid",))) == [(5, 25), (10, 30)]


def test_only_chosen_processes_are_observed():
    trace = trace_of(table("a:begin", (0, 70, 10), (0, 80, 20)), table("a:end", (0, 70, 30), (0, 80, 40)))
    assert spans_of(OwnEvents(trace, NAMES, pids=[8])) == [(20, 40)]


def test_event_without_a_field_has_no_partner():
    trace = trace_of(
        table("a:begin", (0, 70, 10), (0, 70, 20), id=[None, 4]), table("a:end", (0, 71, 30), (0, 71, 40), id=[None, 4])
    )
    found = OwnEvents(trace, NAMES).spans(OwnEvent("a:begin", ("id",)), OwnEvent("a:end", ("id",)))
    assert found.pairs.select("begin_ns", "end_ns").rows() == [(20, 40)]
    assert (found.without_end_ns.to_list(), found.without_begin_ns.to_list()) == ([10], [30])


def test_begin_in_cpp_and_end_in_python_are_matched():
    """The field is a number in one and text in the other; other texts are no events."""
    texts = ["a:end id=4", "a:end", "just text: id=4", "a:ending id=4"]
    trace = trace_of(
        table("a:begin", (0, 70, 10), id=[4]),
        table(TEXT_EVENT, (0, 80, 20), (0, 80, 30), (0, 80, 40), (0, 80, 50), text=texts),
    )
    own = OwnEvents(trace, NAMES)
    assert spans_of(own, OwnEvent("a:begin", ("id",)), OwnEvent("a:end", ("id",))) == [(10, 20)]
    assert own.names == {"a:begin", "a:end", "a:ending"}
    assert own.declared == {"a:begin"}
    assert own.table(OwnEvent("a:end", ("id", "vtid"))).rows() == [(20, "4", 1), (30, None, 1)]


def test_event_of_a_name_is_written_in_both_ways():
    trace = trace_of(
        table("a:cost", (0, 70, 10), (0, 70, 30), value=[1, 3]), table(TEXT_EVENT, (0, 80, 20), text=["a:cost value=2"])
    )
    values = OwnEvents(trace, ("a:cost", TEXT_EVENT)).table(OwnEvent("a:cost", ("value",)))
    assert values["time_ns"].to_list() == [10, 20, 30]
    assert values["0"].cast(pl.Float64).to_list() == [1, 2, 3]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (OwnEvent("a:cots"), "the trace has no event a:cots: did you mean 'a:cost'?"),
        (OwnEvent("ros2:tick"), "the trace has no event ros2:tick: known are: a:cost"),
        (OwnEvent("a:cost", ("valeu",)), "a:cost has no field 'valeu': did you mean 'value'?"),
        (OwnEvent("a:cost", ("vtid",)), ""),
    ],
)
def test_nearest_name_is_reported(event, reason):
    assert OwnEvents(trace_of(table("a:cost", (0, 70, 10), value=[1])), ("a:cost",)).why_unknown(event) == reason


def test_trace_without_thread_context_has_no_spans_on_threads():
    without = table("a:begin", (0, 70, 10))
    bare = EventTable(
        without.name, without.timestamp_ns, without.cpu_id, without.trace, {"id": without.columns["vpid"]}
    )
    reason = "a:begin has no context vtid: record with lttng add-context --userspace --type=vtid"
    assert OwnEvents(trace_of(bare), ("a:begin",)).why_unknown(BEGIN) == reason
