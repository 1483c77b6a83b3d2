"""The stack's table in TOML: for every kind of stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.model import Ros2Spec
from pytest_ldos.scenario.scenario_table import parse_stack
from pytest_ldos.scenario.settings import Sources, parse_table
from pytest_ldos.scenario.words import Simulation


def test_user_robot(tmp_path):
    (tmp_path / "stack.launch.py").touch()
    (tmp_path / "goals.yaml").touch()
    table = {
        "launch_file": "stack.launch.py",
        "launch_arguments": {"speed": 0.5, "headless": True, "world": "empty"},
        "goals": "goals.yaml",
        "group": "arm",
        "base_frame": "base",
        "action": "/arm/move",
        "controllers": ["arm_controller"],
        "sim": "mock",
        "seeded_planner": True,
        "ready_timeout_s": 20,
        "control_rate_hz": 250,
    }
    spec = parse_stack(table, folder=tmp_path)
    assert spec.control_rate_hz == 250
    assert spec.goals == str(tmp_path / "goals.yaml")
    assert spec.ros2 == Ros2Spec(
        launch_file=str(tmp_path / "stack.launch.py"),
        launch_arguments={"speed": "0.5", "headless": "true", "world": "empty"},
        sim=Simulation.MOCK,
        action="/arm/move",
        group="arm",
        base_frame="base",
        controllers=("arm_controller",),
        seeded_planner=True,
        ready_timeout_s=20,
    )
    assert not spec.ros2.is_panda


def test_path_in_a_package_is_unchanged():
    assert (
        parse_stack({"launch_file": "robot/stack.launch.py"}, folder=Path()).ros2.launch_file == "robot/stack.launch.py"
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"lauch_file": "a/b"}, "unknown key .*'lauch_file'\n.*'launch_file'"),
        ({"launch_file": "stack.launch.py"}, "neither PACKAGE/FILE nor the path"),
        ({"launch_arguments": ["sim:=gz"]}, "launch_arguments is .*\n.*table"),
        ({"controllers": "arm"}, "controllers is 'arm'\n.*list of texts"),
        ({"sim": "gazebo"}, "sim is 'gazebo'\n.*auto, gz, mock"),
        ({"action": "move_action"}, "not a name in the ROS graph\n.*/move_action"),
        ({"group": ""}, "group of the stack is empty"),
        ({"rmw": "cyclonedds"}, "rmw 'cyclonedds' is not a middleware"),
        ({"seeded_planner": "often"}, "seeded_planner is 'often'\n.*true or false"),
        ({"ready_timeout_s": 0}, "ready_timeout_s must be between"),
        ({"ready_timeout_s": "soon"}, "ready_timeout_s is 'soon'\n.*a number"),
        ({"faults": 3}, "faults is 3\n.*a table"),
        ({"faults": {"planing_delay_ms": 3}}, "unknown key .*'planing_delay_ms'"),
    ],
)
def test_errors_are_named(table, message):
    with pytest.raises(ConfigurationError, match=message):
        parse_stack(table, folder=Path())


def test_command_line_has_precedence_over_the_table():
    toml = parse_table({"stack": {"sim": "mock", "rmw": "rmw_fastrtps_cpp"}})
    assert Sources({}, {}, toml).stack_spec().ros2.sim is Simulation.MOCK
    given = Sources({"sim": Simulation.GZ}, {"rmw": "rmw_cyclonedds_cpp"}, toml).stack_spec().ros2
    assert (given.sim, given.rmw) == (Simulation.GZ, "rmw_cyclonedds_cpp")
