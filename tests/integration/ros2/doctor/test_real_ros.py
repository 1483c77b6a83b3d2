"""The doctor with real ROS 2 nodes, if ROS 2 is sourced."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_ldos.doctor.changes import ChangeLog, Machine, Status, remove_stale
from pytest_ldos.doctor.check_leftovers import find_strays
from pytest_ldos.doctor.check_ros import check_python, check_tracetools, find_stale_segments
from pytest_ldos.host.availability import rmw_installed, ros_python_available

FASTDDS = "rmw_fastrtps_cpp"
REASONS = [each.reason for each in (ros_python_available(), rmw_installed(FASTDDS)) if not each.ok]
MISSING = list(dict.fromkeys(REASONS))
pytestmark = pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING) or "available")

NODE = """
import rclpy
rclpy.init()
node = rclpy.create_node("left_behind")
print("ready", flush=True)
rclpy.spin(node)
"""


@pytest.fixture
def node():
    environment = {**os.environ, "RMW_IMPLEMENTATION": FASTDDS, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    command = [sys.executable, "-c", NODE, "--ros-args"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_shared_memory_of_a_killed_node_is_found_and_removed(node, tmp_path):
    machine = Machine()
    held = set(find_stale_segments(machine))
    node.kill()
    node.wait()
    left = sorted(set(find_stale_segments(machine)) - held)
    assert any(path.name.endswith("_el") for path in left)
    remove_stale("remove what the node left", left, find_stale_segments).apply(machine, ChangeLog(tmp_path / "c.json"))
    assert not any(path.exists() for path in left)


def test_a_node_is_a_stray(node):
    assert (node.pid, "ROS node") in [(process.pid, role) for process, role in find_strays(Machine())]


def test_diagnosis_of_the_installed_ros():
    assert check_python(Machine()).status is Status.OK
    assert check_tracetools(Machine()).status is Status.OK
