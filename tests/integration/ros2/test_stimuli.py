"""Each stimulus against nodes of real ROS 2 that are no arm, from settings to the record."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pytest_ldos.host.process_resources import TaskExits
from pytest_ldos.robot.stack.ros2.installed import PROGRAM, ZENOH, ros2_available
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StimulusKind
from tests.builders.needs import lttng_here
from tests.integration.project import Project, left_in_memory, make_project, running, shared_memory

NODES = StackSpec(stimulus=StimulusKind.WINDOW, ros2=Ros2Spec(launch_file="robot/robot.launch.py", controllers=()))
_REASONS = [each.reason for each in (ros2_available(NODES), lttng_here()) if not each.ok]
pytestmark = pytest.mark.skipif(bool(_REASONS), reason="; ".join(_REASONS) or "ROS 2 is sourced")

ROBOT = '''
import sys, time
import rclpy
from rclpy.action import ActionServer
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

SLOW_S = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0

class Robot(Node):
    """Drives to given goals, answers calls, and answers each message with another."""

    def __init__(self):
        super().__init__("robot")
        self.said = self.create_publisher(String, "echo", 10)
        self.moves = self.create_publisher(String, "moving", 10)
        self.create_subscription(String, "words", self.hear, 10)
        self.create_service(Trigger, "press", self.press)
        self.create_timer(0.05, lambda: self.said.publish(String(data="tick")))
        try:
            from nav2_msgs.action import NavigateToPose
        except ModuleNotFoundError:
            return
        self.type = NavigateToPose
        self.server = ActionServer(self, NavigateToPose, "navigate_to_pose", self.drive)

    def hear(self, word):
        time.sleep(SLOW_S)
        self.said.publish(word)

    def press(self, request, response):
        time.sleep(0.002 + SLOW_S)
        response.success = True
        return response

    def drive(self, goal):
        x = goal.request.pose.pose.position.x
        time.sleep(0.02 + SLOW_S)
        self.moves.publish(String(data="moving"))
        for _ in range(3):
            goal.publish_feedback(self.type.Feedback(distance_remaining=x))
            time.sleep(0.05)
        result = self.type.Result()
        if x > 9:
            goal.abort()
            result.error_code = 203
            return result
        goal.succeed()
        return result

rclpy.init()
robot = Robot()
executor = MultiThreadedExecutor(4)
executor.add_node(robot)
try:
    executor.spin()
except (KeyboardInterrupt, ExternalShutdownException):
    pass
'''

ARM = """
import sys, time
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

BUSY_S, RATE_HZ = float(sys.argv[1]), float(sys.argv[2])

class Arm(Node):
    \"\"\"Tells where its only joint is.\"\"\"

    def __init__(self):
        super().__init__("arm")
        self.states = self.create_publisher(JointState, "joint_states", 10)
        self.create_timer(1 / RATE_HZ, self.tell)

    def tell(self):
        began = time.thread_time()
        while time.thread_time() < began + BUSY_S:
            pass
        state = JointState(name=["hinge"], position=[time.monotonic() % 1])
        state.header.stamp = self.get_clock().now().to_msg()
        self.states.publish(state)

rclpy.init()
try:
    rclpy.spin(Arm())
except (KeyboardInterrupt, ExternalShutdownException):
    pass
"""

TWINS = """
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch_ros.actions import Node

HINGE = (
    '<robot name="hinge"><link name="base"/><link name="arm"/><joint name="hinge" type="continuous">'
    '<parent link="base"/><child link="arm"/></joint></robot>'
)

def robot(side, busy, rate):
    command = [sys.executable, str(Path(__file__).with_name("arm.py")), busy, rate]
    return [
        ExecuteProcess(cmd=[*command, "--ros-args", "-r", f"__ns:={side}"], name="arm"),
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            namespace=side,
            remappings=[("/tf", "tf"), ("/tf_static", "tf_static")],
            parameters=[{"robot_description": HINGE, "publish_frequency": 200.0}],
        ),
    ]

def generate_launch_description():
    return LaunchDescription([*robot("/left", "0.004", "40"), *robot("/right", "0.0", "20")])
"""

TWO_SIDES = """seconds = 1.0

[tool.ldos]
metrics = [
  "rate:/left/joint_states", "rate:/right/joint_states", "cpu:node:/left/arm", "cpu:node:/right/arm", "cpu:arm",
  "path:left arm:p50", "path:right arm:p50",
]

[[tool.ldos.paths]]
name = "left arm"
via = ["/left/joint_states", "/left/tf"]

[[tool.ldos.paths]]
name = "right arm"
via = ["/right/joint_states", "/right/tf"]
"""

MORTAL = """
import sys, time
import rclpy
from rclpy.node import Node
from std_msgs.msg import String

rclpy.init()
node = Node("mortal")
said = node.create_publisher(String, "/alive", 10)
ends_at = time.monotonic() + 1.0
while time.monotonic() < ends_at:
    began = time.thread_time()
    while time.thread_time() < began + 0.02:
        pass
    said.publish(String(data="alive"))
    time.sleep(0.02)
"""

RESPAWNED = """
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import ExecuteProcess

def generate_launch_description():
    mortal = str(Path(__file__).with_name("mortal.py"))
    return LaunchDescription([ExecuteProcess(cmd=[sys.executable, mortal], name="mortal", respawn=True)])
"""

LAUNCH = """
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import LaunchConfiguration

def generate_launch_description():
    robot = str(Path(__file__).with_name("robot.py"))
    return LaunchDescription([
        DeclareLaunchArgument("slow", default_value="0"),
        ExecuteProcess(cmd=[sys.executable, robot, LaunchConfiguration("slow")], name="robot"),
    ])
"""

TWO_ROBOTS = """
import sys
from pathlib import Path
from launch import LaunchDescription
from launch.actions import ExecuteProcess

def robot(side, slow):
    command = [sys.executable, str(Path(__file__).with_name("robot.py")), slow]
    return ExecuteProcess(cmd=[*command, "--ros-args", "-r", f"__ns:={side}"], name=side.strip("/"))

def generate_launch_description():
    return LaunchDescription([robot("/left", "0"), robot("/right", "0.4")])
"""

GOALS = """
goal_sets:
  rooms:
    - {name: near, message: {pose: {header: {frame_id: map}, pose: {position: {x: 1.0}, orientation: {w: 1.0}}}}}
    - {name: far, message: {pose: {header: {frame_id: map}, pose: {position: {x: %s}, orientation: {w: 1.0}}}}}
reset: {pose: {header: {frame_id: map}}}
"""

STACK = """
[tool.pytest.ini_options]

[tool.ldos.stack]
launch_file = "robot.launch.py"
stimulus = "{stimulus}"
{more}

[tool.ldos.stimulus.{stimulus}]
"""

needs_nav2 = pytest.mark.skipif(
    importlib.util.find_spec("nav2_msgs") is None, reason="nav2_msgs is not in the sourced ROS 2"
)
needs_bags = pytest.mark.skipif(
    importlib.util.find_spec("rosbag2_py") is None, reason="rosbag2_py is not in the sourced ROS 2"
)


with TaskExits() as _heard:
    KEEPS_RECORDS = _heard.is_whole


def is_package(name: str) -> bool:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(":")
    return any((Path(prefix) / "share" / name).is_dir() for prefix in prefixes if prefix)


@pytest.fixture
def leaves_nothing() -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process or shared memory behind."""
    before, memory = running(), shared_memory()

    def check() -> None:
        assert running() <= before
        assert left_in_memory(memory) == set()

    yield check
    check()


@pytest.fixture(params=["rmw_fastrtps_cpp", "rmw_cyclonedds_cpp", ZENOH])
def robot(request, tmp_path) -> Project:
    """A project whose stack is one node, on each middleware that there is."""
    found = ros2_available(replace(NODES, ros2=replace(NODES.ros2, rmw=request.param)))
    if not found.ok:
        pytest.skip(found.reason)
    made = make_project(tmp_path)
    made.environment |= {"LDOS_STACK": "ros2", "LDOS_RMW": request.param}
    made.write("robot.py", ROBOT)
    made.write("robot.launch.py", LAUNCH)
    return made


def measure(robot: Project, stimulus: str, details: str, *arguments: str, more: str = "") -> tuple[int, str]:
    robot.write("pyproject.toml", STACK.format(stimulus=stimulus, more=more) + details)
    return robot.run("-m", "baseline", "--ldos-trials=2", "--ldos-block=2", *arguments)


NAVIGATE = 'name = "/navigate_to_pose"\ntype = "nav2_msgs/action/NavigateToPose"\n'


@needs_nav2
def test_an_action_with_begin_of_execution(robot, leaves_nothing):
    robot.write("goals.yaml", GOALS % "2.0")
    more = 'goals = "goals.yaml"\nready = ["topic:/echo", "service:/press"]'
    code, output = measure(robot, "action", NAVIGATE + 'executing = "/moving"\n', more=more)
    assert code == 0, output
    saved = robot.saved()
    assert [trial.goal for trial in saved.trials] == ["near", "far"]
    assert [metric.name for metric in saved.metrics] == ["T1", "T2", "T4"]
    for trial in saved.trials:
        assert trial.measurements["T4"].source.name == "markers"
        assert 20 < trial.measurements["T1"].number < 1000
        assert 150 < trial.measurements["T2"].number < 2000


@needs_nav2
@pytest.mark.parametrize(("side", "bounds_ms"), [("left", (20, 400)), ("right", (400, 2000))])
def test_named_robot_of_two_is_driven(robot, side, bounds_ms):
    """The right one takes 0.4 s more to begin."""
    robot.write("robot.launch.py", TWO_ROBOTS)
    robot.write("goals.yaml", GOALS % "2.0")
    details = NAVIGATE.replace("/navigate", f"/{side}/navigate") + f'executing = "/{side}/moving"\n'
    more = 'goals = "goals.yaml"\nready = ["topic:/left/echo", "topic:/right/echo"]'
    code, output = measure(robot, "action", details, more=more)
    assert code == 0, output
    low, high = bounds_ms
    for trial in robot.saved().trials:
        assert low < trial.measurements["T1"].number < high


@needs_nav2
def test_a_goal_that_the_server_aborts(robot):
    robot.write("goals.yaml", GOALS % "10.0")
    code, output = measure(robot, "action", NAVIGATE, more='goals = "goals.yaml"')
    assert code != 0
    assert "error code 203" in output
    assert [trial.outcome for trial in robot.saved().trials] == ["success", "aborted"]


@needs_nav2
def test_a_field_that_the_goal_does_not_have(robot):
    robot.write("goals.yaml", (GOALS % "2.0").replace("frame_id", "frame_di", 1))
    code, output = measure(robot, "action", NAVIGATE, more='goals = "goals.yaml"')
    assert code != 0
    assert "Header has no field 'frame_di'" in output
    assert "did you mean 'frame_id'?" in output


def test_a_type_that_is_not_installed(robot):
    robot.write("goals.yaml", GOALS % "2.0")
    details = 'name = "/navigate_to_pose"\ntype = "nav3_msgs/action/NavigateToPose"\n'
    code, output = measure(robot, "action", details, more='goals = "goals.yaml"')
    assert code != 0
    assert "nav3_msgs" in output
    assert "Traceback" not in output


def test_calls_of_a_service(robot, leaves_nothing):
    code, output = measure(robot, "service", 'name = "/press"\ntype = "std_srvs/srv/Trigger"\ncalls = 5\n')
    assert code == 0, output
    saved = robot.saved()
    assert [metric.name for metric in saved.metrics] == ["call", "call_p99"]
    for trial in saved.trials:
        assert 2 < trial.measurements["call"].number < 500
        assert trial.measurements["call"].number <= trial.measurements["call_p99"].number


def test_a_window(robot, leaves_nothing):
    code, output = measure(robot, "window", "seconds = 0.5\n", more='ready = ["topic:/echo"]')
    assert code == 0, output
    assert all(trial.succeeded for trial in robot.saved().trials)


needs_state_publisher = pytest.mark.skipif(
    not is_package("robot_state_publisher"),
    reason="robot_state_publisher is not in the sourced ROS 2",
)


@needs_state_publisher
def test_two_robots_in_namespaces_are_distinguished(robot, leaves_nothing):
    robot.write("arm.py", ARM)
    robot.write("robot.launch.py", TWINS)
    more = 'ready = ["topic:/left/tf", "topic:/right/tf"]'
    code, output = measure(robot, "window", TWO_SIDES, more=more)
    assert code == 0, output
    for trial in robot.saved().trials:
        found = {name: each.number for name, each in trial.measurements.items()}
        assert found["rate_left_joint_states"] == pytest.approx(40, rel=0.2)
        assert found["rate_right_joint_states"] == pytest.approx(20, rel=0.2)
        assert found["cpu_node_left_arm"] > found["cpu_node_right_arm"] + 80
        assert found["cpu_arm"] == pytest.approx(found["cpu_node_left_arm"] + found["cpu_node_right_arm"])
        passages = [trial.measurements[f"path_{side}_arm_p50"].details["passages"] for side in ("left", "right")]
        assert passages[0] > 1.5 * passages[1] > 15
        assert set(trial.segments_ns) >= {"left arm", "right arm"}


@needs_state_publisher
def test_missing_robot_of_two_is_named(robot):
    robot.write("arm.py", ARM)
    robot.write("robot.launch.py", TWINS.replace('*robot("/right", "0.0", "20")', ""))
    more = 'ready = ["topic:/left/tf", "topic:/right/tf"]\nready_timeout_s = 5'
    code, output = measure(robot, "window", "seconds = 0.5\n", more=more)
    assert code != 0
    assert "no message on /right/tf" in output
    assert "no message on /left/tf" not in output


def test_unknown_node_is_refused_with_the_nearest_name(robot):
    details = 'seconds = 0.5\n\n[tool.ldos]\nmetrics = ["cpu:node:/robto"]\n'
    code, output = measure(robot, "window", details, more='ready = ["topic:/echo"]')
    assert code != 0
    assert "metric 'cpu:node:/robto': no node of the stack is called '/robto'" in output
    assert "did you mean '/robot'?" in output
    assert robot.saved().trials == ()


@pytest.mark.skipif(not KEEPS_RECORDS, reason="this kernel keeps no records of ended threads")
def test_process_restarted_within_a_trial_is_counted_completely(robot, leaves_nothing):
    """Each lives for a second and works for half of it; a trial of ten seconds sees the end of two at least."""
    robot.write("mortal.py", MORTAL)
    robot.write("robot.launch.py", RESPAWNED)
    metrics = '["cpu:mortal", "cpu:node:/mortal", "memory:mortal", "switches:mortal", "faults:mortal"]'
    details = f"seconds = 10.0\n\n[tool.ldos]\nmetrics = {metrics}\n"
    code, output = measure(robot, "window", details, more='ready = ["topic:/alive"]')
    assert code == 0, output
    for trial in robot.saved().trials:
        found = trial.measurements
        assert found["cpu_mortal"].details["ended"] >= 2
        assert found["cpu_mortal"].number > 1000, "one process alone has half of that"
        assert found["cpu_node_mortal"].number <= found["cpu_mortal"].number
        assert 5 < found["memory_mortal"].number < 300
        assert found["switches_mortal"].number > 20 * found["cpu_mortal"].details["ended"]
        assert found["faults_mortal"].number > 1000, "each loads Python and rclpy"


@pytest.mark.parametrize("robot", [ZENOH], indirect=True)
def test_dead_zenoh_router_ends_the_trial(robot, leaves_nothing):
    robot.write("pyproject.toml", STACK.format(stimulus="window", more='ready = ["topic:/echo"]') + "seconds = 2.0\n")
    process = robot.start("-m", "baseline", "--ldos-trials=3", "--ldos-block=3", "-s")
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 1 of 3" in line:
            break
    (router,) = (each for each in psutil.Process(process.pid).children(recursive=True) if each.name() == PROGRAM)
    router.kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert f"{PROGRAM} was killed by SIGKILL" in output
    assert [trial.outcome for trial in robot.saved().trials][:2] == ["success", "stack_died"]


def test_zenohs_log_on_standard_output_disturbs_no_conversation(robot):
    """Zenoh logs there, and there our programs speak."""
    robot.environment |= {"RUST_LOG": "zenoh=debug"}
    details = 'name = "/press"\ntype = "std_srvs/srv/Trigger"\n'
    code, output = measure(robot, "service", details)
    assert code == 0, output
    assert all(trial.succeeded for trial in robot.saved().trials)


def test_part_that_never_becomes_ready_is_named(robot):
    more = 'ready = ["topic:/nothing", "active:/robot"]\nready_timeout_s = 5'
    code, output = measure(robot, "window", "seconds = 0.5\n", more=more)
    assert code != 0
    assert "no message on /nothing" in output
    assert "not active: /robot" in output


@pytest.fixture(params=["mcap", "sqlite3"])
def bag(request, robot) -> Project:
    """Twenty words in one second, written by rosbag2 itself."""
    rosbag2_py = pytest.importorskip("rosbag2_py", reason="rosbag2_py is not in the sourced ROS 2")
    from rclpy.serialization import serialize_message
    from std_msgs.msg import String

    writer = rosbag2_py.SequentialWriter()
    storage = rosbag2_py.StorageOptions(uri=str(robot.path / "drive"), storage_id=request.param)
    writer.open(storage, rosbag2_py.ConverterOptions("cdr", "cdr"))
    writer.create_topic(rosbag2_py.TopicMetadata(0, "/words", "std_msgs/msg/String", "cdr"))
    for number in range(20):
        writer.write("/words", serialize_message(String(data=str(number))), number * 50_000_000)
    del writer
    return robot


@needs_bags
def test_a_bag(bag, leaves_nothing):
    details = 'path = "drive"\ntopics = ["/words"]\n'
    code, output = measure(bag, "bag", details, more='ready = ["topic:/echo"]')
    assert code == 0, output
    saved = bag.saved()
    assert all(trial.succeeded for trial in saved.trials)
    assert len(saved.fingerprint.versions["bag"]) == 16
    for trial in saved.trials:
        assert 0.9e9 < trial.stamps_ns["result"] - trial.stamps_ns["goal_sent"] < 5e9


@needs_bags
@pytest.mark.parametrize(
    ("details", "message"),
    [
        ('topics = ["/wrods"]', "did you mean '/words'?"),
        ("start_s = 0.5\nduration_s = 2", "shorter than a trial"),
    ],
)
def test_a_bag_that_does_not_fit(bag, details, message):
    code, output = measure(bag, "bag", f'path = "drive"\n{details}\n')
    assert code != 0
    assert message in output
    assert "Traceback" not in output


@needs_bags
def test_bag_without_receivers(bag):
    bag.write("robot.py", ROBOT.replace('"words"', '"other"'))
    code, output = measure(bag, "bag", 'path = "drive"\n')
    assert code != 0
    assert "no node in the stack subscribes to a topic of the bag: /words" in output
