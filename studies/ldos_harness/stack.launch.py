"""The Panda, started as by the harness: ``ros2 control load_controller`` after so many seconds."""

import importlib.util

from ament_index_python.packages import get_package_share_path
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, TimerAction
from launch.substitutions import EqualsSubstitution, LaunchConfiguration
from launch_ros.actions import SetParameter

PARTS = get_package_share_path("ldos_bringup") / "launch" / "stack.launch.py"
_spec = importlib.util.spec_from_file_location("ldos_bringup_stack", PARTS)
parts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(parts)


def generate_launch_description():
    simulated = EqualsSubstitution(LaunchConfiguration("sim"), "gz")
    defaults = {"use_sim_time": simulated, "arm_after_s": "3.0", "move_group": "true"}
    return LaunchDescription(
        [
            *parts.arguments(),
            *(DeclareLaunchArgument(name, default_value=value) for name, value in defaults.items()),
            SetParameter("use_sim_time", LaunchConfiguration("use_sim_time")),
            OpaqueFunction(function=hardware),
            OpaqueFunction(function=planning),
            OpaqueFunction(function=controllers),
        ]
    )


def hardware(context):
    """Gazebo, without the spawner, which is the last of its actions, or a controller manager on mock hardware."""
    if LaunchConfiguration("sim").perform(context) == "gz":
        return parts.gazebo()[:-1]
    return [parts.node("controller_manager", "ros2_control_node", [LaunchConfiguration("controllers")])]


def planning(context):
    """Robot state publisher, and move_group if it is asked for."""
    state_publisher, *others = parts.planning(context)
    return [state_publisher, *(others if LaunchConfiguration("move_group").perform(context) == "true" else ())]


def controllers(context):
    """The arm's controller at its time, whatever became of the broadcaster."""
    arm_after_s = float(LaunchConfiguration("arm_after_s").perform(context))
    return [
        TimerAction(period=1.0, actions=[loaded("joint_state_broadcaster")]),
        TimerAction(period=arm_after_s, actions=[loaded("panda_arm_controller")]),
    ]


def loaded(name):
    command = ["ros2", "control", "load_controller", "--set-state", "active", name]
    return ExecuteProcess(cmd=command, name=f"load_{name}", output="screen")
