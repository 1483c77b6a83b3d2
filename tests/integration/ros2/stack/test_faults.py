"""Faults of the real stack, each caused for real."""

from __future__ import annotations

import re

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from tests.integration.project import make_project
from tests.integration.ros2.stack.conftest import SIM

ONE = ("--ldos-trials=1", "--ldos-warmup=0")

UNREACHABLE = """
import pytest
from pytest_ldos.api import Goal, Pose

@pytest.mark.baseline
def test_far(ldos_stack, ldos_trials, ldos_gate):
    far = Goal("far", pose=Pose((1.4, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0)))
    ldos_gate.check(ldos_trials(ldos_stack, goals=[far], n=2))
"""

KILLS_THE_PLANNER = """
import threading
import psutil, pytest
from pytest_ldos.robot.stack.ros2.backend import Ros2Stack

move = Ros2Stack.move

def move_and_kill(self, goal, *, goal_id, seed, trial, **more):
    if trial is not None and trial.index == 1:
        (planner,) = [each for each in psutil.process_iter() if each.pid in self.pids() and each.name() == "move_group"]
        threading.Timer(1.0, planner.kill).start()
    return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

Ros2Stack.move = move_and_kill
"""

SWITCHES_THE_CONTROLLER_OFF = """
import os, subprocess, sys
from pytest_ldos.robot.stack.ros2.backend import Ros2Stack

move = Ros2Stack.move
SWITCH = '''
import rclpy
from controller_manager_msgs.srv import SwitchController
rclpy.init()
node = rclpy.create_node("switch")
client = node.create_client(SwitchController, "/controller_manager/switch_controller")
assert client.wait_for_service(10.0)
request = SwitchController.Request(deactivate_controllers=["panda_arm_controller"], strictness=2)
future = client.call_async(request)
rclpy.spin_until_future_complete(node, future, timeout_sec=10.0)
assert future.result().ok
'''

def switch_off_and_move(self, goal, *, goal_id, seed, trial, **more):
    if trial is not None:
        environment = {**os.environ, "ROS_DOMAIN_ID": str(self.domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
                       "RMW_IMPLEMENTATION": self.info.rmw}
        subprocess.run([sys.executable, "-c", SWITCH], env=environment, check=True, timeout=60)
    return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

Ros2Stack.move = switch_off_and_move
"""


def configure(project, text: str) -> None:
    project.write("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--strict-markers'\n" + text)


def test_the_planner_dies_while_it_plans(project, leaves_nothing):
    project.write("test_scenario.py", UNREACHABLE)
    project.write("conftest.py", KILLS_THE_PLANNER)
    code, output = project.run("-m", "baseline", "--ldos-warmup=0")
    assert code == exit_codes.REGRESSED, output
    first, second = project.saved().trials
    assert first.outcome == "planning_failed"
    assert second.outcome == "stack_died"
    assert "move_group" in second.message
    assert "was killed by SIGKILL" in second.message


def test_the_controller_refuses(project, leaves_nothing):
    project.write("conftest.py", SWITCHES_THE_CONTROLLER_OFF)
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.REGRESSED, output
    (trial,) = project.saved().trials
    assert (trial.outcome, trial.error_code) == ("control_failed", -4)


def test_a_goal_out_of_reach(project, leaves_nothing):
    project.write("test_scenario.py", UNREACHABLE.replace("n=2", "n=1"))
    code, output = project.run("-m", "baseline", "--ldos-warmup=0")
    assert code == exit_codes.REGRESSED, output
    (trial,) = project.saved().trials
    assert trial.outcome == "planning_failed"
    assert trial.measurements["T1"].number is None


def test_no_action_server(project, leaves_nothing):
    configure(project, "[tool.ldos.stack]\naction = '/move_acton'\nready_timeout_s = 15\n")
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.INVALID, output
    words = r"it was not ready within 15 s: no action server /move_acton \(there is .*/move_action"
    assert re.search(words, output), output


def test_a_wrong_group(project, leaves_nothing):
    configure(project, "[tool.ldos.stack]\ngroup = 'panda_leg'\n")
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.INVALID, output
    assert "the robot has no planning group 'panda_leg' (there is " in output


def test_a_controller_that_is_never_active(project, leaves_nothing):
    configure(project, "[tool.ldos.stack]\ncontrollers = ['panda_leg_controller']\nready_timeout_s = 15\n")
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.INVALID, output
    assert "controller panda_leg_controller is not loaded" in output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def generate_launch_description(:\n", "SyntaxError"),
        ("def generate_launch_description():\n    raise RuntimeError('no robot today')\n", "no robot today"),
        (
            "from launch import LaunchDescription\nfrom launch_ros.actions import Node\n"
            "def generate_launch_description():\n"
            "    return LaunchDescription([Node(package='no_such_package', executable='x')])\n",
            "no_such_package",
        ),
        (
            "from launch import LaunchDescription\nfrom launch.actions import ExecuteProcess\n"
            "def generate_launch_description():\n"
            "    return LaunchDescription([ExecuteProcess(cmd=['sh', '-c', 'echo my last words; exit 3'])])\n",
            "ended with exit code 3",
        ),
    ],
    ids=["syntax", "exception", "package", "process"],
)
def test_a_launch_file_with_an_error(project, text, reason, leaves_nothing):
    project.write("broken.launch.py", text)
    project.write("goals.yaml", "home: {joints: {a: 0}}\ngoal_sets: {reach: [{name: wave, joints: {a: 1}}]}\n")
    configure(project, "[tool.ldos.stack]\nlaunch_file = 'broken.launch.py'\ngoals = 'goals.yaml'\n")
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.INVALID, output
    assert "the ros2 stack did not start: " in output
    assert reason in output
    assert "Traceback" not in output
    if "exit code 3" in reason:
        assert "my last words" in output


def test_ros_without_tracing(project, tmp_path):
    """A prefix in front of the real one has a tracetools that was built without LTTng."""
    prefix = tmp_path / "untraced"
    index = prefix / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    (index / "tracetools").touch()
    program = prefix / "lib/tracetools/status"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho Tracing disabled\nexit 1\n")
    program.chmod(0o755)
    project.environment["AMENT_PREFIX_PATH"] = f"{prefix}:{project.environment['AMENT_PREFIX_PATH']}"
    code, output = project.run("-m", "baseline", *ONE)
    assert code == exit_codes.INVALID, output
    assert "this ROS 2 was built without tracepoints" in output


def test_simultaneous_stacks_do_not_discover_each_other(tmp_path, leaves_nothing):
    projects = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        project = make_project(tmp_path / name)
        project.environment |= {"LDOS_STACK": "ros2", "LDOS_SIM": SIM}
        projects.append(project)
    runs = [
        project.start("-m", "baseline", "--ldos-trials=2", "--ldos-warmup=0", "--ldos-traces=all")
        for project in projects
    ]
    outputs = [process.communicate(timeout=240)[0] for process in runs]
    assert [process.returncode for process in runs] == [0, 0], "\n".join(outputs)
    for project in projects:
        assert [trial.outcome for trial in project.saved().trials] == ["success", "success"]
    for project in projects:
        (trace,) = project.path.glob(".ldos/runs/*/baseline/trace")
        model = build_execution(read_trace(trace))
        assert model.nodes["name"].to_list().count("/move_group") == 1
        assert set(model.trials) == {trial.goal_id for trial in project.saved().trials}
