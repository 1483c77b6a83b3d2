"""Messages between a stack's backend and its goal client, planted failures, and outcomes of trials.

A planted failure depends only on the goal's seed and the rate: it is the same in every run, and a goal that fails at
one rate fails at every higher rate.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import ClassVar

from pytest_ldos.base.files import read_plain
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.stack.goals import (
    REACHED_POSITION_M,
    REACHED_ROTATION_RAD,
    ErrorCode,
    Goal,
    OutcomeClass,
    classify,
)


@dataclass(frozen=True)
class TrialTag:
    scenario: str
    index: int


@dataclass(frozen=True, kw_only=True)
class MoveCommand:
    """A command to send a goal.

    Attributes:
        goal_id: 32 hex characters.
        seed: seed of the planner's random numbers; ``None`` for a random one.
        trial: set for measured goals, which get markers in the trace.
        start: joints at which the plan begins; ``None`` for the arm's present position.
        timeout_s: wall-clock time after which the client gives up on the goal.
        plan_only: the goal is planned and not executed; its phases and its plan are marked in the trace.
        failure: planted fault that makes the goal fail (`PlantedFailure`), or empty; only for the embedded client.
    """

    goal_id: str
    goal: Goal
    seed: int | None
    trial: TrialTag | None
    start: Mapping[str, float] | None = None
    planning_time_s: float
    velocity_scaling: float
    acceleration_scaling: float
    timeout_s: float
    plan_only: bool = False
    failure: str = ""

    def to_line(self) -> str:
        values = asdict(self)
        for name in ("plan_only", "failure"):
            if not values[name]:
                del values[name]
        return json.dumps(values) + "\n"


def parse_command(line: str) -> MoveCommand:
    command: MoveCommand = read_plain(MoveCommand, json.loads(line), "the command")
    return command


@dataclass(frozen=True)
class ClientEvent:
    """A line of a client or another program: a JSON object with the fields of a subclass and its kind."""

    kind: ClassVar[str]

    def to_line(self) -> str:
        return json.dumps({"event": self.kind, **asdict(self)}) + "\n"


@dataclass(frozen=True)
class ReadyEvent(ClientEvent):
    """The stack can accept goals.

    Attributes:
        plan_only: the client supports `MoveCommand.plan_only`; earlier versions do not report it.
        resets: it requests a reset command after each run (`stack.lines`).
    """

    kind = "ready"

    plan_only: bool = False
    resets: bool = False


@dataclass(frozen=True, kw_only=True)
class MoveReport(ClientEvent):
    """The end of a goal.

    Attributes:
        error_code: MoveIt's error code.
        stamps_ns: time at which the client entered each phase (``CLOCK_MONOTONIC``), by phase name.
        plan_duration_ns: duration of the planned trajectory; ``None`` if nothing was planned.
        position_error_m, rotation_error_rad: difference of the tip's final pose from the goal; ``None`` if unknown.
    """

    kind = "result"

    goal_id: str
    error_code: int
    message: str
    stamps_ns: Mapping[str, int]
    plan_duration_ns: int | None
    plan_points: int
    planning_time_s: float
    position_error_m: float | None
    rotation_error_rad: float | None


class PlantedFailure(StrEnum):
    PLANNER = "planner"
    CONTROLLER = "controller"


def plant_failure(rate: float, *, seed: int | None, trial: TrialTag | None) -> PlantedFailure | None:
    """Returns the way in which a goal fails, half by the planner and half by the controller; ``None`` if it does not.

    Args:
        rate: share of the measured goals that fail.
        seed: seed of the trial; ``None`` for a random one.
        trial: ``None`` for goals that are not measured, such as the return home: they never fail.
    """
    if trial is None or rate <= 0:
        return None
    chance = random.SystemRandom() if seed is None else random.Random(f"planted failure {seed}")  # noqa: S311
    if chance.random() >= rate:
        return None
    return PlantedFailure.PLANNER if chance.random() < 0.5 else PlantedFailure.CONTROLLER


@dataclass(frozen=True, kw_only=True)
class MotionOutcome:
    """The result of one goal, or of another trial, as observed by its client; see `MoveReport`.

    Attributes:
        error_code: ``None`` if the stack died before it could report one, or if it is none of MoveIt's.
        numbers: further measurements of the client, by name with the unit at the end.
    """

    goal_id: str
    outcome: OutcomeClass
    error_code: int | None = None
    message: str = ""
    stamps_ns: Mapping[str, int] = field(default_factory=dict)
    plan_duration_ns: int | None = None
    plan_points: int = 0
    position_error_m: float | None = None
    rotation_error_rad: float | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)


def to_outcome(report: MoveReport, *, check_pose: bool = True) -> MotionOutcome:
    """Returns the outcome of a goal; with `check_pose`, a reported success with a wrong final pose is a failure."""
    outcome = classify(report.error_code, executed=Phase.EXECUTING in report.stamps_ns)
    message = report.message
    if check_pose and outcome is OutcomeClass.SUCCESS and (miss := _describe_miss(report)):
        outcome, message = OutcomeClass.CONTROL_FAILED, miss
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
    return MotionOutcome(goal_id=goal_id, outcome=OutcomeClass.STACK_DIED, message=reason)


def _describe_miss(report: MoveReport) -> str:
    off_m, off_rad = report.position_error_m, report.rotation_error_rad
    if off_m is None or off_rad is None:
        return "success was reported, but no joint state arrived to check the final pose with"
    if off_m <= REACHED_POSITION_M and off_rad <= REACHED_ROTATION_RAD:
        return ""
    return f"success was reported, but the tip is {off_m * 1000:.1f} mm and {off_rad:.3f} rad from the goal"
