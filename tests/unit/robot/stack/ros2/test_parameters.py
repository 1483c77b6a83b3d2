"""Parameters of ROS 2 processes, from command lines as launch writes them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

import pytest

from pytest_ldos.robot.stack.ros2.state import find_parameters

AS_LAUNCH_WRITES = """
/**:
  ros__parameters:
    ompl:
      planner_configs: {RRTConnect: {range: 0.5}}
    use_sim_time: true
    joints: !!python/tuple
    - a
    - b
    map: /install/of/base/share/arm/room.yaml
    robot_description: "%s"
/arm/controller:
  ros__parameters:
    gain: 2
""" % (100 * "x")


@pytest.fixture
def start():
    """Starts processes with these arguments, which end with the test; returns the pid."""
    with ExitStack() as stack:

        def run(*arguments: str) -> int:
            command = [sys.executable, "-c", "print(flush=True); input()", *arguments]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            stack.callback(process.terminate)
            assert process.stdout is not None
            process.stdout.readline()
            return process.pid

        yield run


def test_parameters_of_files_and_of_the_command_line(start, tmp_path):
    file = tmp_path / "launch_params_x"
    file.write_text(AS_LAUNCH_WRITES, "utf-8")
    pid = start("--ros-args", "-r", "__node:=move_group", "--params-file", str(file), "-p", "rate:=50", "-p", "no:x")
    found = find_parameters({pid: "move_group"})
    assert len(found.pop("parameter move_group robot_description")) == 12
    assert found == {
        "parameter move_group ompl.planner_configs.RRTConnect.range": "0.5",
        "parameter move_group use_sim_time": "True",
        "parameter move_group joints": "['a', 'b']",
        "parameter move_group map": "room.yaml",
        "parameter move_group /arm/controller.gain": "2",
        "parameter move_group rate": "50",
    }


@pytest.mark.parametrize("text", [None, "a: [", "a: &a {b: *a}", "3"])
def test_unreadable_file_is_named(start, tmp_path, text):
    file = tmp_path / "params.yaml"
    if text is not None:
        file.write_text(text, "utf-8")
    found = find_parameters({start("--params-file", str(file)): "node"})
    assert list(found) == ["parameter node"]


def test_process_that_has_ended_has_none(start):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert find_parameters({ended.pid: "node"}) == {}
