"""Recorded traces of real ROS 2 processes, read by us and by babeltrace2."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.summary import executor_states, without_states
from tests.builders.representatives import representatives
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

WHOLE = [
    "gz_panda_baseline",
    "discarded",
    "intra_process",
    "late_start",
    "lifecycle",
    "panda_baseline_1",
    "panda_unreachable_1",
    "pipeline_multi_links",
    "pipeline_single",
    "pipeline_single_links",
    "rclcpp_32",
    "rclcpp_32_events",
    "rclpy_talker_listener",
    "service_action",
    "talker_listener",
    "talker_listener_fastdds",
    "talker_listener_perpid",
    "two_containers",
]


def assert_equal_events(trace: DecodedTrace, expected: list[dict]) -> None:
    """Every event, every field, every timestamp, in the order of time for each name."""
    by_name: dict[str, list[dict]] = defaultdict(list)
    for event in expected:
        by_name[event["name"]].append(event)
    assert {name for name, table in trace.events.items() if len(table)} == set(by_name)
    for name, events in by_name.items():
        table = trace.events[name]
        assert table.timestamp_ns.tolist() == [event["ns"] for event in events], name
        assert table.cpu_id.tolist() == [event["cpu"] for event in events], name
        for field in events[0]["context"]:
            assert list(table.columns[field]) == [event["context"][field] for event in events], (name, field)
        for field in events[0]["payload"]:
            assert list(table.columns[field]) == [event["payload"][field] for event in events], (name, field)


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
@pytest.mark.parametrize("name", representatives(WHOLE, 5))
def test_every_event_is_what_babeltrace2_reads(golden, name):
    opinion = read_with_babeltrace(golden(name))
    assert opinion is not None
    trace = read_trace(golden(name))
    assert len(trace) == len(opinion.events)
    assert_equal_events(trace, opinion.events)


def test_lost_events_are_counted_with_their_time_gap(golden):
    trace = read_trace(golden("discarded"))
    assert len(trace) == 159_916
    assert trace.stats.discarded_events == 1039
    assert trace.stats.lost_packets == 0
    for gap in trace.stats.gaps:
        assert gap.from_ns < gap.to_ns
        assert trace.stats.gaps_within(gap.from_ns, gap.from_ns)


def test_a_cut_stream_is_read_up_to_its_last_whole_event(golden):
    trace = read_trace(golden("truncated_cut"))
    assert len(trace) == 13_678
    assert trace.stats.truncated_bytes == 1


def test_a_cut_trace_equals_babeltrace2_on_whole_packets(golden, tmp_path):
    """babeltrace2 refuses the cut trace; trimmed to whole packets, both read the same."""
    if why_unavailable():
        pytest.skip(why_unavailable())
    source = golden("truncated_cut")
    trimmed = tmp_path / "trimmed"
    stream_events = {}
    for stream in read_trace(source).stats.streams:
        data = stream.path.read_bytes()
        target = trimmed / stream.path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data[: len(data) // 4096 * 4096] if stream.truncated_bytes == 0 else whole_packets(data))
        stream_events[stream.path.name] = stream.events
    metadata = next(source.rglob("metadata"))
    (trimmed / metadata.relative_to(source)).write_bytes(metadata.read_bytes())
    opinion = read_with_babeltrace(trimmed)
    assert opinion is not None
    trace = read_trace(trimmed)
    assert_equal_events(trace, opinion.events)
    assert len(trace) <= sum(stream_events.values())


def whole_packets(data: bytes) -> bytes:
    """A UST stream without the packet it is cut in (packet size at byte 56 of its header)."""
    at = 0
    while at + 64 <= len(data):
        size = int.from_bytes(data[at + 56 : at + 64], "little") // 8
        if at + size > len(data):
            break
        at += size
    return data[:at]


def test_a_copy_of_a_running_session_has_its_finished_packets(golden):
    trace = read_trace(golden("truncated_live_meta"))
    assert len(trace) == 10_400
    assert trace.stats.truncated_bytes == 0


def test_per_pid_buffers_are_merged_and_keep_their_process(golden):
    trace = read_trace(golden("talker_listener_perpid"))
    assert len(trace.traces) == 3
    published = trace.events["ros2:rmw_publish"]
    assert np.all(np.diff(published.timestamp_ns) >= 0)
    for index, info in enumerate(trace.traces):
        pids = set(published["vpid"][published.trace == index].tolist())
        assert len(pids) <= 1
        assert info.environment["domain"] == "ust"


def test_only_requested_events_are_read(golden):
    trace = read_trace(golden("panda_baseline_1"), events=["ros2:rmw_take", "ros2:callback_start"], fields=["taken"])
    assert set(trace.events) == {"ros2:rmw_take", "ros2:callback_start"}
    assert set(trace.events["ros2:rmw_take"].columns) == {"taken"}
    assert trace.events["ros2:callback_start"].columns == {}
    assert len(trace.events["ros2:rmw_take"]) == 11_403


def test_window_excludes_events_outside(golden):
    whole = read_trace(golden("pipeline_single")).events["ros2:rmw_publish"].timestamp_ns
    first, last = int(whole[len(whole) // 4]), int(whole[len(whole) // 2])
    part = read_trace(golden("pipeline_single"), window=(first, last)).events["ros2:rmw_publish"].timestamp_ns
    assert part.tolist() == [time for time in whole.tolist() if first <= time <= last]


def test_result_is_the_same_with_any_number_of_threads(golden):
    one, many = (read_trace(golden("panda_baseline_1"), threads=threads) for threads in (1, 4))
    for name, table in one.events.items():
        assert np.array_equal(table.timestamp_ns, many.events[name].timestamp_ns)


def test_frames_hold_what_the_columns_do(golden):
    table = read_trace(golden("talker_listener")).events["ros2:rcl_publisher_init"]
    frame = table.frame()
    assert frame.height == len(table)
    assert frame["topic_name"].cast(str).to_list() == list(table.columns["topic_name"])
    assert frame["timestamp_ns"].to_list() == table.timestamp_ns.tolist()


def test_an_empty_metadata_file_is_refused(golden, tmp_path):
    (tmp_path / "metadata").write_bytes(b"")
    with pytest.raises(TraceUnreadable, match="empty"):
        read_trace(tmp_path)


def test_containers_with_equal_pids_are_distinguished(golden):
    """Two containers, each with a talker as its process 1, distinguished by the context ``pid_ns``."""
    model = build_execution(read_trace(golden("two_containers")))
    assert model.processes["pid"].to_list() == [1, 1]
    assert model.threads.filter(tid=1)["process"].to_list() == [0, 1]
    assert sorted(model.nodes.select("process", "name").rows()) == [(0, "/talker"), (1, "/talker")]
    assert sorted(model.executors["process"].to_list()) == [0, 1]


@pytest.mark.parametrize(("name", "silent"), [("rclcpp_32", 0), ("rclcpp_32_events", 2)])
def test_service_calls_and_executors_of_the_newest_rclcpp(golden, name, silent):
    """Each call is seen from the request to its response; the events executor reports no states."""
    model = build_execution(read_trace(golden(name)))
    calls = build_flow(model).calls
    assert len(calls) > 50
    assert calls.null_count().sum_horizontal().item() == 0
    callback = model.callback_runs["callback"].gather(calls["callback_run"])
    service = model.callbacks["service"].gather(callback)
    assert set(model.services["name"].gather(service)) == set(calls["name"]) == {"/press"}
    at = model.requests["time_ns"]
    for first, second in pairwise(("send_request", "take_request", "send_response", "take_response")):
        assert (at.gather(calls[first]) < at.gather(calls[second])).all()
    assert without_states(model) == silent
    assert (len(executor_states(model)) > 0) is (silent == 0)
