"""Readiness of nodes of real rclpy."""

from __future__ import annotations

import json

import pytest

from tests.builders.stressors import wait_until

NODE = "pytest_ldos.robot.stack.ros2.readiness_node"
NOTHING = {
    "controllers": [],
    "controller_manager": "",
    "action": "",
    "joint_states": "",
    "group": "",
    "needs_clock": False,
}


def watch(graph, **needs):
    return graph.run_module("readiness", "-m", NODE, json.dumps({**NOTHING, **needs}))


def printed(graph):
    return [json.loads(line) for line in graph.log("readiness").splitlines()]


@pytest.mark.parametrize(
    ("role", "arguments", "needs"),
    [
        ("server", (), {"others": ["service:/switch"]}),
        ("server", (), {"others": ["action:/count"]}),
        ("server", (), {"action": "/count"}),
        ("machine", (), {"others": ["active:/machine"]}),
    ],
)
def test_stack_is_ready_once_a_node_is(graph, role, arguments, needs):
    watched = watch(graph, **needs)
    wait_until(lambda: printed(graph))
    assert printed(graph)[0], "nothing is there yet"
    graph.start(role, *arguments)
    assert watched.process.wait(30) == 0, graph.log("readiness")
    assert printed(graph)[-1] == []


def test_topic_is_ready_with_its_first_message(graph):
    watched = watch(graph, others=["topic:/chatter"])
    graph.start("listener", -1)
    graph.start("talker", -1, 0.05)
    assert watched.process.wait(30) == 0, graph.log("readiness")


def test_missing_parts_are_named(graph):
    graph.start("server")
    watch(graph, others=["service:/switch", "service:/lever"])
    wait_until(lambda: printed(graph) and [each.split()[-1] for each in printed(graph)[-1]] == ["/lever"])
