"""Ends of goals and calls, with results and responses as the types of the field have them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import details_of, is_success, judge_end


def nav2(code: int, text: str = "") -> SimpleNamespace:
    """`nav2_msgs/action/NavigateToPose`: the type names 0 as NONE."""
    return SimpleNamespace(error_code=code, error_msg=text, NONE=0)


def moveit(code: int) -> SimpleNamespace:
    """`moveit_msgs/action/MoveGroup`: the number is in a message of its own."""
    return SimpleNamespace(error_code=SimpleNamespace(val=code, SUCCESS=1))


def control(code: int, text: str = "") -> SimpleNamespace:
    """`control_msgs/action/FollowJointTrajectory`."""
    return SimpleNamespace(error_code=code, error_string=text, SUCCESSFUL=0, INVALID_GOAL=-1)


PLAIN = SimpleNamespace(sequence=[1, 1, 2])
"""`example_interfaces/action/Fibonacci`: no number."""


@pytest.mark.parametrize("result", [nav2(0), moveit(1), control(0), PLAIN, None, SimpleNamespace(error_code=0)])
def test_succeeded_goal_with_a_success_code_is_a_success(result):
    assert judge_end("succeeded", result, ()) == (OutcomeClass.SUCCESS, "")


@pytest.mark.parametrize(
    ("result", "details"),
    [
        (nav2(203, "no path"), " (error code 203, no path)"),
        (moveit(-1), " (error code -1)"),
        (control(-4, "too far"), " (error code -4, too far)"),
        (SimpleNamespace(error_code=3), " (error code 3)"),
    ],
)
def test_failure_code_is_a_failure_with_any_status(result, details):
    message = f"the goal succeeded, but its result says otherwise{details}"
    assert judge_end("succeeded", result, ()) == (OutcomeClass.ABORTED, message)
    assert judge_end("aborted", result, ()) == (OutcomeClass.ABORTED, f"the goal ended as aborted{details}")


def test_named_codes_are_the_only_successes():
    assert judge_end("succeeded", nav2(7), (7,))[0] is OutcomeClass.SUCCESS
    assert judge_end("succeeded", nav2(0), (7,))[0] is OutcomeClass.ABORTED


def test_a_canceled_goal_is_no_success():
    assert judge_end("canceled", PLAIN, ()) == (OutcomeClass.ABORTED, "the goal ended as canceled")


@pytest.mark.parametrize(
    ("response", "is_good", "details"),
    [
        (moveit(1), True, " (error code 1)"),
        (moveit(-31), False, " (error code -31)"),
        (SimpleNamespace(success=False, message="stuck"), False, " (stuck)"),
        (SimpleNamespace(success=True, message="done"), True, " (done)"),
        (SimpleNamespace(success=True, error_code=4), False, " (error code 4)"),
        (SimpleNamespace(valid=False, contacts=[]), True, ""),  # `moveit_msgs/srv/GetStateValidity`: an answer, too
    ],
)
def test_response_is_a_success_unless_it_denies_it(response, is_good, details):
    assert is_success(response) is is_good
    assert details_of(response) == details
