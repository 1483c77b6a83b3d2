"""Nodes over real Cyclone DDS: received messages, and traced events in order."""

from __future__ import annotations

import queue
import time

import psutil
import pytest

from pytest_ldos.robot.dds.action import IntegerParameters, ParameterClient
from pytest_ldos.robot.dds.domain import claim_domain, ports_of
from pytest_ldos.robot.dds.endpoint import CLOCK, default
from pytest_ldos.robot.dds.node import Context, Node, next_tick
from tests.builders.stressors import wait_until

TIMEOUT_S = 60


def text(content: str):
    return default("std_msgs/msg/String", data=content)


def test_a_message_arrives_and_is_traced_as_in_rclcpp(spinning, emitted):
    node = Node(spinning, "talker")
    received = queue.Queue()
    publisher = node.create_publisher("std_msgs/msg/String", "/chatter")
    node.create_subscription("std_msgs/msg/String", "/chatter", received.put)
    wait_until(lambda: publisher.matched() == 1)
    started = len(emitted.without_idling())
    publisher.publish(text("hello"))
    assert received.get(timeout=TIMEOUT_S).data == "hello"
    wait_until(lambda: "callback_end" in emitted.names())
    assert emitted.without_idling()[:started] == [
        "rcl_init",
        "rcl_node_init",
        "rmw_publisher_init",
        "rcl_publisher_init",
        "rmw_subscription_init",
        "rcl_subscription_init",
        "rclcpp_subscription_init",
        "rclcpp_subscription_callback_added",
        "rclcpp_callback_register",
    ]
    published = ["rclcpp_publish", "rcl_publish", "rmw_publish"]
    taken = ["rclcpp_executor_execute", "rmw_take", "rcl_take", "rclcpp_take", "callback_start", "callback_end"]
    run = emitted.without_idling()[started:]
    assert [name for name in run if name in published] == published
    assert [name for name in run if name in taken] == taken


def test_publication_and_take_share_the_source_timestamp(spinning, emitted):
    """Links publication and take: both have the same wall-clock nanoseconds."""
    node = Node(spinning, "talker")
    received = queue.Queue()
    publisher = node.create_publisher("std_msgs/msg/String", "/chatter")
    node.create_subscription("std_msgs/msg/String", "/chatter", received.put)
    wait_until(lambda: publisher.matched() == 1)
    publisher.publish(text("x"))
    received.get(timeout=TIMEOUT_S)
    events = dict(emitted.events)
    assert events["rmw_publish"][2] == events["rmw_take"][2]
    assert events["rcl_publish"] == (publisher.handle, events["rclcpp_publish"][0])


def test_handles_link_the_entities(context, emitted):
    node = Node(context, "n")
    node.create_subscription("std_msgs/msg/String", "/t", lambda _: None)
    events = dict(emitted.events)
    handle, node_handle, rmw_handle, topic, depth = events["rcl_subscription_init"]
    assert node_handle == node.handle
    assert rmw_handle == events["rmw_subscription_init"][0]
    assert (topic, depth) == ("/t", 10)
    assert events["rclcpp_subscription_init"][0] == handle
    subscription, callback = events["rclcpp_subscription_callback_added"]
    assert events["rclcpp_subscription_init"][1] == subscription
    assert events["rclcpp_callback_register"][0] == callback
    assert "test_node" in events["rclcpp_callback_register"][1]


@pytest.mark.parametrize(("now_ns", "expected_ns"), [(100, 110), (105, 110), (110, 110), (111, 120), (155, 160)])
def test_timer_stays_on_its_grid_and_skips_missed_ticks(now_ns, expected_ns):
    assert next_tick(100, 10, now_ns) == expected_ns


def test_a_timer_ticks_and_is_traced_as_in_rclcpp(spinning, emitted):
    ticks = queue.Queue()
    Node(spinning, "clockwork").create_timer(5_000_000, lambda: ticks.put(time.monotonic_ns()))
    times = [ticks.get(timeout=TIMEOUT_S) for _ in range(4)]
    assert times == sorted(times)
    names = emitted.without_idling()
    first = names.index("rcl_timer_init")
    assert names[first : first + 4] == [
        "rcl_timer_init",
        "rclcpp_timer_callback_added",
        "rclcpp_callback_register",
        "rclcpp_timer_link_node",
    ]


def test_parameters_are_set_over_dds(spinning):
    node = Node(spinning, "target")
    parameters = IntegerParameters(node, ("seed",))
    client = ParameterClient(Node(spinning, "asker"), "target")
    wait_until(client.server_is_ready)
    answers = queue.Queue()
    client.set({"seed": 42}, answers.put)
    assert answers.get(timeout=TIMEOUT_S) == []
    assert parameters["seed"] == 42
    client.set({"seed": None, "sed": 1}, answers.put)
    assert answers.get(timeout=TIMEOUT_S) == ["parameter 'sed' is not declared"]
    assert parameters["seed"] is None


def test_reliable_reader_does_not_match_best_effort_writer(spinning):
    """Follows the DDS matching rules."""
    node = Node(spinning, "n")
    publisher = node.create_publisher("std_msgs/msg/String", "/a", qos=CLOCK)
    node.create_subscription("std_msgs/msg/String", "/a", lambda _: None)
    other = node.create_publisher("std_msgs/msg/String", "/b")
    node.create_subscription("std_msgs/msg/String", "/b", lambda _: None, qos=CLOCK)
    wait_until(lambda: other.matched() == 1)
    assert publisher.matched() == 0


def test_only_loopback_is_used(context):
    """All bound and connected addresses belong to this machine."""
    Node(context, "n").create_publisher("std_msgs/msg/String", "/a")
    sockets = [each for each in psutil.Process().net_connections(kind="inet") if each.laddr]
    assert sockets
    remote = [each for each in sockets if each.raddr and not each.raddr.ip.startswith("127.")]
    assert remote == []
    assert {each.laddr.ip for each in sockets} <= {"127.0.0.1", "0.0.0.0", "::1"}


def test_two_claims_never_get_the_same_domain():
    with claim_domain() as one, claim_domain() as two:
        assert one != two


def test_a_domain_with_a_participant_is_not_claimed():
    with claim_domain() as domain:
        taken = Context(domain)
    from pytest_ldos.robot.dds.domain import _taken_port

    assert _taken_port(domain) == ports_of(domain)[10]
    del taken
