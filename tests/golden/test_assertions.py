"""Assertions on recorded traces of real ROS 2: what passes, and every word of what fails."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from pytest_ldos import api
from pytest_ldos.api import (
    PathSpec,
    assert_callback_ran,
    assert_event,
    assert_flow,
    assert_order,
    assert_published,
    assert_received,
    callback_began,
    callback_ended,
    entered,
    event,
    published,
    received,
)
from pytest_ldos.base.errors import ConfigurationError


@pytest.fixture(scope="module")
def trace(golden):
    return cache(lambda name: api.read_trace(golden(name)))


@pytest.fixture(scope="module")
def model(trace):
    return cache(lambda name: api.build_execution(trace(name)))


def message_of(assertion, *arguments, **settings) -> str:
    with pytest.raises(AssertionError) as failure:
        assertion(*arguments, **settings)
    return str(failure.value)


def test_published_message_is_found(model):
    found = assert_published(model("talker_listener"), "/chatter", node="/talker", at_least=100, at_most=100)
    assert set(found["node_name"]) == {"/talker"}
    assert found["time_ns"].is_sorted()
    assert len(assert_published(model("intra_process"), "/ip_in", node="/ip_producer", at_least=81)) == 81
    assert len(assert_published(model("rclpy_talker_listener"), "/py_chatter")) == 80
    assert_published(model("talker_listener_fastdds"), "/chatter", at_least=100, at_most=100)
    assert_received(model("talker_listener_fastdds"), "/chatter", node="/listener", at_least=99, at_most=99)


def test_received_message_is_found(model):
    assert len(assert_received(model("talker_listener"), "/chatter", node="/listener", at_least=100)) == 100
    assert len(assert_received(model("intra_process"), "/ip_out", node="/ip_sink")) == 80


def test_only_events_in_the_window_count(model):
    observed = model("intra_process")
    first = int(assert_published(observed, "/ip_in")["time_ns"][0])
    assert len(assert_published(observed, "/ip_in", within=(first, first + 100_000_000), at_least=3, at_most=3)) == 3


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"node": "/listener", "topic": "/chatter"}, 100),
        ({"topic": "/chatter"}, 100),
        ({"node": "/talker", "timer_ms": 50}, 100),
        ({"node": "/talker"}, 105),
        ({"symbol": "ParameterEvent"}, 10),
    ],
)
def test_callback_is_found_by_any_of_its_names(model, settings, count):
    assert len(assert_callback_ran(model("talker_listener"), at_least=count, at_most=count, **settings)) == count


def test_a_service_s_callback_is_found(model):
    assert len(assert_callback_ran(model("service_action"), service="/add_two_ints", node="/fixture_server")) == 83


def test_events_are_found_by_name_and_fields(trace):
    found = assert_event(trace("talker_listener"), "ros2:rcl_publisher_init", topic_name="/chatter", at_most=1)
    handle = int(found["publisher_handle"][0])
    assert len(assert_event(trace("talker_listener"), "ros2:rcl_publish", publisher_handle=handle)) == 100


def test_things_happened_in_order(trace, model):
    moments = assert_order(
        trace("talker_listener"),
        event("ros2:rcl_node_init", node_name="talker"),
        event("ros2:rcl_publisher_init", topic_name="/chatter"),
        callback_began(node="/talker", timer_ms=50),
        published("/chatter"),
        received("/chatter"),
        callback_began(node="/listener", topic="/chatter"),
        callback_ended(node="/listener", topic="/chatter"),
        published("/chatter").nth(1),
        published("/chatter").nth(-1),
        received("/chatter").nth(-1),
    )
    assert all(one < other for one, other in pairwise(moments))
    assert_order(
        model("lifecycle"),
        entered("/lc_talker", "active"),
        published("/lc_chatter"),
        published("/lc_chatter").nth(-1),
        entered("/lc_talker", "finalized"),
    )


def test_messages_flow_along_a_path(model):
    observed = model("pipeline_single_links")
    assert len(assert_flow(observed, ["/src_a", "/relayed", "/sync_out"], at_least=50, deadline_ms=20)) == 50
    assert len(assert_flow(api.build_flow(observed), ["/src_b", "/async_out"])) == 56
    assert len(assert_flow(model("intra_process"), ["/ip_in", "/ip_out"], deadline_ms=0.5)) == 80
    path = PathSpec(name="sync", via=("/src_a", "/sync_out"), deadline_ms=0.5)
    assert assert_flow(observed, path, missed_at_most=50).missed == 50


def test_links_can_be_declared_instead_of_annotated(model):
    observed = model("pipeline_single")
    link = api.LinkSpec(
        rule=api.LinkRule.PERIODIC_ASYNC, node="/async_cache", inputs=("/src_b",), outputs=("/async_out",)
    )
    assert "nothing came through" in message_of(assert_flow, observed, ["/src_b", "/async_out"])
    assert len(assert_flow(observed, ["/src_b", "/async_out"], links=[link])) > 50


def test_phases_of_a_goal_make_a_flow(model):
    assert message_of(assert_flow, model("talker_listener"), ["planning", "executing"]) == (
        "expected at least 1 passage along planning → executing, found none\n"
        "  planning: entered 0 times\n"
        "  executing: entered 0 times"
    )


COUNTS = [
    (
        assert_published,
        ("/chater",),
        {},
        "expected publications on /chater, but the trace has no topic /chater\n  did you mean '/chatter'?",
    ),
    (
        assert_published,
        ("/chatter",),
        {"at_least": 1000},
        "expected at least 1000 publications on /chatter, found 100\n"
        "  /talker published 100, 0.545 s … 5.495 s, one in 50.0 ms",
    ),
    (
        assert_published,
        ("/chatter",),
        {"node": "/listener"},
        "expected at least 1 publication on /chatter by /listener, found none\n"
        "  /talker published 100, 0.545 s … 5.495 s, one in 50.0 ms",
    ),
    (
        assert_published,
        ("/chatter",),
        {"node": "/tolker"},
        "expected publications on /chatter by /tolker, but the trace has no node /tolker\n  did you mean '/talker'?",
    ),
    (
        assert_published,
        ("/rosout",),
        {},
        "expected at least 1 publication on /rosout, found none\n"
        "  /listener has a publisher for it, but never published\n"
        "  /talker has a publisher for it, but never published",
    ),
    (
        assert_published,
        ("/chatter",),
        {"at_least": 0, "at_most": 0},
        "expected no publications on /chatter, found 100\n  /talker published 100, 0.545 s … 5.495 s, one in 50.0 ms",
    ),
    (
        assert_published,
        ("/chater",),
        {"at_least": 0, "at_most": 0},
        "expected publications on /chater, but the trace has no topic /chater\n  did you mean '/chatter'?",
    ),
    (
        assert_received,
        ("/chatter",),
        {"at_least": 101},
        "expected at least 101 receptions of /chatter, found 100\n"
        "  /listener received 100, 0.545 s … 5.495 s, one in 50.0 ms\n"
        "  /talker published 100, 0.545 s … 5.495 s, one in 50.0 ms",
    ),
    (
        assert_received,
        ("/rosout",),
        {},
        "expected at least 1 reception of /rosout, found none\n"
        "  no node subscribes to it\n"
        "  nothing was published on it",
    ),
    (
        assert_callback_ran,
        (),
        {"node": "/listener", "topic": "/chatter", "at_least": 5, "at_most": 10},
        "expected 5 to 10 runs of a callback for /chatter in /listener, found 100\n"
        "  /listener: /chatter: ran 100 times",
    ),
    (
        assert_callback_ran,
        (),
        {"node": "/talker", "timer_ms": 20},
        "expected runs of a callback of the timer of 20 ms in /talker, but there is no such callback\n"
        "  callbacks that ran: /talker: timer of 50 ms (100 runs), /talker: /parameter_events (5 runs)",
    ),
    (
        assert_callback_ran,
        (),
        {"node": "/listener", "service": "/listener/get_parameters"},
        "expected at least 1 run of a callback for service /listener/get_parameters in /listener, found none\n"
        "  /listener: /listener/get_parameters: is there, but never ran\n"
        "  callbacks that ran: /listener: /chatter (100 runs), /listener: /parameter_events (5 runs)",
    ),
    (
        assert_callback_ran,
        (),
        {"service": "/listener/get_parameter"},
        "expected runs of a callback for service /listener/get_parameter, but the trace has no service"
        " /listener/get_parameter\n  did you mean '/listener/get_parameters'?",
    ),
]


@pytest.mark.parametrize(("assertion", "arguments", "settings", "message"), COUNTS)
def test_failure_shows_what_was_found_instead(model, assertion, arguments, settings, message):
    assert message_of(assertion, model("talker_listener"), *arguments, **settings) == message


def test_events_outside_the_window_are_counted_in_the_message(model):
    observed = model("intra_process")
    first = int(assert_published(observed, "/ip_in")["time_ns"][0])
    message = message_of(assert_published, observed, "/ip_in", within=(first, first + 100_000_000), at_least=5)
    assert message == (
        "expected at least 5 publications on /ip_in within 0.059 s … 0.159 s, found 3 (81 in all)\n"
        "  /ip_producer published 81, 0.059 s … 4.056 s, one in 50.0 ms"
    )


EVENTS = [
    (
        ("ros2:rcl_publisher_init",),
        {"topic_name": "/chater"},
        "expected at least 1 event ros2:rcl_publisher_init with topic_name='/chater', found none\n"
        "  5 events of this name in all\n"
        "  topic_name is /rosout (2), /parameter_events (2), /chatter (1)",
    ),
    (
        ("ros2:rcl_publisher_ini",),
        {},
        "expected events ros2:rcl_publisher_ini, but the trace has no event of this name\n"
        "  did you mean 'ros2:rcl_publisher_init'?",
    ),
    (
        ("ros2:rcl_publisher_init",),
        {"topic": "/chatter"},
        "expected events ros2:rcl_publisher_init with topic='/chatter', but ros2:rcl_publisher_init has no field"
        " topic\n  did you mean 'topic_name'?",
    ),
    (
        ("ros2:rclcpp_intra_publish",),
        {},
        "expected at least 1 event ros2:rclcpp_intra_publish, found none\n  it was recorded, but never happened",
    ),
]


@pytest.mark.parametrize(("arguments", "settings", "message"), EVENTS)
def test_missing_events_are_reported(trace, arguments, settings, message):
    assert message_of(assert_event, trace("talker_listener"), *arguments, **settings) == message


def test_a_wrong_order_shows_all_with_their_times(model):
    run = callback_began(node="/listener", topic="/chatter")
    message = message_of(assert_order, model("talker_listener"), run, published("/chatter"), received("/chatter"))
    assert message == (
        "first publication on /chatter came 234 µs before first run of a callback for /chatter in /listener\n"
        "  expected in this order:\n"
        "    0.545204 s  first run of a callback for /chatter in /listener\n"
        "    0.544970 s  first publication on /chatter\n"
        "    0.545195 s  first reception of /chatter"
    )


def test_events_to_be_ordered_must_have_occurred(model):
    message = message_of(assert_order, model("talker_listener"), received("/chatter"), published("/chatter").nth(150))
    assert message == (
        "expected the publication on /chatter, number 151, but found 100 of them\n"
        "  /talker published 100, 0.545 s … 5.495 s, one in 50.0 ms"
    )
    message = message_of(assert_order, model("lifecycle"), published("/lc_chatter"), entered("/lc_talker", "flying"))
    assert message.startswith(
        "expected the first transition of /lc_talker to flying but found none\n"
        "  /lc_talker entered: configuring, unconfigured, configuring, inactive,"
    )


FLOWS = [
    (
        ["/src_a", "/relayed"],
        {"at_least": 300},
        "expected at least 300 passages along /src_a → /relayed, found only 100\n"
        "  /src_a (100 published) → /relayed: 100 came through\n"
        "  /relayed: 100 published",
    ),
    (
        ["/src_b", "/sync_out", "/async_out"],
        {},
        "expected at least 1 passage along /src_b → /sync_out → /async_out, found none\n"
        "  /src_b (35 published) → /sync_out: 49 came through\n"
        "  /sync_out (50 published) → /async_out: nothing came through\n"
        "  /async_out: 57 published",
    ),
    (
        ["/src_b", "/async_ot"],
        {},
        "expected passages along /src_b → /async_ot, but the trace has no topic /async_ot\n"
        "  did you mean '/async_out'?",
    ),
    (
        ["/src_a", "/relayed", "/sync_out"],
        {"deadline_ms": 12.3, "missed_at_most": 1},
        "2 of 50 passages along /src_a → /relayed → /sync_out take longer than 12.3 ms, at most 1 may\n"
        "  16.1 ms from 2.226 s on, most of it in timer wait: /async_cache: timer of 100 ms, 8.23 ms\n"
        "  12.4 ms from 5.525 s on, most of it in timer wait: /async_cache: timer of 100 ms, 8.36 ms\n"
        "  12.3 ms from 3.025 s on, most of it in timer wait: /async_cache: timer of 100 ms, 8.39 ms\n"
        "  median: 12.2 ms",
    ),
]


@pytest.mark.parametrize(("via", "settings", "message"), FLOWS)
def test_a_flow_that_ends_or_is_late_is_explained(model, via, settings, message):
    assert message_of(assert_flow, model("pipeline_single_links"), via, **settings) == message


def test_losses_are_mentioned(model):
    message = message_of(assert_published, model("discarded"), "/pair_0", at_least=10_000)
    assert message.endswith("the trace is not whole (1039 discarded events): what is not found may have happened")


def test_a_trace_that_began_late_is_mentioned(model):
    assert message_of(assert_published, model("late_start"), "/chatter") == (
        "expected publications on /chatter, but the trace has no topic /chatter\n"
        "  there is none at all\n"
        "  without a name, because tracing began too late or lost how they began:"
        " 1 publishers, 1 subscriptions, 2 callbacks"
    )


def test_python_nodes_record_no_callbacks(model):
    message = message_of(assert_callback_ran, model("rclpy_talker_listener"), node="/py_listener", topic="/py_chatter")
    assert message.endswith("  no callback is in the trace at all (Python nodes record none)")
    assert assert_received(model("rclpy_talker_listener"), "/py_chatter", node="/py_listener").height > 0


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda seen: assert_published(seen, "/chatter", at_least=0), "asserts nothing"),
        (lambda seen: assert_published(seen, "/chatter", at_least=3, at_most=2), "at least 3 and at most 2"),
        (lambda seen: assert_published(seen, "/chatter", within=(2, 1)), "ends before it begins"),
        (assert_callback_ran, "no callback is named"),
        (lambda seen: assert_event(seen, "ros2:rcl_init"), "a model holds no raw events"),
        (lambda seen: assert_order(seen, published("/chatter")), "at least two events"),
        (lambda seen: assert_flow(seen, "/chatter"), "is one name"),
    ],
)
def test_invalid_assertion_is_an_error_not_a_failure(model, ask, reason):
    with pytest.raises(ConfigurationError, match=reason):
        ask(model("talker_listener"))


def test_pytest_shows_only_the_tests_line(pytester, golden, monkeypatch):
    pytester.makepyfile(
        f"""
        from pytest_ldos import api

        def test_it():
            api.assert_published(api.build_execution(api.read_trace({str(golden("talker_listener"))!r})), "/chater")
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["E*expected publications on /chater, but the trace has no topic /chater"])
    result.stdout.no_fnmatch_line("*evidence.py*")
    result.stdout.no_fnmatch_line("*counts.py*")
