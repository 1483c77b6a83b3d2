"""Actions over real Cyclone DDS, with client and server in two nodes."""

from __future__ import annotations

import queue
import uuid

import pytest

from pytest_ldos.robot.dds.action import ActionClient, ActionServer, GoalStatus
from pytest_ldos.robot.dds.endpoint import default
from pytest_ldos.robot.dds.node import Node
from tests.builders.stressors import wait_until
from tests.unit.robot.dds.test_node import TIMEOUT_S

ACTION = "control_msgs/action/FollowJointTrajectory"


class Side:
    """Callbacks received by a client about its goal."""

    def __init__(self) -> None:
        self.responses: queue.Queue = queue.Queue()
        self.feedback: queue.Queue = queue.Queue()
        self.results: queue.Queue = queue.Queue()

    def send(self, client: ActionClient, names: list[str]) -> str:
        goal_id = uuid.uuid4().hex
        goal = default(f"{ACTION}_Goal")
        goal.trajectory.joint_names = names
        client.send_goal(
            goal_id,
            goal,
            on_response=self.responses.put,
            on_feedback=self.feedback.put,
            on_result=lambda status, result: self.results.put((status, result)),
        )
        return goal_id


@pytest.fixture
def pair(spinning):
    """A server that accepts goals for joint `a`, and a connected client."""
    goals = queue.Queue()
    cancelled = queue.Queue()

    def accept(goal) -> bool:
        if goal.goal.trajectory.joint_names != ["a"]:
            return False
        goals.put(goal)
        return True

    ActionServer(Node(spinning, "server"), ACTION, "/follow", on_goal=accept, on_cancel=cancelled.put)
    client = ActionClient(Node(spinning, "client"), ACTION, "/follow")
    wait_until(client.server_is_ready)
    return client, goals, cancelled


def test_goal_is_accepted_with_feedback_and_result(pair):
    client, goals, _ = pair
    side = Side()
    goal_id = side.send(client, ["a"])
    assert side.responses.get(timeout=TIMEOUT_S) is True
    goal = goals.get(timeout=TIMEOUT_S)
    assert goal.goal_id == goal_id
    goal.publish_feedback(joint_names=["a"])
    assert side.feedback.get(timeout=TIMEOUT_S).joint_names == ["a"]
    goal.finish(GoalStatus.SUCCEEDED, error_code=0, error_string="done")
    status, result = side.results.get(timeout=TIMEOUT_S)
    assert (status, result.error_string) == (GoalStatus.SUCCEEDED, "done")


def test_immediate_goal_delivers_its_result(pair):
    client, goals, _ = pair
    for _ in range(5):
        side = Side()
        side.send(client, ["a"])
        goals.get(timeout=TIMEOUT_S).finish(GoalStatus.ABORTED, error_code=-4)
        status, result = side.results.get(timeout=TIMEOUT_S)
        assert (status, result.error_code) == (GoalStatus.ABORTED, -4)


def test_a_refused_goal_has_no_result(pair):
    client, goals, _ = pair
    side = Side()
    side.send(client, ["b"])
    assert side.responses.get(timeout=TIMEOUT_S) is False
    assert side.results.empty()
    assert goals.empty()


def test_a_goal_can_be_cancelled(pair):
    client, goals, cancelled = pair
    side = Side()
    goal_id = side.send(client, ["a"])
    goal = goals.get(timeout=TIMEOUT_S)
    client.cancel_goal(goal_id)
    assert cancelled.get(timeout=TIMEOUT_S) is goal
    assert goal.status is GoalStatus.CANCELING
    goal.finish(GoalStatus.CANCELED)
    assert side.results.get(timeout=TIMEOUT_S)[0] is GoalStatus.CANCELED


def test_an_action_emits_transport_events_only(pair, emitted):
    client, goals, _ = pair
    before = len(emitted.without_idling())
    side = Side()
    side.send(client, ["a"])
    goal = goals.get(timeout=TIMEOUT_S)
    goal.publish_feedback()
    side.feedback.get(timeout=TIMEOUT_S)
    goal.finish(GoalStatus.SUCCEEDED)
    side.results.get(timeout=TIMEOUT_S)
    assert set(emitted.without_idling()[before:]) <= {"rcl_publish", "rmw_publish", "rmw_take", "rcl_take"}
    init = emitted.without_idling()[:before]
    assert init.count("rcl_service_init") == 3
    assert init.count("rcl_client_init") == 3
    assert "rclcpp_subscription_init" not in init


def test_initialisation_order_matches_rclcpp(pair, emitted, golden):
    """Expected: first events of server and client, as recorded from rclcpp."""
    from pytest_ldos.trace.ctf.read import read_trace

    trace = read_trace(golden("service_action"))
    names = ["ros2:rcl_service_init", "ros2:rcl_client_init", "ros2:rcl_publisher_init", "ros2:rcl_subscription_init"]
    rows = []
    for name in names:
        table = trace.events[name]
        label = "topic_name" if "topic_name" in table.columns else "service_name"
        rows += [(int(time), name, text) for time, text in zip(table.timestamp_ns, table.columns[label], strict=True)]
    real = [
        (name.removeprefix("ros2:"), text.rpartition("_action/")[2])
        for _, name, text in sorted(rows)
        if "_action/" in text
    ]
    ours = [
        (name, arguments[3].rpartition("_action/")[2])
        for name, arguments in emitted.events
        if f"ros2:{name}" in names and "_action/" in arguments[3]
    ]
    assert sorted(ours) == sorted(set(real))
    for kind in ("rcl_service_init", "rcl_client_init"):
        real_order = [text for name, text in real if name == kind][:3]
        assert [text for name, text in ours if name == kind] == real_order
