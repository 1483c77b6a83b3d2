"""The line protocol between a stack and a program that makes it work: one JSON object per line.

It is public: a user's program that speaks it is a stimulus (``stimulus = "script"``).

The program first writes ``{"event": "ready"}``, with ``"resets": true`` to request reset commands, or
``{"event": "refused", "message": …, "remedy": …}``. Then it answers each command that it reads from standard input:

.. code-block:: json

    {"command": "run", "id": "5f0c…", "case": "corner", "message": null, "seed": 3,
     "scenario": "baseline", "index": 2, "timeout_s": 60.0}

``scenario`` and ``index`` are null in a warm-up. ``{"command": "reset", "id": …, "timeout_s": …}`` follows each run, if
requested. Each command is answered by

.. code-block:: json

    {"event": "ended", "id": "5f0c…", "outcome": "success", "message": "",
     "stamps_ns": {"goal_sent": 81233000, "result": 92137000}, "numbers": {"distance_m": 3.2}}

The outcome is ``success`` or another word of `OutcomeClass`. Stamps are ``CLOCK_MONOTONIC``, by phase name:
``goal_sent`` and ``result`` are required, ``goal_accepted``, ``planning`` and ``executing`` optional. ``"pids"`` names
processes that the program started for the run, whose messages belong to it. The program's standard error is kept in its
log.

Goal clients take a `MoveCommand` a line and answer with a `MoveReport`. A planted failure depends only on the goal's
seed and the rate: it is the same in every run, and a goal that fails at one rate fails at every higher rate.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import PlainReader, copied, read_plain
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.dds.emission import emit
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
    """A command to send a goal."""

    goal_id: str  # 32 hex characters
    goal: Goal
    seed: int | None  # seed of the planner's random numbers; ``None`` for a random one
    trial: TrialTag | None  # set for measured goals, which get markers in the trace
    start: Mapping[str, float] | None = None  # joints at which the plan begins; ``None`` for the arm's present position
    planning_time_s: float
    velocity_scaling: float
    acceleration_scaling: float
    timeout_s: float  # wall-clock time after which the client gives up on the goal
    plan_only: bool = False  # the goal is planned and not executed; its phases and its plan are marked in the trace
    # planted fault that makes the goal fail (`PlantedFailure`), or empty; only for the embedded client
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
    """The stack can accept goals."""

    kind = "ready"

    plan_only: bool = False  # the client supports `MoveCommand.plan_only`; earlier versions do not report it
    resets: bool = False  # it requests a reset command after each run (`stack.lines`)


@dataclass(frozen=True, kw_only=True)
class MoveReport(ClientEvent):
    """The end of a goal."""

    kind = "result"

    goal_id: str
    error_code: int  # MoveIt's error code
    message: str
    stamps_ns: Mapping[str, int]  # time at which the client entered each phase (``CLOCK_MONOTONIC``), by phase name
    plan_duration_ns: int | None  # duration of the planned trajectory; ``None`` if nothing was planned
    plan_points: int
    planning_time_s: float
    # position_error_m, rotation_error_rad: difference of the tip's final pose from the goal; ``None`` if unknown
    position_error_m: float | None
    rotation_error_rad: float | None


class PlantedFailure(StrEnum):
    PLANNER = "planner"
    CONTROLLER = "controller"


def plant_failure(rate: float, *, seed: int | None, trial: TrialTag | None) -> PlantedFailure | None:
    """Returns the way in which a goal fails, half by the planner and half by the controller; ``None`` if it does not.

    `rate` is the share of the measured goals that fail; others, such as the way home, have no `trial` and never fail.
    """
    if trial is None or rate <= 0:
        return None
    chance = random.SystemRandom() if seed is None else random.Random(f"planted failure {seed}")  # noqa: S311
    if chance.random() >= rate:
        return None
    return PlantedFailure.PLANNER if chance.random() < 0.5 else PlantedFailure.CONTROLLER


@dataclass(frozen=True, kw_only=True)
class MotionOutcome:
    """The result of one goal, or of another trial, as observed by its client; see `MoveReport`."""

    goal_id: str
    outcome: OutcomeClass
    error_code: int | None = None  # ``None`` if the stack died before it could report one, or if it is none of MoveIt's
    message: str = ""
    stamps_ns: Mapping[str, int] = field(default_factory=dict)
    plan_duration_ns: int | None = None
    plan_points: int = 0
    position_error_m: float | None = None
    rotation_error_rad: float | None = None
    # further measurements of the client, by name with the unit at the end
    numbers: Mapping[str, float] = field(default_factory=dict)


def to_outcome(report: MoveReport, *, check_pose: bool = True) -> MotionOutcome:
    """Returns the outcome of a goal; with `check_pose`, a reported success with a wrong final pose is a failure."""
    outcome = classify(report.error_code, executed=Phase.EXECUTING in report.stamps_ns)
    message = report.message
    if check_pose and outcome is OutcomeClass.SUCCESS and (miss := _describe_miss(report)):
        outcome, message = OutcomeClass.CONTROL_FAILED, miss
    code = report.error_code if outcome is not OutcomeClass.CONTROL_FAILED else ErrorCode.CONTROL_FAILED
    return copied(MotionOutcome, report, outcome=outcome, error_code=code, message=message)


def died(goal_id: str, reason: str) -> MotionOutcome:
    return MotionOutcome(goal_id=goal_id, outcome=OutcomeClass.STACK_DIED, message=reason)


def _describe_miss(report: MoveReport) -> str:
    off_m, off_rad = report.position_error_m, report.rotation_error_rad
    if off_m is None or off_rad is None:
        return "success was reported, but no joint state arrived to check the final pose with"
    if off_m <= REACHED_POSITION_M and off_rad <= REACHED_ROTATION_RAD:
        return ""
    return f"success was reported, but the tip is {off_m * 1000:.1f} mm and {off_rad:.3f} rad from the goal"


class Order(StrEnum):
    RUN = "run"
    RESET = "reset"


@dataclass(frozen=True, kw_only=True)
class Command:
    order: Order
    goal_id: str
    timeout_s: float
    case: str = ""
    message: Mapping[str, Any] | None = None
    seed: int | None = None
    trial: TrialTag | None = None

    def to_line(self) -> str:
        values: dict[str, Any] = {"command": self.order, "id": self.goal_id, "timeout_s": self.timeout_s}
        if self.order is Order.RUN:
            tag = {"scenario": None, "index": None} if self.trial is None else asdict(self.trial)
            values |= {"case": self.case, "message": self.message, "seed": self.seed, **tag}
        return json.dumps(values) + "\n"


@dataclass(frozen=True)
class Refused(ClientEvent):
    """The program refuses to begin; `remedy` is advice for the user."""

    kind = "refused"

    message: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended(ClientEvent):
    kind = "ended"

    id: str
    outcome: OutcomeClass = OutcomeClass.SUCCESS
    message: str = ""
    stamps_ns: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    pids: tuple[int, ...] = ()

    @property
    def goal_id(self) -> str:
        return self.id

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises `ValueError` or `TypeError` if the event is damaged."""
        given = {name: value for name, value in values.items() if name != "event"}
        if isinstance(numbers := given.get("numbers"), dict):
            given["numbers"] = {
                name: float(number) if type(number) is int else number for name, number in numbers.items()
            }
        ended: Self = PlainReader().read(cls, given, "the event")
        if not all(map(math.isfinite, ended.numbers.values())):
            raise ValueError("a number of the event is not finite")
        return ended


Event = ReadyEvent | Refused | MoveReport | Ended


def parse_event(line: str) -> Event:
    """Parses an event; raises `KeyError`, `TypeError` or `ValueError` if the line is none."""
    values: dict[str, Any] = json.loads(line)
    match values:
        case {"event": ReadyEvent.kind}:
            return ReadyEvent(plan_only=values.get("plan_only") is True, resets=values.get("resets") is True)
        case {"event": MoveReport.kind}:
            return MoveReport(**{name: value for name, value in values.items() if name != "event"})
        case {"event": Ended.kind}:
            return Ended.from_dict(values)
        case {"event": Refused.kind}:
            return Refused(str(values["message"]), str(values.get("remedy", "")))
    raise ValueError(f"unknown event: {line.strip()}")


@dataclass(kw_only=True)
class Marks:
    """Stamps of a goal's phases (``CLOCK_MONOTONIC``), and marks in the trace if it is a trial, or only planned."""

    id: str
    trial: TrialTag | None
    plan_only: bool = False
    stamps: dict[str, int] = field(default_factory=dict)

    @property
    def is_marked(self) -> bool:
        return self.trial is not None or self.plan_only

    def begin(self) -> None:
        if self.trial is not None:
            emit.trial_begin(self.id, self.trial.scenario, self.trial.index)

    def enter(self, phase: Phase) -> None:
        """Stamps and marks a phase when it is first entered."""
        if phase not in self.stamps:
            self.stamps[phase] = time.monotonic_ns()
            if self.is_marked:
                emit.phase(self.id, phase)

    def end_trial(self, error_code: int) -> None:
        if self.trial is not None:
            emit.trial_end(self.id, error_code)


@dataclass(kw_only=True)
class Task(Marks):
    """A command in progress: fields of its message, its processes, and its deadline, of ``time.monotonic()``.

    `seed` is of random numbers, for a program that supports seeds.
    """

    order: Order
    message: dict[str, Any]
    deadline: float
    seed: int | None = None
    pids: tuple[int, ...] = ()

    @property
    def left_s(self) -> float:
        return max(self.deadline - time.monotonic(), 0.0)

    def end(self, outcome: OutcomeClass, message: str = "", **numbers: float) -> Ended:
        """Marks the end, as the result if there is none yet; returns the event to write."""
        self.enter(Phase.RESULT)
        self.end_trial(ErrorCode.SUCCESS if outcome is OutcomeClass.SUCCESS else ErrorCode.FAILURE)
        return Ended(
            id=self.id, outcome=outcome, message=message, stamps_ns=self.stamps, numbers=numbers, pids=self.pids
        )


def serve(handle: Callable[[Task], Ended], *, resets: bool) -> None:
    """Reports readiness, then executes commands until the input ends or the program is interrupted."""
    write(ReadyEvent(resets=resets))
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            values = json.loads(line)
            task = Task(
                order=Order(values["command"]),
                id=values["id"],
                trial=None if values.get("scenario") is None else TrialTag(values["scenario"], values["index"]),
                message=values.get("message") or {},
                deadline=time.monotonic() + values["timeout_s"],
                seed=values.get("seed"),
            )
            write(handle(task))


def refuse(error: LdosError) -> None:
    """Reports why the program cannot begin, and waits to be ended, so that the report is read first."""
    write(Refused(error.message, error.remedy))
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()


def write(event: ClientEvent) -> None:
    sys.stdout.write(event.to_line())
    sys.stdout.flush()


REJECTED: Final = (OutcomeClass.ABORTED, "the server rejected the goal")

_GOOD_NAMES: Final = ("NONE", "SUCCESS", "SUCCESSFUL")
_TEXTS: Final = ("error_string", "error_msg", "message")


def judge_end(status: str, result: Any, success_codes: Collection[int]) -> tuple[OutcomeClass, str]:
    """Returns the outcome of an accepted goal with a status (``succeeded``, ``aborted``, …), and why it is no success.

    Without `success_codes`, the type's own success constants mean success, or 0 without any.
    """
    if status != "succeeded":
        return OutcomeClass.ABORTED, f"the goal ended as {status}{details_of(result)}"
    if is_success(result, success_codes):
        return OutcomeClass.SUCCESS, ""
    return OutcomeClass.ABORTED, f"the goal succeeded, but its result says otherwise{details_of(result)}"


def is_success(result: Any, success_codes: Collection[int] = ()) -> bool:
    """False if a result or a response has a `success` that is false, or an `error_code` other than `success_codes`."""
    code = _error_code(result)
    if code is not None and not success_codes:  # the type's own codes; 0 without any
        kind = result.error_code if hasattr(result.error_code, "val") else result
        success_codes = {getattr(kind, name) for name in _GOOD_NAMES if hasattr(kind, name)} or {0}
    return getattr(result, "success", True) is not False and (code is None or code in success_codes)


def _error_code(result: Any) -> int | None:
    """The number in `error_code`, or in MoveIt's `error_code.val`; ``None`` if the type has none."""
    code = getattr(result, "error_code", None)
    value = getattr(code, "val", code)
    return value if isinstance(value, int) else None


def details_of(result: Any) -> str:
    """Error code and text of a result or a response, in parentheses; empty without any."""
    code = _error_code(result)
    text = next((str(getattr(result, name)) for name in _TEXTS if getattr(result, name, "")), "")
    parts = ([] if code is None else [f"error code {code}"]) + ([text] if text else [])
    return f" ({', '.join(parts)})" if parts else ""
