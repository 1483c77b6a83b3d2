"""Settings of stimuli."""

from __future__ import annotations

import dataclasses
import importlib.util

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.scenario.scenario_table import parse_stack
from pytest_ldos.scenario.stimuli import MoveGroupSpec, ScriptSpec, StimuliSpec
from pytest_ldos.scenario.words import StimulusKind


def parse(values, folder):
    stimuli = {name: each for name, each in values.items() if name in {"action", "service", "bag", "window", "script"}}
    rest = {name: each for name, each in values.items() if name not in stimuli}
    return parse_stack(rest, folder=folder, stimuli=stimuli)


ACTION = {"name": "/navigate_to_pose", "type": "nav2_msgs/action/NavigateToPose"}


def test_an_action_with_its_table(tmp_path):
    (tmp_path / "goals.yaml").touch()
    spec = parse({"stimulus": "action", "goals": "goals.yaml", "action": {**ACTION, "success_codes": [0, 3]}}, tmp_path)
    assert spec.stimulus is StimulusKind.ACTION
    assert spec.stimuli.action.name == "/navigate_to_pose"
    assert spec.stimuli.action.success_codes == (0, 3)
    assert spec.goals == str(tmp_path / "goals.yaml")
    assert spec.ros2.controllers == ()


def test_project_files_become_absolute_paths(tmp_path):
    (tmp_path / "drive").mkdir()
    (tmp_path / "press.py").touch()
    bag = parse({"stimulus": "bag", "bag": {"path": "drive"}}, tmp_path)
    script = parse({"stimulus": "script", "script": {"command": ["python3", "press.py"]}}, tmp_path)
    assert bag.stimuli.bag.path == str(tmp_path / "drive")
    assert script.stimuli.script.command == ("python3", str(tmp_path / "press.py"))


def test_script_that_reports_executing_has_more_latencies():
    assert ScriptSpec(command=("press",)).latencies == ("T4",)
    assert ScriptSpec(command=("press",), executing=True).latencies == ("T1", "T2", "T4")


def test_an_arm_keeps_its_controllers(tmp_path):
    assert parse({}, tmp_path).ros2.controllers
    assert parse({"stimulus": "window", "controllers": ["base"]}, tmp_path).ros2.controllers == ("base",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stimulus": "acton"}, "action"),
        ({"stimulus": "action"}, "needs name"),
        ({"stimulus": "action", "action": ACTION}, "needs goals"),
        ({"stimulus": "service", "service": {"name": "/a"}}, "needs type"),
        ({"stimulus": "bag"}, "needs path"),
        ({"stimulus": "script"}, "needs command"),
        ({"action": {"name": "navigate"}}, "not a name in the ROS graph"),
        ({"action": {"type": "nav2_msgs/NavigateToPose"}}, "not a type"),
        ({"action": {"nmae": "/a"}}, "name"),
        ({"action": 3}, "must be a table"),
        ({"action": {"success_codes": ["0"]}}, "whole numbers"),
        ({"bag": {"path": "a", "rate": 0}}, "rate"),
        ({"bag": {"topics": ["scan"]}}, "not a name in the ROS graph"),
        ({"window": {"seconds": 0}}, "seconds"),
        ({"service": {"calls": 1.5}}, "calls"),
        ({"topology": "pick_cell"}, "a topology runs by itself"),
        ({"kind": "running"}, 'a running stack does not take stimulus "move_group"'),
        ({"kind": "running", "stimulus": "script"}, 'a running stack does not take stimulus "script"'),
        ({"topology": "pick_cell", "stimulus": "window", "kind": "ros2"}, "a stack of the embedded layer"),
        ({"ready": ["topic:scan"]}, "not a condition"),
        ({"ready": ["node:/scan"]}, "not a condition"),
    ],
)
def test_invalid_values_are_refused(tmp_path, values, message):
    with pytest.raises(ConfigurationError) as caught:
        parse(values, tmp_path)
    assert message in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.parametrize("kind", StimulusKind)
def test_each_kind_has_its_spec_and_program(kind):
    driver = MoveGroupSpec() if kind is StimulusKind.MOVE_GROUP else getattr(StimuliSpec(), kind)
    assert driver.KIND is kind
    assert not driver.PROGRAM or importlib.util.find_spec(driver.PROGRAM)
    assert not driver.EMBEDDED or importlib.util.find_spec(f"pytest_ldos.robot.stack.embedded.{driver.EMBEDDED}")
    assert set(driver.NEEDS) <= {each.name for each in dataclasses.fields(driver)}
