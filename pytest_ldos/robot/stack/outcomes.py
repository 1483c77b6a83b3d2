"""Outcomes of trials, and the conversion of a goal client's report to one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.client_protocol import MoveReport
from pytest_ldos.robot.stack.goals import (
    REACHED_POSITION_M,
    REACHED_ROTATION_RAD,
    ErrorCode,
    OutcomeClass,
    classify,
)


@dataclass(frozen=True, kw_only=True)
class MotionOutcome:
    """The result of one goal, or of another trial, as its client saw it.

    Attributes:
        error_code: MoveIt's error code; ``None`` if the stack died before it could report one, or if it is none of
            MoveIt's.
        stamps_ns: time at which the client entered each phase (``CLOCK_MONOTONIC``), by phase name.
        plan_duration_ns: duration of the planned trajectory; ``None`` if nothing was planned.
        position_error_m, rotation_error_rad: difference of the tip's final pose from the goal;
            ``None`` if unknown.
        numbers: what else the client measured, by name with the unit at the end.
    """

    goal_id: str
    outcome: OutcomeClass
    error_code: int | None
    message: str
    stamps_ns: Mapping[str, int]
    plan_duration_ns: int | None = None
    plan_points: int = 0
    position_error_m: float | None = None
    rotation_error_rad: float | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)


def to_outcome(report: MoveReport, *, check_pose: bool = True) -> MotionOutcome:
    """Returns the outcome of a goal. A reported success counts as a failure if the final pose is not the goal's.

    Args:
        check_pose: True if the client can determine the final pose's error.
    """
    outcome = classify(report.error_code, executed=Phase.EXECUTING in report.stamps_ns)
    message = report.message
    if check_pose and outcome is OutcomeClass.SUCCESS and not _is_reached(report):
        outcome = OutcomeClass.CONTROL_FAILED
        message = _describe_miss(report)
    return MotionOutcome(
        goal_id=report.goal_id,
        outcome=outcome,
        error_code=report.error_code if outcome is not OutcomeClass.CONTROL_FAILED else ErrorCode.CONTROL_FAILED,
        message=message,
        stamps_ns=report.stamps_ns,
        plan_duration_ns=report.plan_duration_ns,
        plan_points=report.plan_points,
        position_error_m=report.position_error_m,
        rotation_error_rad=report.rotation_error_rad,
    )


def died(goal_id: str, reason: str) -> MotionOutcome:
    """Returns the outcome of a goal whose stack, or goal client, has died."""
    return MotionOutcome(
        goal_id=goal_id, outcome=OutcomeClass.STACK_DIED, error_code=None, message=reason, stamps_ns={}
    )


def _is_reached(report: MoveReport) -> bool:
    return (
        report.position_error_m is not None
        and report.rotation_error_rad is not None
        and report.position_error_m <= REACHED_POSITION_M
        and report.rotation_error_rad <= REACHED_ROTATION_RAD
    )


def _describe_miss(report: MoveReport) -> str:
    if report.position_error_m is None or report.rotation_error_rad is None:
        return "success was reported, but no joint state arrived to check the final pose with"
    return (
        f"success was reported, but the tip is {report.position_error_m * 1000:.1f} mm and "
        f"{report.rotation_error_rad:.3f} rad from the goal"
    )
