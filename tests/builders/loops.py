"""A control loop of real ros2_control on mock hardware, as the stack of a test."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ldos.host.availability import find_ros_packages
from pytest_ldos.robot.stack.ros2.installed import ros2_available
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StimulusKind
from tests.builders.needs import lttng_here

_LOOP = StackSpec(stimulus=StimulusKind.WINDOW, ros2=Ros2Spec(launch_file="loop/loop.launch.py", controllers=("a",)))

HINGE = """<robot name="hinge"><link name="base"/><link name="arm"/>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/></joint>
<ros2_control name="hinge" type="system"><hardware><plugin>mock_components/GenericSystem</plugin></hardware>
<joint name="hinge"><command_interface name="position"/><state_interface name="position"/></joint>
</ros2_control></robot>"""


def why_no_loop(packages: Sequence[str]) -> str:
    """Returns why a loop cannot be recorded here with these ROS packages; empty if it can."""
    needs = (ros2_available(_LOOP), lttng_here(), find_ros_packages(packages))
    return "; ".join(each.reason for each in needs if not each.ok)


def nodes_of(rate_hz: int, parameters: str) -> str:
    """Launch actions of state publisher and controller manager; `parameters` names a variable of the launch file."""
    return f"""Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            parameters=[{{"robot_description": ROBOT}}],
        ),
        Node(
            package="controller_manager",
            executable="ros2_control_node",
            parameters=[{{"update_rate": {rate_hz}}}, {parameters}],
        ),"""
