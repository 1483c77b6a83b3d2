"""A launch begins on the stack's CPUs, which its later processes inherit."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_ldos.host.cpu import our_cpus
from pytest_ldos.robot.stack.ros2.backend import Ros2Backend
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StackKind
from tests.fakes.rig import FakeRecorder

FIRST, LAST = min(our_cpus()), max(our_cpus())


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [("", our_cpus()), (f"{LAST}", {LAST}), (f"move_group={LAST} rest={FIRST}", {FIRST}), (f"gz={LAST}", {LAST})],
)
def test_cpus_of_what_the_launch_starts(tmp_path, cpus, expected):
    launch_file = tmp_path / "stack.launch.py"
    launch_file.touch()
    spec = StackSpec(kind=StackKind.ROS2, cpus=cpus, ros2=Ros2Spec(launch_file=str(launch_file)))
    backend = Ros2Backend(spec, recorder=FakeRecorder(tmp_path / "trace"), log_directory=tmp_path)
    command = backend._launch_command()
    begin = command[: command.index(sys.executable)]
    program = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    done = subprocess.run([*begin, *program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str(sorted(expected))
