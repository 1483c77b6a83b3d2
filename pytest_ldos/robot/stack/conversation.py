"""The conversation with a goal client: sends commands and receives events, and stops waiting if a process ends.

Both stacks have such a client; its messages are in `client_protocol`.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.processes import Child, quoted
from pytest_ldos.robot.stack.client_protocol import MoveCommand, MoveReport, ReadyEvent, TrialTag, parse_event
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.robot.stack.stimulus.lines import Ended, Refused
from pytest_ldos.scenario.model import StackSpec

ANSWER_GRACE_S: Final = 5.0
"""Time beyond a goal's own limit for its client to report that the limit was exceeded."""

Event = ReadyEvent | Refused | MoveReport | Ended

_MOTION_LIMIT_S: Final = 30.0
_POLL_S: Final = 0.05


def to_command(
    spec: StackSpec,
    goal: Goal,
    *,
    goal_id: str,
    seed: int | None,
    trial: TrialTag | None,
    start: Mapping[str, float] | None,
    plan_only: bool = False,
) -> MoveCommand:
    """Builds a client's command for a goal, with the stack's settings and a time limit."""
    return MoveCommand(
        goal_id=goal_id,
        goal=goal,
        seed=seed,
        trial=trial,
        start=start,
        planning_time_s=spec.planning_time_s,
        velocity_scaling=spec.velocity_scaling,
        acceleration_scaling=spec.acceleration_scaling,
        timeout_s=spec.planning_time_s + _MOTION_LIMIT_S,
        plan_only=plan_only,
    )


class Sendable(Protocol):
    """A command with the id that its answer repeats."""

    @property
    def goal_id(self) -> str: ...

    def to_line(self) -> str: ...


class Conversation:
    """The conversation with one goal client, or with another program that makes a stack work.

    Args:
        client: process started with pipes.
        what_ended: returns the process of the stack that has ended, or ``""``.

    Attributes:
        misunderstood: output of the client that is not an event, which ends the conversation.
        can_plan_only: True if the client is ready and supports planning-only goals.
        resets: True if the program is ready and requests a reset command after each run.
    """

    def __init__(self, client: Child, what_ended: Callable[[], str]) -> None:
        self._client = client
        self._what_ended = what_ended
        self._events: queue.Queue[Event] = queue.Queue()
        self.misunderstood = ""
        self.can_plan_only = False
        self.resets = False
        threading.Thread(target=self._read_events, name="goal client's events", daemon=True).start()

    def _read_events(self) -> None:
        assert self._client.process.stdout is not None
        for line in self._client.process.stdout:
            try:
                self._events.put(_parse(line))
            except (ValueError, TypeError):
                name = self._client.name.replace("_", " ")
                self.misunderstood = f"the {name} printed a line that is not an event: {quoted(line)}"

    def await_ready(self, timeout_s: float) -> bool:
        """Returns True if the client became ready in time and before any process ended.

        Raises:
            ConfigurationError: it refused to begin; has its message.
        """
        event = self._next_event(timeout_s)
        match event:
            case ReadyEvent():
                self.can_plan_only, self.resets = event.plan_only, event.resets
            case Refused():
                raise ConfigurationError(event.message, remedy=event.remedy)
        return isinstance(event, ReadyEvent)

    def move(self, command: MoveCommand, *, timeout_s: float) -> MoveReport | None:
        """Sends a goal; returns its report, see `ask`."""
        report = self.ask(command, timeout_s=timeout_s)
        return report if isinstance(report, MoveReport) else None

    def ask(self, command: Sendable, *, timeout_s: float) -> MoveReport | Ended | None:
        """Sends a command; returns its answer, or ``None`` on timeout or if a process ended.

        Ignores a late answer to an earlier command.
        """
        if not self._say(command):
            return None
        while (event := self._next_event(timeout_s)) is not None:
            if isinstance(event, MoveReport | Ended) and event.goal_id == command.goal_id:
                return event
        return None

    def _say(self, command: Sendable) -> bool:
        """Sends a command; returns True if the client could receive it."""
        assert self._client.process.stdin is not None
        try:
            self._client.process.stdin.write(command.to_line())
            self._client.process.stdin.flush()
        except OSError:
            return False
        return True

    def _next_event(self, timeout_s: float) -> Event | None:
        """Returns the client's next event, or ``None`` on timeout or if a process has ended."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                return self._events.get(timeout=_POLL_S)
            except queue.Empty:
                if self.misunderstood or self._what_ended():
                    return None
        return None


def _parse(line: str) -> Event:
    """Parses an event of a goal client, or of another program.

    Raises:
        ValueError, TypeError: the line is not an event.
    """
    values = json.loads(line)
    match values:
        case {"event": Refused.kind}:
            return Refused(str(values["message"]), str(values.get("remedy", "")))
        case {"event": Ended.kind}:
            return Ended.from_dict(values)
    return parse_event(line)
