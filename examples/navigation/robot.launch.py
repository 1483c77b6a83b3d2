"""Start Nav2 with its loopback simulator: a robot that moves exactly as commanded, in a map of one room."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import ExecuteProcess, RegisterEventHandler, Shutdown
from launch.event_handlers import OnProcessIO
from launch_ros.actions import Node

HERE = Path(__file__).parent
PARAMETERS = str(HERE / "nav2.yaml")
MANAGED = ["planner_server", "controller_server", "behavior_server", "bt_navigator"]
START = "{header: {frame_id: map}, pose: {pose: {orientation: {w: 1.0}}}}"


def generate_launch_description():
    map_manager = manager("map_manager", ["map_server"])
    simulator = node("nav2_loopback_sim", "loopback_simulator")
    return LaunchDescription(
        [
            node("nav2_map_server", "map_server", {"yaml_filename": str(HERE / "room.yaml")}),
            node("nav2_planner", "planner_server"),
            node("nav2_controller", "controller_server"),
            node("nav2_behaviors", "behavior_server"),
            node("nav2_bt_navigator", "bt_navigator"),
            map_manager,
            # The simulator asks for the map only once; costmaps are active only when there is a robot.
            once(map_manager, b"Managed nodes are active", simulator, *robot()),
            once(simulator, b"Received initial pose", manager("navigation_manager", MANAGED)),
        ]
    )


def once(process, text, *actions):
    """Start actions when a process has written a text."""
    return RegisterEventHandler(
        OnProcessIO(target_action=process, on_stderr=lambda event: actions if text in event.text else None)
    )


def robot():
    """Pose of the laser, and initial pose of the robot."""
    yield Node(
        package="tf2_ros",
        executable="static_transform_publisher",
        arguments=["--frame-id", "base_link", "--child-frame-id", "base_scan"],
    )
    yield ExecuteProcess(
        cmd=[
            *["ros2", "topic", "pub", "--once", "--wait-matching-subscriptions", "1"],
            *["/initialpose", "geometry_msgs/msg/PoseWithCovarianceStamped", START],
        ],
    )


def manager(name, nodes):
    parameters = {"node_names": nodes, "autostart": True}
    return node("nav2_lifecycle_manager", "lifecycle_manager", parameters, name=name)


def node(package, executable, *parameters, name=None):
    return Node(
        package=package,
        executable=executable,
        name=name,
        parameters=[PARAMETERS, *parameters],
        output="screen",
        on_exit=Shutdown(reason=f"{executable} ended"),
    )
