"""Events in the form of `tracetools_read`, against a slow look at every column of every row."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.show.export import other_tools as tracetools
from pytest_ldos.show.export.other_tools import to_tracetools_events
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Array, Enum, Event, Int, Packet, Record, Seq, Text, TraceBuilder
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

TRACES = ["talker_listener", "talker_listener_perpid", "pipeline_multi_links", "service_action", "lifecycle"]


def slowly(trace):
    events = []
    for table in trace.events.values():
        for row in range(len(table)):
            event = {"_name": table.name, "_timestamp": int(table.timestamp_ns[row]), "cpu_id": int(table.cpu_id[row])}
            events.append(event | {name: column[row] for name, column in table.columns.items()})
    return sorted(events, key=lambda event: event["_timestamp"])


def in_one_order(events):
    return sorted(events, key=lambda event: (event["_timestamp"], event["_name"], repr(event)))


@pytest.mark.parametrize("name", TRACES)
def test_every_event_of_a_recorded_trace(golden, name):
    trace = read_trace(golden(name))
    events = to_tracetools_events(trace)
    assert len(events) == len(trace)
    assert list(events) == slowly(trace)


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
def test_events_equal_those_of_babeltrace(golden):
    opinion = read_with_babeltrace(golden("pipeline_single"))
    expected = [
        {
            "_name": event["name"],
            "_timestamp": event["ns"],
            "cpu_id": event["cpu"],
            **event["context"],
            **event["payload"],
        }
        for event in opinion.events
    ]
    assert in_one_order(
        {**event} for event in to_tracetools_events(read_trace(golden("pipeline_single")))
    ) == in_one_order(expected)


def test_events_can_be_indexed_sliced_and_iterated_again(golden):
    events = to_tracetools_events(read_trace(golden("talker_listener")))
    whole = list(events)
    assert events[0] == whole[0]
    assert events[-1] == whole[-1]
    assert events[700:710] == whole[700:710]
    assert list(events) == whole
    with pytest.raises(IndexError):
        events[len(whole)]


def test_chunk_size_does_not_change_the_events(golden, monkeypatch):
    trace = read_trace(golden("talker_listener"))
    whole = list(to_tracetools_events(trace))
    for size in (1, 7, 1000):
        monkeypatch.setattr(tracetools, "_EVENTS_AT_ONCE", size)
        assert list(to_tracetools_events(trace)) == whole


def test_values_are_plain_and_fields_keep_tracetools_names(tmp_path):
    event = Event(
        "app:made",
        1,
        {
            "_vpid": Int(32),
            "_id": Int(32),
            "_level": Enum({"LOW": (0, 1), "HIGH": (2, 9)}),
            "_gid": Array(Int(8), 2),
            "__n_length": Int(8),
            "_n": Seq(Int(16, signed=True), "__n_length"),
            "_name": Text(),
        },
    )
    builder = TraceBuilder([event], context={"_vpid": Int(32), "_vtid": Int(32)}, clock_offset=1000)
    values = {"_vpid": 9, "_id": 1, "_level": 3, "_gid": [7, 8], "__n_length": 2, "_n": [-1, 5], "_name": "é"}
    records = [
        Record(event, 5, values, {"_vpid": 1, "_vtid": 2}),
        Record(event, 6, values | {"_level": 77, "__n_length": 0, "_n": []}, {"_vpid": 1, "_vtid": 2}),
    ]
    builder.write(tmp_path, {"s": [Packet(records, cpu=3)]})
    first, second = to_tracetools_events(read_trace(tmp_path))
    wanted = {
        "_timestamp": 1005,
        "cpu_id": 3,
        "vtid": 2,
        "vpid": 9,
        "level": "HIGH",
        "gid": [7, 8],
        "n": [-1, 5],
        "name": "é",
    }
    assert {name: first[name] for name in wanted} == wanted
    assert first["_name"] == "app:made"
    assert not {"id", "payload_vpid"} & set(first)
    assert (second["level"], second["n"]) == (77, [])
    assert not any(isinstance(value, np.generic) for value in first.values())


def test_absent_field_is_no_key(tmp_path):
    for number, members in enumerate(({"_a": Int(32)}, {"_b": Int(32)})):
        event = Event("app:made", 1, members)
        value = dict.fromkeys(members, number)
        TraceBuilder([event]).write(tmp_path / str(number), {"s": [Packet([Record(event, number, value)])]})
    first, second = to_tracetools_events(read_trace(tmp_path))
    assert "b" not in first
    assert "a" not in second
    assert (first["a"], second["b"]) == (0, 1)


def test_a_trace_without_events(tmp_path):
    TraceBuilder([Event("app:never", 1)]).write(tmp_path, {"s": [Packet([])]})
    assert list(to_tracetools_events(read_trace(tmp_path))) == []
