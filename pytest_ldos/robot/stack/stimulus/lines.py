"""The line protocol between a stack and a program that makes it work: one JSON object per line.

It is public: a program of a user's own that speaks it is a stimulus (``stimulus = "script"``).

The program first writes ``{"event": "ready"}``, with ``"resets": true`` if it wants to be told to reset, or
``{"event": "refused", "message": …, "remedy": …}``. Then it answers each command that it reads from standard input:

.. code-block:: json

    {"command": "run", "id": "5f0c…", "case": "corner", "message": null, "seed": 3,
     "scenario": "baseline", "index": 2, "timeout_s": 60.0}

``scenario`` and ``index`` are null in a warm-up. ``{"command": "reset", "id": …, "timeout_s": …}`` follows after each
run, if the program asked for it. Each is answered by

.. code-block:: json

    {"event": "ended", "id": "5f0c…", "outcome": "success", "message": "",
     "stamps_ns": {"goal_sent": 81233000, "result": 92137000}, "numbers": {"distance_m": 3.2}}

The outcome is ``success`` or another word of `OutcomeClass`. Stamps are ``CLOCK_MONOTONIC``, by phase name:
``goal_sent`` and ``result`` must be there, ``goal_accepted``, ``planning`` and ``executing`` may be. ``"pids"`` names
processes that the program started for the run, whose messages belong to it. What the program
writes to standard error is kept in its log.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from pytest_ldos.base.plain import PlainReader
from pytest_ldos.robot.stack.client_protocol import TrialTag
from pytest_ldos.robot.stack.goals import OutcomeClass


class Order(StrEnum):
    """Values of ``command``."""

    RUN = "run"
    RESET = "reset"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command to a program; see the module.

    Attributes:
        goal_id: ``id`` of the line.
        message: fields of the case's message, for those that have one.
    """

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
class Refused:
    """The program cannot do what it was started for.

    Attributes:
        remedy: what the user can do about it.
    """

    kind: ClassVar[str] = "refused"

    message: str
    remedy: str = ""

    def to_line(self) -> str:
        return json.dumps({"event": self.kind, **asdict(self)}) + "\n"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a run or a reset; see the module."""

    kind: ClassVar[str] = "ended"

    id: str
    outcome: OutcomeClass = OutcomeClass.SUCCESS
    message: str = ""
    stamps_ns: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    pids: tuple[int, ...] = ()

    @property
    def goal_id(self) -> str:
        return self.id

    def to_line(self) -> str:
        return json.dumps({"event": self.kind, **asdict(self)}) + "\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Reads an event.

        Raises:
            ValueError, TypeError: it is damaged.
        """
        given = {name: value for name, value in values.items() if name != "event"}
        if isinstance(numbers := given.get("numbers"), dict):
            given["numbers"] = {
                name: float(number) if type(number) is int else number for name, number in numbers.items()
            }
        ended: Self = PlainReader().read(cls, given, "the event")
        if not all(map(math.isfinite, ended.numbers.values())):
            raise ValueError("a number of the event is not finite")
        return ended
