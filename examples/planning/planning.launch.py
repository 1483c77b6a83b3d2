"""Start move_group alone, for a Panda: planning needs neither controllers nor a robot."""

from launch import LaunchDescription
from launch.actions import Shutdown
from launch_ros.actions import Node
from moveit_configs_utils import MoveItConfigsBuilder


def generate_launch_description():
    panda = (
        MoveItConfigsBuilder("moveit_resources_panda")
        .robot_description(file_path="config/panda.urdf.xacro")
        .planning_pipelines(pipelines=["ompl"])
        .to_moveit_configs()
    )
    return LaunchDescription(
        [
            Node(
                package="moveit_ros_move_group",
                executable="move_group",
                parameters=[panda.to_dict()],
                output="screen",
                on_exit=Shutdown(reason="move_group ended"),
            ),
        ]
    )
