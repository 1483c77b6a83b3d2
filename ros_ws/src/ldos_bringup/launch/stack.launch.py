# Copyright (c) 2026 The pytest-ldos authors
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in
# all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
# THE SOFTWARE.

"""The stack under test: Panda, MoveIt 2 and ros2_control, on Gazebo or on mock hardware."""

import os
from pathlib import Path

import xacro
import yaml
from ament_index_python.packages import get_package_prefix, get_package_share_path, get_packages_with_prefixes
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.substitutions import EqualsSubstitution, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

CONFIG = get_package_share_path("ldos_panda_config") / "config"
CONTROLLERS = CONFIG / "ros2_controllers.yaml"
PLANNING = CONFIG / "ompl_planning.yaml"
TRACE_BUFFER_BYTES = 2**20
MOVE_GROUP_FILES = ("kinematics.yaml", "joint_limits.yaml", "moveit_controllers.yaml")


def generate_launch_description():
    """
    Describe what is started, in this order.

    Tracing is first: nodes are named in a trace by what they emit as they start. Planning is
    last: what the hardware's processes load is loaded while the robot's description is made.
    """
    return LaunchDescription(
        [
            *arguments(),
            OpaqueFunction(function=trace, condition=IfCondition(LaunchConfiguration("trace"))),
            OpaqueFunction(function=hardware_then_planning),
        ]
    )


def arguments():
    return [
        DeclareLaunchArgument(
            "sim",
            default_value="gz",
            choices=["gz", "mock"],
            description="What the controllers move: Gazebo (headless) or mock hardware",
        ),
        DeclareLaunchArgument(
            "controllers",
            default_value=str(CONTROLLERS),
            description="Parameters of the controller manager and its controllers",
        ),
        DeclareLaunchArgument(
            "planning", default_value=str(PLANNING), description="Parameters of move_group's planning pipelines"
        ),
        DeclareLaunchArgument(
            "callback_delay_ms",
            default_value="",
            description="A fault to plant: the callback of joint states takes so much longer",
        ),
        DeclareLaunchArgument(
            "trace",
            default_value="false",
            choices=["true", "false"],
            description="Record the ros2:* and ldos:* tracepoints with LTTng",
        ),
        DeclareLaunchArgument(
            "trace_session", default_value="ldos", description="The recording's name, and that of its directory"
        ),
        DeclareLaunchArgument(
            "trace_directory",
            default_value="",
            description="Where that directory is made; empty: ROS_TRACE_DIR or its default",
        ),
    ]


def trace(context):
    """Record with tracetools_launch, which not every machine has."""
    try:
        from tracetools_launch.action import Trace
        from tracetools_trace.tools.lttng import is_lttng_installed
    except ImportError as error:
        raise RuntimeError(
            f"trace:=true needs the packages tracetools_launch and tracetools_trace ({error}); "
            "install ros-jazzy-tracetools-launch or leave trace out"
        ) from error
    if not is_lttng_installed():
        raise RuntimeError("trace:=true needs LTTng; install lttng-tools and liblttng-ctl-dev, or leave trace out")
    return [
        Trace(
            session_name=LaunchConfiguration("trace_session"),
            base_path=LaunchConfiguration("trace_directory").perform(context) or None,
            events_ust=["ros2:*", "ldos:*"],
            subbuffer_size_ust=TRACE_BUFFER_BYTES,
        )
    ]


def hardware_then_planning(context):
    sim = LaunchConfiguration("sim").perform(context)
    started = gazebo() if sim == "gz" else mock_hardware()
    return [begin_with(started[0], OpaqueFunction(function=planning)), *started]


def planning(context):
    """Robot state publisher and move_group, with one description, which is made once."""
    description = robot_description(context)
    return [state_publisher(context, description), move_group(description, pipelines(context))]


def state_publisher(context, description):
    """Robot state publisher: late, if that is asked for."""
    delay_ms = LaunchConfiguration("callback_delay_ms").perform(context)
    library = Path(get_package_prefix("ldos_bringup")) / "lib" / "ldos_bringup"
    late = library / "liblate_transforms.so"
    fault = {"LD_PRELOAD": joined([late], "LD_PRELOAD"), "LDOS_CALLBACK_DELAY_MS": delay_ms}
    return node("robot_state_publisher", "robot_state_publisher", [description], environment=fault if delay_ms else {})


def pipelines(context):
    """Parameters of planning, which is MoveIt's own where ldos_planner was not built."""
    file = LaunchConfiguration("planning").perform(context)
    if "ldos_planner" in get_packages_with_prefixes():
        return [file]
    nodes = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    parameters = nodes.get("/**", {}).get("ros__parameters", {})
    names = parameters.get("planning_pipelines", [])
    return [file, {name: moveits_own(parameters[name]) for name in names}]


def moveits_own(pipeline):
    """Replace the planner of ldos_planner in a planning pipeline, and leave out its adapter."""
    planners = pipeline.get("planning_plugins", [])
    adapters = pipeline.get("response_adapters", [])
    changed = {
        "planning_plugins": [each.replace("ldos_planner/", "ompl_interface/") for each in planners],
        "response_adapters": [each for each in adapters if not each.startswith("ldos_planner/")],
    }
    return {name: values for name, values in changed.items() if values}


def move_group(description, planning_parameters):
    semantics = (CONFIG / "panda.srdf").read_text(encoding="utf-8")
    return node(
        "moveit_ros_move_group",
        "move_group",
        [
            description,
            {"robot_description_semantic": semantics},
            *(str(CONFIG / name) for name in MOVE_GROUP_FILES),
            *planning_parameters,
        ],
    )


def mock_hardware():
    """Run the controller manager in a process of its own."""
    return [
        spawner(),
        node("controller_manager", "ros2_control_node", [LaunchConfiguration("controllers")]),
    ]


def gazebo():
    """Gazebo, which hosts the controller manager once the robot is in it."""
    world = get_package_share_path("ldos_bringup") / "worlds" / "free_air.sdf"
    create = Node(
        package="ros_gz_sim",
        executable="create",
        output="screen",
        arguments=["-world", world.stem, "-name", "panda", "-topic", "robot_description"],
    )
    return [
        # Not through ros_gz_sim's launch file: its shell outlives a launch that is interrupted.
        ExecuteProcess(
            cmd=["gz", "sim", "-s", "-r", "-v", "1", str(world)],
            name="gazebo",
            output="screen",
            additional_env=gazebo_paths(),
            on_exit=end,
        ),
        node("ros_gz_bridge", "parameter_bridge", [], arguments=["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"]),
        create,
        after(create, spawner()),
    ]


def spawner():
    """One process for all controllers, one after the other: joint states first."""
    return Node(
        package="controller_manager",
        executable="spawner",
        output="screen",
        arguments=["joint_state_broadcaster", "panda_arm_controller", "control_probe"],
        on_exit=end_if_failed,
    )


def begin_with(first, other):
    """Begin another action when a process has started."""
    return RegisterEventHandler(OnProcessStart(target_action=first, on_start=[other]))


def after(first, following):
    """Start an action when another's process has ended well; without it there is no stack."""

    def proceed(event, context):
        return [following] if event.returncode == 0 else end(event, context)

    return RegisterEventHandler(OnProcessExit(target_action=first, on_exit=proceed))


def end_if_failed(event, context):
    return end(event, context) if event.returncode else []


def end(event, context):
    """End the launch, once: ended twice, a recording is destroyed twice."""
    if context.is_shutdown:
        return []
    return [Shutdown(reason=f"{event.process_name} ended with status {event.returncode}")]


def node(package, executable, parameters, arguments=(), environment=None):
    """
    Build a node that the stack cannot do without.

    `use_sim_time` is set for the whole process: for the node alone it can abort move_group.
    """
    sim_time = EqualsSubstitution(LaunchConfiguration("sim"), "gz")
    return Node(
        package=package,
        executable=executable,
        output="screen",
        parameters=parameters,
        arguments=[*arguments],
        additional_env=environment,
        ros_arguments=["-p", ["use_sim_time:=", sim_time]],
        on_exit=end,
    )


def robot_description(context):
    description = get_package_share_path("ldos_panda_config") / "urdf" / "panda.urdf.xacro"
    step_probe = "true" if step_probe_directory().is_dir() else "false"
    text = xacro.process_file(
        str(description),
        mappings={
            "sim": LaunchConfiguration("sim").perform(context),
            "step_probe": step_probe,
            "controllers": LaunchConfiguration("controllers").perform(context),
        },
    ).toprettyxml(indent="  ")
    return {"robot_description": ParameterValue(text, value_type=str)}


def step_probe_directory():
    """Folder of ldos_gz_probe's plugin; absent if it was built without Gazebo."""
    return Path(get_package_prefix("ldos_gz_probe")) / "lib" / "ldos_gz_probe"


def gazebo_paths():
    """Paths for Gazebo's plugins and for meshes of URDFs (package://)."""
    plugins = [Path(get_package_prefix("gz_ros2_control")) / "lib", step_probe_directory()]
    meshes = [get_package_share_path("moveit_resources_panda_description").parent]
    return {
        "GZ_SIM_SYSTEM_PLUGIN_PATH": joined(plugins, "GZ_SIM_SYSTEM_PLUGIN_PATH"),
        "GZ_SIM_RESOURCE_PATH": joined(meshes, "GZ_SIM_RESOURCE_PATH"),
    }


def joined(paths, variable):
    return os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get(variable)])])
