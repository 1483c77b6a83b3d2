"""Numbers in the messages of nodes of real rclpy."""

from __future__ import annotations

import json

from pytest_ldos.host.kept import AnsweringChild
from tests.builders.stressors import wait_until
from tests.integration.rcl.conftest import NODES

NODE = "pytest_ldos.robot.stack.ros2.topics_node"
OF_FEW = """
import sys
from pytest_ldos.robot.stack.ros2 import topics_node
topics_node.MOST = 3
topics_node.answer("ldos_topics", lambda node: topics_node.Listener(node, sys.argv[1:]).look)
"""
WITHOUT_GEOMETRY = f"""
import runpy, sys
sys.modules["geometry_msgs.msg"] = None
runpy.run_module("{NODE}", run_name="__main__")
"""
LIMIT_S = 60


def values(graph, name, topic, kind="Float64", *, count=3, best_effort=False):
    arguments = json.dumps((topic, kind, count, best_effort))
    return AnsweringChild(graph.run_module(name, str(NODES), "values", arguments, talk=True))


def listen(graph, *subjects, command=("-m", NODE)):
    listener = AnsweringChild(graph.run_module("topics", *command, *subjects, talk=True))
    return lambda: listener.ask("", limit_s=LIMIT_S)


def test_each_number_is_returned_once_and_in_order(graph):
    """A message that is kept while no one asks is not lost, and no Python takes it."""
    sender, other = (
        values(graph, "values", "/solver/processing_time_ms"),
        values(graph, "where", "/where", "PointStamped"),
    )
    subjects = ("/solver/processing_time_ms:data", "/where:point.x", "/where:point.y")
    look = listen(graph, *subjects)
    look()
    for _ in range(2):
        for each in (sender, other):
            each.ask("", limit_s=LIMIT_S)
        assert look() == dict(zip(subjects, ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0] * 3), strict=True))
        assert look() == {each: [] for each in subjects}


def test_publisher_without_reliability_is_heard(graph):
    sender = values(graph, "values", "/solver", best_effort=True)
    look = listen(graph, "/solver:data")
    look()
    sender.ask("", limit_s=LIMIT_S)
    wait_until(lambda: look()["/solver:data"] == [1.0, 2.0, 3.0])


def test_more_messages_than_are_kept(graph):
    sender = values(graph, "values", "/solver")
    look = listen(graph, "/solver:data", command=("-c", OF_FEW))
    look()
    sender.ask("", limit_s=LIMIT_S)
    assert look() == {"/solver:data": "more than 2 messages on /solver; shorten the trials"}


def test_faults_are_named_each(graph):
    for name, topic, kind in (("a", "/two", "Float64"), ("b", "/two", "PointStamped"), ("c", "/where", "PointStamped")):
        values(graph, name, topic, kind)
    look = listen(graph, "/wehre:point.x", "/two:data", "/where:point.w", "/where:point", "/where:point.x")
    found = look()
    assert isinstance(found.pop("/where:point.x"), list), "the others do not spoil it"
    assert found == {
        "/wehre:point.x": "no node publishes on /wehre; did you mean '/where'?",
        "/two:data": "/two has several types: geometry_msgs/msg/PointStamped, std_msgs/msg/Float64; publish one of them",
        "/where:point.w": "/where has no field 'point.w'; known are: x, y, z",
        "/where:point": "field 'point' of /where is no number, but geometry_msgs/Point; name a field that is a number",
    }


def test_type_that_is_not_installed_here(graph):
    values(graph, "values", "/where", "PointStamped")
    look = listen(graph, "/where:point.x", command=("-c", WITHOUT_GEOMETRY))
    assert look()["/where:point.x"].startswith("the type geometry_msgs/msg/PointStamped is not installed: no package")
