"""The program's side of the line protocol: reads commands, marks the trials in the trace, writes their ends."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.stack.client_protocol import ReadyEvent
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass
from pytest_ldos.robot.stack.stimulus.lines import Ended, Order, Refused


@dataclass
class Task:
    """A command in progress.

    Attributes:
        message: fields of the case's message.
        deadline: of ``time.monotonic()``.
        pids: processes that were started for it.
        stamps: by phase, ``CLOCK_MONOTONIC``.
    """

    order: Order
    id: str
    case: str
    message: dict[str, Any]
    scenario: str | None
    index: int | None
    deadline: float
    pids: tuple[int, ...] = ()
    stamps: dict[str, int] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """Time until the task is given up."""
        return max(self.deadline - time.monotonic(), 0.0)

    @property
    def is_trial(self) -> bool:
        return self.scenario is not None

    def begin(self) -> None:
        """Marks the beginning of a trial."""
        if self.scenario is not None and self.index is not None:
            emit.trial_begin(self.id, self.scenario, self.index)

    def enter(self, phase: Phase) -> None:
        """Stamps a phase when it is first entered, and marks it if this is a trial."""
        if phase in self.stamps:
            return
        self.stamps[phase] = time.monotonic_ns()
        if self.is_trial:
            emit.phase(self.id, phase)

    def end(self, outcome: OutcomeClass, message: str = "", **numbers: float) -> Ended:
        """Marks the end; returns what is to be written."""
        if self.is_trial:
            emit.trial_end(self.id, ErrorCode.SUCCESS if outcome is OutcomeClass.SUCCESS else ErrorCode.FAILURE)
        return Ended(
            id=self.id, outcome=outcome, message=message, stamps_ns=self.stamps, numbers=numbers, pids=self.pids
        )


def serve(handle: Callable[[Task], Ended], *, resets: bool) -> None:
    """Says that the program is ready, then does what it is told until its input ends, or it is interrupted."""
    write(ReadyEvent(resets=resets))
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            write(handle(_parse(line)))


def refuse(error: LdosError) -> None:
    """Says why the program cannot begin, and waits to be ended, so that this is heard before its end."""
    write(Refused(error.message, error.remedy))
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()


def write(event: ReadyEvent | Refused | Ended) -> None:
    """Writes an event as a line."""
    sys.stdout.write(event.to_line())
    sys.stdout.flush()


def _parse(line: str) -> Task:
    values = json.loads(line)
    return Task(
        order=Order(values["command"]),
        id=values["id"],
        case=values.get("case", ""),
        message=values.get("message") or {},
        scenario=values.get("scenario"),
        index=values.get("index"),
        deadline=time.monotonic() + values["timeout_s"],
    )
