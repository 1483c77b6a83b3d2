"""The goals for each robot."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.goals import PANDA_GOALS
from pytest_ldos.robot.stack.ros2.stimuli import goals_of
from pytest_ldos.scenario.model import Ros2Spec, StackSpec


def test_panda_has_its_own_goals():
    assert goals_of(StackSpec()) is PANDA_GOALS


def test_other_robot_does_not_get_the_pandas_goals():
    with pytest.raises(ConfigurationError, match=r"no goals for the robot of cell/cell.launch.py\n.*goals.yaml"):
        goals_of(StackSpec(ros2=Ros2Spec(launch_file="cell/cell.launch.py")))


def test_a_file_is_read(tmp_path):
    file = tmp_path / "goals.yaml"
    file.write_text("home: {joints: {a: 0}}\ngoal_sets: {wave: [{name: wave, joints: {a: 1}}]}\n")
    assert list(goals_of(StackSpec(goals=str(file))).sets) == ["wave"]
