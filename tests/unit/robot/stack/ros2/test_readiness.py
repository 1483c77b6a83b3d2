"""Readiness of a stack, and its missing parts."""

from __future__ import annotations

import pytest

from pytest_ldos.robot.stack.ros2.state import Readiness, group_names


@pytest.fixture
def readiness():
    return Readiness(
        controllers=("broadcaster", "arm"),
        controller_manager="/controller_manager",
        action="/move_action",
        joint_states="/joint_states",
        group="panda_arm",
        needs_clock=True,
    )


def test_silent_stack_lacks_all_parts(readiness):
    assert readiness.missing() == [
        "no message on /clock",
        "no answer from /controller_manager",
        "no message on /joint_states",
        "no action server /move_action",
    ]


def test_stack_with_all_parts_is_ready(readiness):
    readiness.saw_clock(1)
    readiness.saw_clock(2)
    readiness.saw_controllers({"arm": "active", "broadcaster": "active", "another": "inactive"})
    readiness.saw_joint_state()
    readiness.saw_actions(["/move_action"])
    assert readiness.missing() == ["no answer from the action server of /move_action"]
    readiness.saw_answer()
    assert readiness.missing() == ["no answer about planning groups from the node of /move_action"]
    assert readiness.only_needs_groups
    readiness.saw_groups(["panda_arm", "hand"])
    assert not readiness.only_needs_groups
    assert readiness.missing() == []
    assert readiness.wrong() == ""


def test_controllers_are_named_with_their_states(readiness):
    readiness.saw_controllers({"arm": "inactive"})
    assert readiness.missing()[1:3] == [
        "controller broadcaster is not loaded (there is arm)",
        "controller arm is inactive",
    ]
    assert readiness.needs_controllers
    readiness.saw_controllers({"arm": "active", "broadcaster": "active"})
    assert not readiness.needs_controllers


def test_repeated_clock_value_is_a_stopped_clock(readiness):
    for _ in range(3):
        readiness.saw_clock(5)
    assert readiness.missing()[0] == "the simulator's clock stands still"


def test_another_action_server_is_named(readiness):
    readiness.saw_actions(["/plan", "/arm/follow_joint_trajectory"])
    assert readiness.missing()[-1] == "no action server /move_action (there is /arm/follow_joint_trajectory, /plan)"


def test_unneeded_parts_are_not_missing():
    readiness = Readiness(
        controllers=(), controller_manager="/c", action="/a", joint_states="/j", group="g", needs_clock=False
    )
    assert readiness.missing() == ["no message on /j", "no action server /a"]
    assert not readiness.needs_controllers


def test_unknown_planning_group(readiness):
    assert readiness.wrong() == ""
    readiness.saw_groups(["panda_arm_2", "hand"])
    assert readiness.wrong() == "the robot has no planning group 'panda_arm' (there is hand, panda_arm_2)"


def test_planner_that_does_not_report_its_groups(readiness):
    readiness.saw_groups(group_names(""))
    assert readiness.wrong() == ""
    assert not readiness.needs_groups


def test_groups_of_a_semantic_description():
    text = "<robot name='r'><group name='arm'><chain/></group><group name='hand'/><group_state group='arm' name='x'/></robot>"
    assert group_names(text) == ["arm", "hand"]
