"""The same topology over rclcpp, on each middleware that is installed."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.host.availability import find_ros_packages, installed_rmws
from pytest_ldos.instruments.cost_layers import Kind
from pytest_ldos.instruments.topology.rounds import analyse
from pytest_ldos.instruments.topology.run import TopologySpec, run_topology
from pytest_ldos.robot.topology.conversation import Processes
from tests.builders.topologies import topology

ROS2 = find_ros_packages(["ldos_topology", "ldos_topology_msgs"])

pytestmark = pytest.mark.skipif(not ROS2.ok, reason=f"rclcpp: {ROS2.reason}")


def spec(rmw: str, **changes) -> TopologySpec:
    usual = TopologySpec(file="pick_cell", seconds=1.0, rounds=2, sampling=0.25, layer=Kind.ROS2, rmw=rmw)
    return dataclasses.replace(usual, **changes)


@pytest.mark.parametrize("rmw", installed_rmws())
@pytest.mark.parametrize(
    "changes", [{}, {"intra_process": True}, {"processes": Processes.NODE}], ids=["one", "intra", "many"]
)
def test_every_message_is_seen(rmw, changes):
    asked = spec(rmw, **changes)
    recorded = run_topology(topology(), asked)
    assert recorded.failure == ""
    found = analyse(topology(), [recorded], asked.limits, case="two", rounds=2, cores=2)
    messages, replies = found.edges
    assert 50 <= recorded.sent[0] <= 101
    assert messages.received + messages.lost == recorded.sent[0]
    assert replies.received + replies.lost == recorded.sent[2]
    assert 1 < messages.mean_us < 1e5
    assert len(found.usage) == 5
    assert found.usage[-1].in_use_kb > 100
    assert [each.failure for each in found.rounds] == ["", ""]
