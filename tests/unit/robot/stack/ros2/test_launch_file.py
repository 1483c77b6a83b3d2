"""Selection of the launch file, and its arguments."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.ros2.state import (
    GAZEBO_PACKAGES,
    find_launch_file,
    launch_arguments,
    resolve_simulation,
)
from pytest_ldos.scenario.model import Ros2Spec
from pytest_ldos.scenario.words import Simulation


def test_launch_file_of_a_package(workspace):
    share = workspace.add("my_robot", files={"launch/stack.launch.py": "", "stack.rviz": ""})
    assert find_launch_file("my_robot/stack.launch.py") == share / "launch/stack.launch.py"
    assert find_launch_file("my_robot/launch/stack.launch.py") == share / "launch/stack.launch.py"


def test_launch_file_by_path(tmp_path):
    file = tmp_path / "stack.launch.xml"
    file.touch()
    assert find_launch_file(str(file)) == file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_robot/stak.launch.py", r"no launch file 'stak.launch.py'\n.*it has: stack.launch.py"),
        ("no_robot/stack.launch.py", r"no ROS package 'no_robot' is sourced\n.*PACKAGE/FILE"),
        ("/no/such/stack.launch.py", r"no such file"),
        ("my_robot/", r"no launch file ''"),
    ],
)
def test_missing_launch_file_is_reported(workspace, name, message):
    workspace.add("my_robot", files={"launch/stack.launch.py": ""})
    with pytest.raises(ConfigurationError, match=message):
        find_launch_file(name)


def test_panda_is_simulated_if_gazebo_is_installed(workspace):
    assert resolve_simulation(Ros2Spec()) is Simulation.MOCK
    assert launch_arguments(Ros2Spec()) == {"sim": "mock"}
    for package in GAZEBO_PACKAGES:
        workspace.add(package)
    assert resolve_simulation(Ros2Spec()) is Simulation.GZ
    assert resolve_simulation(Ros2Spec(sim=Simulation.MOCK)) is Simulation.MOCK


def test_other_launch_files_get_no_default_arguments():
    spec = Ros2Spec(launch_file="my_robot/stack.launch.py", launch_arguments={"speed": "0.5"})
    assert launch_arguments(spec) == {"speed": "0.5"}
    given = Ros2Spec(launch_file="my_robot/stack.launch.py", sim=Simulation.GZ)
    assert launch_arguments(given) == {"sim": "gz"}


def test_given_argument_has_precedence():
    assert launch_arguments(Ros2Spec(launch_arguments={"sim": "gz"}))["sim"] == "gz"
