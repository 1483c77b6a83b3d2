"""Traces that lack events: lists of events without some, middlewares without tracepoints, tracetools of ROS 2 Humble.

babeltrace2 copies recorded traces without the events; `tracetools_4` was recorded.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ldos.show.report.analysis import Analysis, render_analysis
from pytest_ldos.trace.assertions import assert_callback_ran, assert_order, assert_published, assert_received
from pytest_ldos.trace.ctf.read import open_in_windows, read_trace
from pytest_ldos.trace.execution.build import build_execution, build_execution_in_windows
from pytest_ldos.trace.execution.model import read_model, write_model
from pytest_ldos.trace.execution.window_rows import select_rows
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.summary import executor_states, summarize_topics
from pytest_ldos.trace.flow.timeliness import summarize_connections
from pytest_ldos.trace.patterns import callback_began, entered, published
from tests.oracles import babeltrace

NEEDS_BABELTRACE = pytest.mark.skipif(bool(babeltrace.why_unavailable()), reason=babeltrace.why_unavailable())
OF_PUBLICATIONS = ("ros2:rmw_publish", "ros2:rcl_publish", "ros2:rclcpp_publish")


@pytest.fixture
def without(golden, tmp_path):
    """The model of a recorded trace without some events."""

    def copy(name, *events):
        return build_execution(read_trace(babeltrace.copy_with_babeltrace(golden(name), tmp_path, without=events)))

    return copy


def shown(model):
    flow = build_flow(model)
    return render_analysis(Analysis(name="trace", flow=flow, paths=(), goals={}, metrics=()), width=200)


def rows_of(model, topic):
    return summarize_topics(build_flow(model)).filter(topic=topic).row(0, named=True)


def missing(model):
    return [each.event for each in model.missing_events]


@NEEDS_BABELTRACE
def test_publications_and_receptions_without_the_middleware(without, golden):
    """Publications are those of rcl, receptions those of callbacks; what the middleware alone knows is absent."""
    model, whole = without("talker_listener", "ros2:rmw_*"), build_execution(read_trace(golden("talker_listener")))
    assert missing(model) == ["ros2:rmw_publish", "ros2:rmw_take"]
    for topic in ("/chatter", "/parameter_events"):
        found, expected = rows_of(model, topic), rows_of(whole, topic)
        for column in ("publishers", "subscriptions", "messages", "received"):
            assert found[column] == expected[column], (topic, column)
        assert [found[each] for each in ("p50_ns", "p99_ns", "late", "too_late", "lost")] == [None] * 5
    assert len(assert_published(model, "/chatter", node="/talker", at_least=100, at_most=100)) == 100
    assert len(assert_received(model, "/chatter", node="/listener", at_least=100, at_most=100)) == 100
    rates = model.publication_times_ns("/chatter")
    assert abs(rates - whole.publication_times_ns("/chatter")).max() < 1_000_000  # rcl's call, not the middleware's
    received = summarize_connections(build_flow(model)).filter(topic="/chatter", role="subscribes")
    assert received.select("messages", "p50_ns", "lost").rows() == [(100, None, None)]


@NEEDS_BABELTRACE
def test_missing_events_are_shown(without):
    text = shown(without("talker_listener", "ros2:rmw_*"))
    assert "no event was lost, without ros2:rmw_publish, ros2:rmw_take" in text.splitlines()[0]
    assert "no ros2:rmw_publish: latencies, late and lost messages are not known" in text
    assert "no ros2:rmw_take: receptions are runs of callbacks, not linked with their publications" in text
    assert "112 publications that cannot be linked with receptions" in text
    assert "not in the trace" not in text


def test_a_middleware_without_tracepoints_in_one_process(golden):
    """Its publications are those of rcl; those of the other process are the middleware's, as ever."""
    decoded = read_trace(golden("talker_listener"))
    whole = build_execution(decoded)
    talker = whole.processes.filter(name="talker")
    table = decoded.events["ros2:rmw_publish"]
    events = {**decoded.events, table.name: select_rows(table, table["vpid"] != talker["pid"].item())}
    model = build_execution(replace(decoded, events=events))
    assert [(each.event, each.processes) for each in model.missing_events] == [
        ("ros2:rmw_publish", (talker["id"].item(),))
    ]
    assert "no ros2:rmw_publish from talker (" in shown(model)
    assert len(model.publications) == len(whole.publications)
    assert rows_of(model, "/chatter")["messages"] == 100
    assert model.publications["source_ns"].null_count() == rows_of(model, "/chatter")["messages"] + 6


@NEEDS_BABELTRACE
def test_publications_recorded_by_rclcpp_only(without):
    model = without("talker_listener", "ros2:rmw_*", "ros2:rcl_publish")
    assert missing(model)[:2] == ["ros2:rmw_publish", "ros2:rcl_publish"]
    assert len(model.publications) == 112
    with pytest.raises(AssertionError) as failed:
        assert_published(model, "/chatter")
    assert "/talker has a publisher for it, its publications are not in the trace" in str(failed.value)
    assert "no ros2:rcl_publish: publishers are not known" in str(failed.value)


@NEEDS_BABELTRACE
@pytest.mark.parametrize("at_least", [0, 1])
def test_assertions_on_unrecorded_publications_fail(without, at_least):
    model = without("talker_listener", *OF_PUBLICATIONS)
    with pytest.raises(AssertionError) as failed:
        assert_published(model, "/chatter", at_least=at_least, at_most=at_least)
    assert "no ros2:rmw_publish: publications are not known" in str(failed.value)
    assert "never" not in str(failed.value)


@NEEDS_BABELTRACE
def test_assertions_on_unrecorded_receptions_and_callbacks_fail(without):
    model = without("talker_listener", "ros2:*_take", "ros2:callback_*")
    with pytest.raises(AssertionError, match="which this trace does not show"):
        assert_received(model, "/chatter", at_least=0, at_most=0)
    with pytest.raises(AssertionError, match="its receptions are not in the trace"):
        assert_received(model, "/chatter")
    with pytest.raises(AssertionError, match="which this trace does not show"):
        assert_callback_ran(model, topic="/chatter", at_least=0, at_most=0)
    with pytest.raises(AssertionError, match="no ros2:callback_start: which callbacks ran is not known"):
        assert_order(model, published("/chatter"), callback_began(topic="/chatter"))


@NEEDS_BABELTRACE
def test_transitions_that_are_not_recorded(without):
    model = without("lifecycle", "ros2:rcl_lifecycle_transition")
    node = model.nodes.filter(id=model.state_machines["node"][0])["name"].item()
    with pytest.raises(AssertionError, match="its transitions are not in the trace"):
        assert_order(model, entered(node, "active"), entered(node, "inactive"))


@NEEDS_BABELTRACE
@pytest.mark.parametrize(
    ("events", "effect"),
    [
        (["ros2:rcl_node_init"], "nodes have no names"),
        (["ros2:rcl_publisher_init"], "publishing nodes are not known"),
        (["ros2:rcl_subscription_init"], "receiving nodes are not known"),
        (["ros2:rclcpp_callback_register"], "callbacks have no names"),
        (["ros2:callback_end"], "how long callbacks ran is not known"),
        (["ros2:rclcpp_executor_*"], "when executors worked is not known"),
    ],
)
def test_each_missing_event_is_named_with_its_consequence(without, events, effect):
    assert effect in shown(without("talker_listener", *events))


def test_whole_traces_lack_nothing(golden):
    """Python nodes, late starts, intra-process communication, calls: what they do not write is no fault."""
    for name in ("rclpy_talker_listener", "late_start", "intra_process", "service_action", "lifecycle", "rclcpp_32"):
        assert missing(build_execution(read_trace(golden(name)))) == [], name


def test_tracetools_of_humble(golden):
    """Nodes, callbacks, executors and topics are read; messages cannot be linked: ``rmw_publish`` has no stamp."""
    model = build_execution(read_trace(golden("tracetools_4")))
    assert sorted(model.nodes["name"]) == ["/listener", "/talker"]
    assert len(assert_published(model, "/chatter", node="/talker", at_least=40, at_most=40)) == 40
    assert len(assert_received(model, "/chatter", node="/listener", at_least=40, at_most=40)) == 40
    assert len(assert_received(model, "/heard", node="/listener")) == 40  # inside the process
    assert len(assert_callback_ran(model, node="/talker", timer_ms=50, at_least=40, at_most=40)) == 40
    assert set(executor_states(model)["state"].cast(str)) >= {"waiting", "executing"}
    assert missing(model) == ["ros2:rmw_publish.timestamp", "ros2:rclcpp_intra_publish"]
    chatter = rows_of(model, "/chatter")
    assert (chatter["messages"], chatter["received"], chatter["p50_ns"], chatter["lost"]) == (40, 40, None, None)
    assert rows_of(model, "unknown")["messages"] == 4  # /rosout, whose publisher rcl names by its address on a stack
    text = shown(model)
    assert "no ros2:rmw_publish.timestamp from humble_app" in text
    assert "80 receptions that cannot be linked with publications" in text


def test_tracetools_of_humble_in_windows(golden):
    whole = build_execution(read_trace(golden("tracetools_4")))
    with open_in_windows(golden("tracetools_4"), window_ns=300_000_000) as windows:
        found = build_execution_in_windows(windows)
    for name, frame in whole.frames().items():
        assert found.frames()[name].equals(frame, null_equal=True), name
    assert (found.unknown, found.missing_events) == (whole.unknown, whole.missing_events)


def test_missing_events_are_stored_with_the_model(golden, tmp_path):
    model = build_execution(read_trace(golden("tracetools_4")))
    write_model(model, tmp_path)
    assert read_model(tmp_path).missing_events == model.missing_events
