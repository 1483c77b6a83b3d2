"""Loops of real ros2_control above 1 kHz, beside what its controller manager says of them itself.

The manager publishes, each cycle, the periodicity of each controller on ``~/statistics``: a witness that reads no trace.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_ldos.host.ros import find_ros_packages
from pytest_ldos.robot.stack.ros2.installed import ros2_available
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.words import StimulusKind
from tests.builders.needs import lttng_here
from tests.integration.project import Project, make_project

LOOP = StackSpec(stimulus=StimulusKind.WINDOW, ros2=Ros2Spec(launch_file="loop/loop.launch.py", controllers=("a",)))
_NEEDS = ("controller_manager", "joint_state_broadcaster", "pal_statistics_msgs", "robot_state_publisher")
_REASONS = [each.reason for each in (ros2_available(LOOP), lttng_here(), find_ros_packages(_NEEDS)) if not each.ok]
pytestmark = pytest.mark.skipif(bool(_REASONS), reason="; ".join(_REASONS) or "ros2_control is sourced")

RATE_HZ = 2000

LAUNCH = f"""
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch_ros.actions import Node

ROBOT = '''<robot name="hinge"><link name="base"/><link name="arm"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/></joint>
<ros2_control name="hinge" type="system"><hardware><plugin>mock_components/GenericSystem</plugin></hardware>
<joint name="hinge"><command_interface name="position"/><state_interface name="position"/></joint>
</ros2_control></robot>'''

def generate_launch_description():
    broadcaster = {{"joint_state_broadcaster.type": "joint_state_broadcaster/JointStateBroadcaster"}}
    witness = [sys.executable, str(Path(__file__).with_name("witness.py"))]
    return LaunchDescription([
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[{{"robot_description": ROBOT}}],
        ),
        Node(
            package="controller_manager",
            executable="ros2_control_node",
            parameters=[{{"update_rate": {RATE_HZ}}}, broadcaster],
        ),
        Node(package="controller_manager", executable="spawner", arguments=["joint_state_broadcaster"]),
        ExecuteProcess(cmd=witness, name="witness"),
    ])
"""

WITNESS = """
import sys
from pathlib import Path
import rclpy
from pal_statistics_msgs.msg import StatisticsNames, StatisticsValues
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

NAME = "joint_state_broadcaster.stats/periodicity/current_value"

class Witness(Node):
    def __init__(self, file):
        super().__init__("witness")
        self.file, self.places = file, {}
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        prefix = "/controller_manager/statistics"
        self.create_subscription(StatisticsNames, prefix + "/names", self.name, latched)
        self.create_subscription(StatisticsValues, prefix + "/values", self.hear, 1000)

    def name(self, names):
        if NAME in names.names:
            self.places[names.names_version] = list(names.names).index(NAME)

    def hear(self, values):
        if values.names_version in self.places:
            print(values.values[self.places[values.names_version]], file=self.file, flush=True)

rclpy.init()
with Path(__file__).with_name("periodicity").open("w") as file:
    try:
        rclpy.spin(Witness(file))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
"""

PROJECT = f"""
[tool.pytest.ini_options]

[tool.ldos.stack]
launch_file = "loop.launch.py"
controllers = ["joint_state_broadcaster"]
control_rate_hz = {RATE_HZ}
stimulus = "window"

[tool.ldos.stimulus.window]
seconds = 2.0
"""


@pytest.fixture
def loop(tmp_path) -> Project:
    made = make_project(tmp_path)
    made.environment |= {"LDOS_STACK": "ros2"}
    made.write("loop.launch.py", LAUNCH)
    made.write("witness.py", WITNESS)
    made.write("pyproject.toml", PROJECT)
    return made


def test_the_loop_is_as_fast_and_as_regular_as_its_manager_says(loop):
    code, output = loop.run("-m", "baseline", "--ldos-trials=3", "--ldos-block=3")
    assert code == 0, output
    periods_ms = 1000 / np.array([json.loads(line) for line in (loop.path / "periodicity").read_text().splitlines()])
    print(f"witness: {len(periods_ms)} periods, mean {periods_ms.mean():.4f} ms, spread {periods_ms.std():.4f} ms")
    for trial in loop.saved().trials:
        found = {name: trial.measurements[name].number for name in ("T3", "T3mean", "T3p99")}
        print(found)
        assert trial.measurements["T3"].source.name == "published"
        assert found["T3mean"] == pytest.approx(np.median(periods_ms), rel=0.05)
        assert found["T3mean"] == pytest.approx(1000 / RATE_HZ, rel=0.05)
