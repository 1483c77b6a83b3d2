"""Start Nav2 with its loopback simulator: a robot that moves exactly as told, in a map of one room."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import ExecuteProcess, Shutdown
from launch_ros.actions import Node

HERE = Path(__file__).parent
PARAMETERS = str(HERE / "nav2.yaml")
MANAGED = ["map_server", "planner_server", "controller_server", "behavior_server", "bt_navigator"]
START = "{header: {frame_id: map}, pose: {pose: {orientation: {w: 1.0}}}}"


def generate_launch_description():
    return LaunchDescription(
        [
            node("nav2_loopback_sim", "loopback_simulator"),
            node("nav2_map_server", "map_server", {"yaml_filename": str(HERE / "room.yaml")}),
            node("nav2_planner", "planner_server"),
            node("nav2_controller", "controller_server"),
            node("nav2_behaviors", "behavior_server"),
            node("nav2_bt_navigator", "bt_navigator"),
            node("nav2_lifecycle_manager", "lifecycle_manager", {"node_names": MANAGED, "autostart": True}),
            Node(
                package="tf2_ros",
                executable="static_transform_publisher",
                arguments=["--frame-id", "base_link", "--child-frame-id", "base_scan"],
            ),
            # The simulator begins when it is told where the robot is.
            ExecuteProcess(
                cmd=[
                    *["ros2", "topic", "pub", "--once", "--wait-matching-subscriptions", "1"],
                    *["/initialpose", "geometry_msgs/msg/PoseWithCovarianceStamped", START],
                ],
            ),
        ]
    )


def node(package, executable, *parameters):
    return Node(
        package=package,
        executable=executable,
        parameters=[PARAMETERS, *parameters],
        output="screen",
        on_exit=Shutdown(reason=f"{executable} ended"),
    )
