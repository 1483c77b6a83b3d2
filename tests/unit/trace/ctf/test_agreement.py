"""The comparison with babeltrace2 detects differences."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from tests.builders.ctf import Array, Event, Float, Int, Packet, Record, Struct, Text, TraceBuilder
from tests.oracles.agreement import Comparison

EVENT = Event("app:e", 1, {"_text": Text(), "_list": Array(Int(8), 2), "_in": Struct({"_x": Float(64)})})


def as_printed(time: int, text: str) -> dict[str, Any]:
    """An event as babeltrace2 prints it."""
    payload = {"text": text, "list": [1, 2], "in": {"x": 0.5}}
    return {"name": "app:e", "ns": time, "cpu": 0, "context": {}, "payload": payload}


@pytest.fixture
def trace(tmp_path) -> DecodedTrace:
    rows = [(1, "a"), (5, "b"), (5, "c")]
    records = [Record(EVENT, time, {"_text": text, "_list": [1, 2], "_in": {"_x": 0.5}}) for time, text in rows]
    return read_trace(TraceBuilder([EVENT]).write(tmp_path, {"s_0": [Packet(records)]}))


def difference(trace: DecodedTrace, *events: dict[str, Any]) -> str:
    comparison = Comparison(trace)
    for event in events:
        comparison.add(event)
    comparison.finish()
    return comparison.difference


def test_equal_events_match_in_any_order_at_one_time(trace):
    a, b, c = as_printed(1, "a"), as_printed(5, "b"), as_printed(5, "c")
    assert difference(trace, a, b, c) == ""
    assert difference(trace, a, c, b) == ""


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ns": 2}, "ns is 1 here, 2 there"),
        ({"cpu": 3}, "cpu is 0 here, 3 there"),
        ({"name": "app:f"}, "event 'app:f' number 0 is not here"),
        ({"payload": {"text": "z"}}, "field text is 'a' here, 'z' there"),
        ({"payload": {"list": [1, 3]}}, "field list is [1, 2] here, [1, 3] there"),
        ({"payload": {"in": {"x": 0.25}}}, "field in.x is 0.5 here, 0.25 there"),
        ({"payload": {"more": 1}}, "field more is '(no column)' here, 1 there"),
        ({"context": {"vpid": 7}}, "field vpid is '(no column)' here, 7 there"),
    ],
)
def test_changed_event_is_reported(trace, change, complaint):
    assert complaint in difference(trace, {**as_printed(1, "a"), **change}, as_printed(5, "b"), as_printed(5, "c"))


def test_events_of_one_reader_are_counted(trace):
    a, b, c = as_printed(1, "a"), as_printed(5, "b"), as_printed(5, "c")
    assert difference(trace, a, b) == "3 events here, 2 there"
    assert "number 3 is not here" in difference(trace, a, b, c, as_printed(9, "d"))
