"""Goals, outcomes, and messages between a client and a backend."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.embedded.backend import EmbeddedStack
from pytest_ldos.robot.stack.goals import HOME, REACH, ErrorCode, Goal, OutcomeClass, Pose, PoseError, classify
from pytest_ldos.robot.stack.lines import (
    MoveCommand,
    MoveReport,
    ReadyEvent,
    TrialTag,
    parse_command,
    parse_event,
)


@pytest.mark.parametrize(
    ("code", "executed", "expected"),
    [
        (ErrorCode.SUCCESS, True, OutcomeClass.SUCCESS),
        (ErrorCode.NO_IK_SOLUTION, False, OutcomeClass.PLANNING_FAILED),
        (ErrorCode.TIMED_OUT, False, OutcomeClass.PLANNING_FAILED),
        (ErrorCode.PLANNING_FAILED, False, OutcomeClass.PLANNING_FAILED),
        (ErrorCode.TIMED_OUT, True, OutcomeClass.TIMED_OUT),
        (ErrorCode.CONTROL_FAILED, True, OutcomeClass.CONTROL_FAILED),
        (ErrorCode.PREEMPTED, False, OutcomeClass.ABORTED),
        (ErrorCode.FAILURE, True, OutcomeClass.ABORTED),
    ],
)
def test_classes_of_outcomes(code, executed, expected):
    assert classify(code, executed=executed) is expected


def test_pose_errors():
    here = Pose((0, 0, 0), (0, 0, 0, 1))
    turned = Pose((0.3, 0.4, 0), (0, 0, math.sin(0.25), math.cos(0.25)))
    error = PoseError.between(here, turned)
    assert error.position_m == pytest.approx(0.5)
    assert error.rotation_rad == pytest.approx(0.5)
    assert PoseError.between(here, Pose((0, 0, 0), (0, 0, 0, -2))).rotation_rad == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "arguments", [{}, {"pose": REACH.pose, "joints": HOME.joints}, {"joints": {"panda_joint1": math.nan}}]
)
def test_invalid_goals_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        Goal("x", **arguments)


@pytest.mark.parametrize(
    ("position", "orientation", "message"),
    [
        ((0, 0, 0), (0, 0, 0, 0), "not a rotation"),
        ((0, 0), (0, 0, 0, 1), "2 and 4 numbers"),
        ((0, 0, 0), (0, 0, 1), "3 and 3 numbers"),
        ((0, 0, math.inf), (0, 0, 0, 1), "not finite"),
    ],
)
def test_invalid_poses_are_refused(position, orientation, message):
    with pytest.raises(ConfigurationError, match=message):
        Pose(position, orientation)


@pytest.mark.parametrize("joints", [{"panda_joint1": 0.3}, dict(HOME.joints or {}, elbow=0.0)])
def test_a_goal_for_other_joints_is_refused_before_it_is_sent(joints):
    stack = EmbeddedStack.__new__(EmbeddedStack)
    with pytest.raises(ConfigurationError, match=r"does not fit the Panda's joints: (panda_joint2|elbow)"):
        stack.move(Goal("partial", joints=joints), goal_id="0" * 32, seed=1, trial=None)


@pytest.mark.parametrize("goal", [REACH, HOME])
def test_commands_and_reports_round_trip(goal):
    command = MoveCommand(
        goal_id="ab" * 16,
        goal=goal,
        seed=3,
        trial=TrialTag("baseline", 2),
        start=HOME.joints,
        planning_time_s=5.0,
        velocity_scaling=0.5,
        acceleration_scaling=0.5,
        timeout_s=20.0,
    )
    assert parse_command(command.to_line()) == command
    report = MoveReport(
        goal_id="ab" * 16,
        error_code=1,
        message="",
        stamps_ns={"goal_sent": 5},
        plan_duration_ns=7,
        plan_points=2,
        planning_time_s=0.01,
        position_error_m=0.001,
        rotation_error_rad=None,
    )
    assert parse_event(report.to_line()) == report
    assert parse_event(ReadyEvent(plan_only=True).to_line()) == ReadyEvent(plan_only=True)
    assert parse_event('{"event": "ready"}') == ReadyEvent(plan_only=False)


def test_a_line_that_is_no_event():
    with pytest.raises(ValueError, match="unknown event"):
        parse_event('{"event": "dance"}')
