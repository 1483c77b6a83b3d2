"""Messages between a stack's backend and its goal client: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

from pytest_ldos.robot.stack.goals import Goal


@dataclass(frozen=True)
class TrialTag:
    """Marks a goal as a measured trial."""

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
        failure: planted fault that makes the goal fail (`PlantedFailure`), or empty; only the embedded
            stack's client ever receives one.
    """

    goal_id: str
    goal: Goal
    seed: int | None
    trial: TrialTag | None
    start: Mapping[str, float] | None
    planning_time_s: float
    velocity_scaling: float
    acceleration_scaling: float
    timeout_s: float
    plan_only: bool = False
    failure: str = ""

    def to_line(self) -> str:
        values = {**asdict(self), "goal": self.goal.to_dict()}
        for name in ("plan_only", "failure"):
            if not values[name]:
                del values[name]
        return json.dumps(values) + "\n"


def parse_command(line: str) -> MoveCommand:
    values: dict[str, Any] = json.loads(line)
    values["goal"] = Goal.from_dict(values["goal"])
    values["trial"] = values["trial"] and TrialTag(**values["trial"])
    return MoveCommand(**values)


@dataclass(frozen=True)
class ReadyEvent:
    """The stack can accept goals.

    Attributes:
        plan_only: the client knows `MoveCommand.plan_only`; those of earlier versions do not say so.
        resets: it wants to be told to reset after each run (`stimulus.lines`).
    """

    kind: ClassVar[str] = "ready"

    plan_only: bool = False
    resets: bool = False

    def to_line(self) -> str:
        return json.dumps({"event": self.kind, **asdict(self)}) + "\n"


@dataclass(frozen=True, kw_only=True)
class MoveReport:
    """The end of a goal.

    Attributes:
        error_code: MoveIt's error code.
        stamps_ns: time at which the client entered each phase, ``CLOCK_MONOTONIC``, by phase name.
        plan_duration_ns: duration of the planned trajectory; ``None`` if nothing was planned.
        position_error_m, rotation_error_rad: difference of the tip's final pose from the
            goal; ``None`` if no joint state was received.
    """

    kind: ClassVar[str] = "result"

    goal_id: str
    error_code: int
    message: str
    stamps_ns: Mapping[str, int]
    plan_duration_ns: int | None
    plan_points: int
    planning_time_s: float
    position_error_m: float | None
    rotation_error_rad: float | None

    def to_line(self) -> str:
        return json.dumps({"event": self.kind, **asdict(self)}) + "\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**{name: value for name, value in values.items() if name != "event"})


def parse_event(line: str) -> ReadyEvent | MoveReport:
    """Parses an event of the client.

    Raises:
        ValueError: the line is not an event.
    """
    values: dict[str, Any] = json.loads(line)
    match values:
        case {"event": ReadyEvent.kind}:
            return ReadyEvent(plan_only=values.get("plan_only") is True, resets=values.get("resets") is True)
        case {"event": MoveReport.kind}:
            return MoveReport.from_dict(values)
    raise ValueError(f"unknown event: {line.strip()}")
