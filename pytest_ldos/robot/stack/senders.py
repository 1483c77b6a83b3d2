"""The stimuli (goals for an arm, a separate program, a window of time), and the conversation with their programs."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, NotRequired, Protocol, TypedDict, Unpack, cast

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import copied
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.processes import Child, quoted
from pytest_ldos.robot.stack.goals import Goal, GoalBook, OutcomeClass
from pytest_ldos.robot.stack.lines import (
    Command,
    Ended,
    Event,
    MotionOutcome,
    MoveCommand,
    MoveReport,
    Order,
    ReadyEvent,
    Refused,
    TrialTag,
    died,
    parse_event,
)
from pytest_ldos.robot.stack.protocol import Attempt, CaseBook, MessageCase, Stimulus, StimulusCase, single_case
from pytest_ldos.scenario.model import StackSpec

ANSWER_GRACE_S: Final = 5.0  # time beyond a goal's own limit for its client to report that the limit was exceeded

_MOTION_LIMIT_S: Final = 30.0
_POLL_S: Final = 0.05
_POLL_OF_WINDOW_S: Final = 0.1


class MoveRequest(TypedDict):
    """The arguments with which a goal is sent; see `MoveCommand`.

    ``start`` replaces the arm's present position; the arm must be there within the planner's start tolerance.
    """

    goal_id: str
    seed: int | None
    trial: TrialTag | None
    start: NotRequired[Mapping[str, float] | None]
    plan_only: NotRequired[bool]


def to_command(spec: StackSpec, goal: Goal, **request: Unpack[MoveRequest]) -> MoveCommand:
    return MoveCommand(
        goal=goal,
        planning_time_s=spec.planning_time_s,
        velocity_scaling=spec.velocity_scaling,
        acceleration_scaling=spec.acceleration_scaling,
        timeout_s=spec.planning_time_s + _MOTION_LIMIT_S,
        **request,
    )


def no_answer(program: str, command: MoveCommand | Command) -> str:
    return f"the {program} gave no answer within {command.timeout_s + ANSWER_GRACE_S:.0f} s"


class Conversation:
    """The conversation with one goal client, or with another program that makes a stack work; its process has pipes.

    Attributes:
        misunderstood: output of the client that is not an event, which ends the conversation.
        can_plan_only, resets: abilities of the client that is ready; see `ReadyEvent`.
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
                self._events.put(parse_event(line))
            except (KeyError, TypeError, ValueError):
                name = self._client.name.replace("_", " ")
                self.misunderstood = f"the {name} printed a line that is not an event: {quoted(line)}"

    def await_ready(self, timeout_s: float) -> bool:
        """Returns True if the client is ready before a timeout or end; raises `ConfigurationError` if it refuses."""
        event = self._next_event(timeout_s)
        match event:
            case ReadyEvent():
                self.can_plan_only, self.resets = event.plan_only, event.resets
            case Refused():
                raise ConfigurationError(event.message, remedy=event.remedy)
        return isinstance(event, ReadyEvent)

    def ask(self, command: MoveCommand | Command) -> MoveReport | Ended | None:
        """Sends a command; returns its answer, not a late one to another; ``None`` on timeout or if a process ended."""
        assert self._client.process.stdin is not None
        try:
            self._client.process.stdin.write(command.to_line())
            self._client.process.stdin.flush()
        except OSError:
            return None
        while (event := self._next_event(command.timeout_s + ANSWER_GRACE_S)) is not None:
            if isinstance(event, MoveReport | Ended) and event.goal_id == command.goal_id:
                return event
        return None

    def _next_event(self, timeout_s: float) -> Event | None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                return self._events.get(timeout=_POLL_S)
            except queue.Empty:
                if self.misunderstood or self._what_ended():
                    return None
        return None


_WARM_UP_REQUESTS: Final = 3
_PLAN_REQUESTS: Final = 25
"""Planning-only requests after a trial. On a virtual machine with varying CPU speed, the mean of 6, 12, 25 and 50
varies between equal trials by 10, 8, 7 and 6 %; each request takes as long as a plan."""

_PLANNING_NS: Final = NS_PER_S
"""Longest total time of planning-only requests after a trial, as estimated from the trial's own planning."""


class Arm(Protocol):
    """An arm that accepts goals."""

    goal_book: GoalBook
    is_repeatable: bool  # True if its planner supports seeds, so that equal versions plan equal paths
    warms_up_by_planning: bool  # True if planning alone makes its first motion like the others

    @property
    def can_plan_only(self) -> bool:
        """True if goals can be planned without execution; earlier versions' stacks do not support it."""

    def move(self, goal: Goal, **request: Unpack[MoveRequest]) -> MotionOutcome:
        """Sends a goal and waits for its end. Always returns in bounded time.

        If it is only planned, the outcome's pose errors are of an arm that did not move.
        """


class ArmStimulus(Stimulus):
    not_reset: ClassVar = "the arm could not return home"

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    @property
    def takes_seeds(self) -> bool:
        return self._arm.is_repeatable

    def cases(self, name: str | None = None) -> Sequence[Goal]:
        book = self._arm.goal_book
        return next(iter(book.sets.values())) if name is None else book.goals(name)

    def run(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome:
        # Equal plans from equal random numbers also need the same start state, to the last bit.
        return self._move(cast("Goal", case), attempt, self._home.joints if self.takes_seeds else None)

    def repeat(self, case: StimulusCase, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Plans a successful trial's goal again from home, without execution, as often as fits into `_PLANNING_NS`.

        The way home follows these requests, so that the planner is idle when the next trial begins.
        """
        planned, executed = (outcome.stamps_ns.get(phase) for phase in (Phase.PLANNING, Phase.EXECUTING))
        if outcome.outcome is not OutcomeClass.SUCCESS or planned is None or executed is None:
            return
        requests = min(_PLAN_REQUESTS, _PLANNING_NS // max(executed - planned, 1)) if self._arm.can_plan_only else 0
        for _ in range(requests):
            self._plan(case, attempt)

    def warm_up_in_place(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome | None:
        if not (self._arm.warms_up_by_planning and self._arm.can_plan_only):
            return None
        outcome = self._plan(case, attempt)
        for _ in range(1, _WARM_UP_REQUESTS):
            if outcome.outcome is not OutcomeClass.SUCCESS:
                break
            outcome = self._plan(case, attempt)
        return outcome

    def _plan(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome:
        return self._arm.move(
            cast("Goal", case),
            goal_id=uuid.uuid4().hex,
            seed=attempt.seed,
            trial=None,
            start=self._home.joints,
            plan_only=True,
        )

    def reset(self, attempt: Attempt) -> MotionOutcome:
        """Returns the arm home, so that every trial starts at the same position and no goal equals the current pose."""
        return self._move(self._home, attempt)

    @property
    def _home(self) -> Goal:
        return self._arm.goal_book.home

    def _move(self, goal: Goal, attempt: Attempt, start: Mapping[str, float] | None = None) -> MotionOutcome:
        return self._arm.move(goal, goal_id=attempt.id, seed=attempt.seed, trial=attempt.trial, start=start)


_NEEDED: Final = frozenset({Phase.GOAL_SENT, Phase.RESULT})


class ProgramStimulus(Stimulus):
    """See `Stimulus`; `why` returns why the stack or the program cannot continue, empty while both run."""

    not_reset: ClassVar = "the stack could not be brought back to where trials begin"
    takes_seeds: ClassVar = True

    def __init__(self, conversation: Conversation, book: CaseBook, *, timeout_s: float, why: Callable[[], str]) -> None:
        self._conversation = conversation
        self._book = book
        self._timeout_s = timeout_s
        self._why = why
        self.pids: set[int] = set()

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        return self._book.cases(name)

    def run(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome:
        command = Command(
            order=Order.RUN,
            goal_id=attempt.id,
            timeout_s=self._timeout_s,
            case=case.name,
            message=case.message if isinstance(case, MessageCase) else None,
            seed=attempt.seed,
            trial=attempt.trial,
        )
        outcome = self._ask(command)
        if outcome.outcome is OutcomeClass.STACK_DIED and command.message is not None:
            return replace(outcome, message=f"{outcome.message} (during {case.name!r})")
        return outcome

    def reset(self, attempt: Attempt) -> MotionOutcome | None:
        if not self._conversation.resets:
            return None
        return self._ask(Command(order=Order.RESET, goal_id=attempt.id, timeout_s=self._timeout_s))

    def _ask(self, command: Command) -> MotionOutcome:
        ended = self._conversation.ask(command)
        if not isinstance(ended, Ended):
            return died(command.goal_id, self._why() or no_answer("stimulus", command))
        self.pids.update(ended.pids)
        if ended.outcome is not OutcomeClass.SUCCESS and (reason := self._why()):
            return died(command.goal_id, reason)
        if command.order is Order.RUN and not ended.stamps_ns.keys() >= _NEEDED:
            return died(command.goal_id, "the stimulus reported an end without stamps for goal_sent and result")
        return copied(MotionOutcome, ended)


class WindowStimulus(Stimulus):
    """See `Stimulus`; `why` returns why the stack has ended, and is empty while it runs."""

    takes_seeds: ClassVar = False

    def __init__(self, seconds: float, why: Callable[[], str]) -> None:
        self._seconds = seconds
        self._why = why

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        return single_case("window").cases(name)

    def run(self, case: StimulusCase, attempt: Attempt) -> MotionOutcome:
        begin_ns = time.monotonic_ns()
        ends_at = time.monotonic() + self._seconds
        while (left_s := ends_at - time.monotonic()) > 0:
            time.sleep(min(left_s, _POLL_OF_WINDOW_S))
            if reason := self._why():
                return died(attempt.id, reason)
        return MotionOutcome(
            goal_id=attempt.id,
            outcome=OutcomeClass.SUCCESS,
            stamps_ns={Phase.GOAL_SENT: begin_ns, Phase.RESULT: time.monotonic_ns()},
        )
