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
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import PlainReader
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.stack.client_protocol import ClientEvent, MoveReport, ReadyEvent, TrialTag
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass


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
_TEXTS: Final = ("error_string", "error_msg")


def judge_end(status: str, result: Any, success_codes: Collection[int]) -> tuple[OutcomeClass, str]:
    """Returns the outcome of an accepted goal, and why it is not a success.

    Args:
        status: ``succeeded``, ``aborted``, ``canceled``, …
        success_codes: numbers that mean success; empty for the type's own success constants, or 0 without any.
    """
    if status != "succeeded":
        return OutcomeClass.ABORTED, f"the goal ended as {status}{_details(result)}"
    code = _error_code(result)
    if code is not None and not success_codes:  # the type's own codes; 0 without any
        kind = result.error_code if hasattr(result.error_code, "val") else result
        success_codes = {getattr(kind, name) for name in _GOOD_NAMES if hasattr(kind, name)} or {0}
    if code is None or code in success_codes:
        return OutcomeClass.SUCCESS, ""
    return OutcomeClass.ABORTED, f"the goal succeeded, but its result says otherwise{_details(result)}"


def _error_code(result: Any) -> int | None:
    """The number in `error_code`, or in MoveIt's `error_code.val`; ``None`` if the type has none."""
    code = getattr(result, "error_code", None)
    value = getattr(code, "val", code)
    return value if isinstance(value, int) else None


def _details(result: Any) -> str:
    code = _error_code(result)
    text = next((str(getattr(result, name)) for name in _TEXTS if getattr(result, name, "")), "")
    parts = ([] if code is None else [f"error code {code}"]) + ([text] if text else [])
    return f" ({', '.join(parts)})" if parts else ""
