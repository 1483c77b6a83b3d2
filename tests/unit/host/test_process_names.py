"""Names of processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_ldos.host.processes import name_of_command, process_names
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
def test_interpreter_is_named_after_its_program(command, name):
    assert name_of_command(command) == name


WORKS = """
import sys
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-W", "ignore::DeprecationWarning:setuptools.command.install:1"),
        ("-Wignore",),
        ("-BuW", "ignore"),
        ("-X", "faulthandler"),
        ("-Xdev", "-O"),
        ("--check-hash-based-pycs", "never"),
        ("-s", "--"),
    ],
)
@pytest.mark.parametrize("program", [("{folder}/set_up.py", "-m", "install"), ("-m", "robot.set_up.work", "-c")])
def test_interpreter_with_options_is_named_after_its_program(tmp_path, options, program):
    """Verified with Python itself, which runs the program."""
    if options[-1:] == ("--",) and program[0] == "-m":
        pytest.skip("behind -- there are no options")
    package = tmp_path / "robot/set_up"
    package.mkdir(parents=True)
    for place in (tmp_path / "set_up.py", package / "work.py"):
        place.write_text(WORKS)
    command = [sys.executable, *options, *(word.format(folder=tmp_path) for word in program)]
    process = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"\n"
        assert process_names([process.pid]) == {process.pid: "work" if program[0] == "-m" else "set_up.py"}
    finally:
        process.communicate()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python3", "-W", "ignore", "-c", "import time", "setup.py"], "python3"),
        (["python3", "-Wignore", "-cimport time"], "python3"),
        (["python3", "-umhttp.server"], "server"),
        (["python3", "-u", "-", "setup.py"], "python3"),
        (["python3", "-W"], "python3"),
        (["pypy3.10", "-X", "jit-off", "/opt/tool.py"], "tool.py"),
        (["python3.14t", "-X", "gil=0", "/opt/tool.py"], "tool.py"),
        (["python3-config", "--libs"], "python3-config"),
    ],
)
def test_values_of_options_are_no_names(command, name):
    assert name_of_command(command) == name


def test_ended_processes_have_no_name():
    with busy_process() as process:
        assert process_names([process.pid, 4_194_303]) == {process.pid: name_of_command(process.args)}
