"""An arm that is no Panda, on mock hardware, in a namespace of its own."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessExit
from launch_ros.actions import Node

CONFIG = Path(__file__).parents[1] / "config"
CELL = "cell"


def generate_launch_description() -> LaunchDescription:
    states, trajectories = spawner("weaver_states"), spawner("weaver_trajectories", "control_probe")
    description = {"robot_description": (CONFIG / "robot.urdf").read_text("utf-8")}
    semantics = {"robot_description_semantic": (CONFIG / "robot.srdf").read_text("utf-8")}
    return LaunchDescription(
        [
            node("robot_state_publisher", "robot_state_publisher", description),
            node("controller_manager", "ros2_control_node", str(CONFIG / "controllers.yaml")),
            node("moveit_ros_move_group", "move_group", description, semantics, str(CONFIG / "move_group.yaml")),
            states,
            RegisterEventHandler(OnProcessExit(target_action=states, on_exit=[trajectories])),
        ]
    )


def node(package: str, executable: str, *parameters: dict[str, str] | str) -> Node:
    return Node(
        package=package,
        executable=executable,
        namespace=CELL,
        parameters=list(parameters),
        output="screen",
        on_exit=Shutdown(reason=f"{executable} ended"),
    )


def spawner(*controllers: str) -> Node:
    return Node(
        package="controller_manager",
        executable="spawner",
        namespace=CELL,
        arguments=list(controllers),
        output="screen",
    )
