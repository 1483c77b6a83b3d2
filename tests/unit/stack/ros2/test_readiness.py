"""When a stack is ready, and what it says while it is not."""

from __future__ import annotations

import pytest

from pytest_ldos.stack.ros2.readiness import Readiness


@pytest.fixture
def readiness():
    return Readiness(
        controllers=("broadcaster", "arm"),
        controller_manager="/controller_manager",
        action="/move_action",
        joint_states="/joint_states",
        needs_clock=True,
    )


def test_a_stack_that_has_shown_nothing_misses_everything(readiness):
    assert readiness.missing() == [
        "no message on /clock",
        "no answer from /controller_manager",
        "no message on /joint_states",
        "no action server /move_action",
    ]


def test_a_stack_that_has_shown_everything_is_ready(readiness):
    readiness.saw_clock(1)
    readiness.saw_clock(2)
    readiness.saw_controllers({"arm": "active", "broadcaster": "active", "another": "inactive"})
    readiness.saw_joint_state()
    readiness.saw_actions(["/move_action"])
    assert readiness.missing() == ["no answer from the action server of /move_action"]
    readiness.saw_answer()
    assert readiness.missing() == []


def test_controllers_are_named_with_their_states(readiness):
    readiness.saw_controllers({"arm": "inactive"})
    assert readiness.missing()[1:3] == ["controller broadcaster is not loaded", "controller arm is inactive"]
    assert readiness.needs_controllers
    readiness.saw_controllers({"arm": "active", "broadcaster": "active"})
    assert not readiness.needs_controllers


def test_a_clock_that_repeats_itself_stands_still(readiness):
    for _ in range(3):
        readiness.saw_clock(5)
    assert readiness.missing()[0] == "the simulator's clock stands still"


def test_another_action_server_is_named(readiness):
    readiness.saw_actions(["/plan", "/arm/follow_joint_trajectory"])
    assert readiness.missing()[-1] == "no action server /move_action (there is /arm/follow_joint_trajectory, /plan)"


def test_what_is_not_asked_for_is_not_missed():
    readiness = Readiness(controllers=(), controller_manager="/c", action="/a", joint_states="/j", needs_clock=False)
    assert readiness.missing() == ["no message on /j", "no action server /a"]
    assert not readiness.needs_controllers
