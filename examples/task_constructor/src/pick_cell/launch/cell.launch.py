"""Start a Panda with its hand on mock hardware, and a move_group that executes solutions of tasks."""

from ament_index_python.packages import get_package_share_path
from launch import LaunchDescription
from launch.actions import Shutdown
from launch_ros.actions import Node
from moveit_configs_utils import MoveItConfigsBuilder


def generate_launch_description():
    panda = (
        MoveItConfigsBuilder("moveit_resources_panda")
        .robot_description(file_path="config/panda.urdf.xacro")
        .trajectory_execution(file_path="config/gripper_moveit_controllers.yaml")
        .planning_scene_monitor(publish_robot_description_semantic=True)
        .planning_pipelines(pipelines=["ompl"])
        .to_moveit_configs()
    )
    capabilities = {"capabilities": "move_group/ExecuteTaskSolutionCapability"}
    config = get_package_share_path("moveit_resources_panda_moveit_config") / "config"
    controllers = ["joint_state_broadcaster", "panda_arm_controller", "panda_hand_controller"]
    return LaunchDescription(
        [
            node("robot_state_publisher", "robot_state_publisher", panda.robot_description),
            node("controller_manager", "ros2_control_node", str(config / "ros2_controllers.yaml")),
            node("moveit_ros_move_group", "move_group", panda.to_dict(), capabilities),
            Node(package="controller_manager", executable="spawner", arguments=controllers, output="screen"),
        ]
    )


def node(package, executable, *parameters):
    return Node(
        package=package,
        executable=executable,
        parameters=list(parameters),
        output="screen",
        on_exit=Shutdown(reason=f"{executable} ended"),
    )
