"""Start the arm of a MoveIt configuration package on mock hardware."""

from ament_index_python.packages import get_package_share_path
from launch import LaunchDescription
from launch.actions import Shutdown
from launch_ros.actions import Node
from moveit_configs_utils import MoveItConfigsBuilder

ROBOT = "fanuc"
PACKAGE = f"moveit_resources_{ROBOT}_moveit_config"


def generate_launch_description():
    robot = (
        MoveItConfigsBuilder(f"moveit_resources_{ROBOT}")
        .robot_description(file_path=f"config/{ROBOT}.urdf.xacro")
        .planning_pipelines(pipelines=["ompl"])
        .to_moveit_configs()
    )
    controllers = get_package_share_path(PACKAGE) / "config" / "ros2_controllers.yaml"
    return LaunchDescription(
        [
            node("robot_state_publisher", "robot_state_publisher", robot.robot_description),
            node("controller_manager", "ros2_control_node", str(controllers)),
            node("moveit_ros_move_group", "move_group", robot.to_dict()),
            Node(
                package="controller_manager",
                executable="spawner",
                arguments=["joint_state_broadcaster", f"{ROBOT}_controller"],
                output="screen",
            ),
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
