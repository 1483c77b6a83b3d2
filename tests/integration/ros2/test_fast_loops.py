"""Loops of real ros2_control above 1 kHz, compared with the controller manager's own statistics.

The manager publishes, each cycle, the periodicity of each controller on ``~/statistics``: a witness that reads no trace.
"""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.host.availability import find_ros_packages
from tests.builders.loops import HINGE, nodes_of, why_no_loop
from tests.integration.project import Project, make_project

_NEEDS = ("controller_manager", "joint_state_broadcaster", "pal_statistics_msgs", "robot_state_publisher")
pytestmark = pytest.mark.skipif(bool(why_no_loop(_NEEDS)), reason=why_no_loop(_NEEDS) or "ros2_control is sourced")

RATE_HZ = 2000
BOTH = ("joint_state_broadcaster", "ldos_control_probe")

LAUNCH = f"""
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch_ros.actions import Node

ROBOT = '''{HINGE}'''

def generate_launch_description():
    controllers = {{
        "joint_state_broadcaster.type": "joint_state_broadcaster/JointStateBroadcaster",
        "ldos_control_probe.type": "ldos_control_probe/ControlProbe",
    }}
    witness = [sys.executable, str(Path(__file__).with_name("witness.py"))]
    return LaunchDescription([
        {nodes_of(RATE_HZ, "controllers")}
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
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

NAME = "joint_state_broadcaster.stats/periodicity/current_value"

class Witness(Node):
    def __init__(self, file):
        super().__init__("witness")
        self.file, self.places = file, {}
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        prefix = "/controller_manager/statistics"
        self.create_subscription(StatisticsNames, prefix + "/names", self.name, latched)
        self.create_subscription(
            StatisticsValues, prefix + "/values", self.hear, QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
        )

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

[tool.ldos]
metrics = ["update:joint_state_broadcaster", "update:hinge", "jitter:joint_state_broadcaster"]

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


def test_joint_states_show_how_fast_the_loop_is(loop):
    periods_ms = measure(loop)
    for trial in loop.saved().trials:
        assert trial.measurements["T3"].source.name == "/joint_states publications"
        assert trial.measurements["T3mean"].number == pytest.approx(np.median(periods_ms), rel=0.05)
        assert trial.measurements["T3mean"].number == pytest.approx(1000 / RATE_HZ, rel=0.05)


@pytest.mark.skipif(
    not find_ros_packages(["ldos_control_probe"]).ok, reason="ldos_control_probe of ros_ws is not sourced"
)
def test_the_probe_shows_how_regular_it_is(loop):
    """The broadcaster hands its message to another thread, whose lateness is not the loop's; the probe does not."""
    loop.write("loop.launch.py", LAUNCH.replace('arguments=["joint_state_broadcaster"]', f"arguments={[*BOTH]}"))
    loop.write("pyproject.toml", PROJECT.replace('["joint_state_broadcaster"]', str([*BOTH]).replace("'", '"')))
    periods_ms = measure(loop)
    rms_ms = float(np.sqrt(np.mean((periods_ms - 1000 / RATE_HZ) ** 2)))
    for trial in loop.saved().trials:
        assert trial.measurements["T3"].source.name == "control probe"
        assert trial.measurements["T3mean"].number == pytest.approx(np.mean(periods_ms), rel=0.02)
        jitter = trial.measurements["jitter_joint_state_broadcaster"]
        print(f"T3 {trial.measurements['T3'].number:.4f} ms, by the manager {rms_ms:.4f} ms, {jitter.number:.4f} ms")
        assert rms_ms / 3 < trial.measurements["T3"].number < 3 * rms_ms
        assert rms_ms / 3 < jitter.number < 3 * rms_ms
        assert jitter.details["rate_hz"] == pytest.approx(RATE_HZ, rel=0.02)
        assert jitter.details["updates"] == pytest.approx(2 * RATE_HZ, rel=0.05)


def test_updates_of_controllers_and_hardware_are_measured(loop):
    measure(loop)
    for trial in loop.saved().trials:
        controller, hardware = (trial.measurements[f"update_{name}"] for name in ("joint_state_broadcaster", "hinge"))
        print(f"update of the broadcaster {controller.number:.5f} ms, of the hardware {hardware.number:.5f} ms")
        assert 0 < hardware.number < 1000 / RATE_HZ
        assert 0 < controller.number < 1000 / RATE_HZ
        assert controller.details["updates"] == pytest.approx(2 * RATE_HZ, rel=0.05)
        assert hardware.details.keys() == {"read_cycle_ms", "write_cycle_ms"}


def test_unknown_controller_is_refused_with_the_nearest_name(loop):
    loop.write("pyproject.toml", PROJECT.replace("update:hinge", "update:hing"))
    code, output = loop.run("-m", "baseline", "--ldos-trials=1")
    assert code != 0
    assert "the controller manager has no 'hing'; it has hinge, joint_state_broadcaster" in output, output


def measure(loop: Project) -> np.ndarray:
    """Three trials; returns the periods that the controller manager published meanwhile, ms."""
    code, output = loop.run("-m", "baseline", "--ldos-trials=3", "--ldos-block=3")
    assert code == 0, output
    told_hz = np.loadtxt(loop.path / "periodicity")
    told_hz = told_hz[np.isfinite(told_hz)]  # it has none before the second cycle
    assert told_hz.size > RATE_HZ, "the controller manager published nothing"
    return 1000 / told_hz
