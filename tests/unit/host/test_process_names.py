"""What processes are called."""

from __future__ import annotations

import pytest

from pytest_ldos.host.process_names import name_of_command, process_names
from tests.builders.busy import busy_process


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/lib/moveit_ros_move_group/move_group", "--ros-args"], "move_group"),
        (["/usr/bin/python3.12", "-u", "-m", "robot.nodes.simulator", "{}"], "simulator"),
        (["python3", "/opt/ros/bin/ros2", "launch"], "ros2"),
        (["python3", "-c", "import time"], "python3"),
        (["python3"], "python3"),
        (["python3", "-m"], "python3"),
        ([], ""),
    ],
)
def test_an_interpreter_is_called_as_what_it_runs(command, name):
    assert name_of_command(command) == name


def test_processes_that_are_gone_have_none():
    with busy_process() as process:
        assert process_names([process.pid, 4_194_303]) == {process.pid: name_of_command(process.args)}
