"""A stack under test, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pytest_ldos.stack.client_protocol import TrialTag
from pytest_ldos.stack.goals import Goal, GoalBook, OutcomeClass


@dataclass(frozen=True, kw_only=True)
class MotionOutcome:
    """What came of one goal, as its client saw it.

    Attributes:
        error_code: MoveIt's; ``None`` when the stack died before it could say.
        stamps_ns: when the client entered each phase (``CLOCK_MONOTONIC``), by phase name.
        plan_duration_ns: of the planned trajectory; ``None`` where nothing was planned.
        position_error_m, rotation_error_rad: of the tip's final pose against the goal;
            ``None`` where it is not known.
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


@dataclass(frozen=True)
class StackInfo:
    """What a running stack is, for headers and records.

    Attributes:
        kind: ``embedded`` or ``ros2``.
        description: for people; names the parts.
        rmw: the middleware, as part of the host class.
        versions: of what matters, by name.
    """

    kind: str
    description: str
    rmw: str
    versions: Mapping[str, str]


class RunningStack(Protocol):
    """A stack that takes goals.

    Attributes:
        domain: the DDS domain its processes are on.
        environment: variables of other processes that are to be on its domain, with its middleware.
        goal_book: what its arm can be asked for by name.
        is_repeatable: whether its planner takes seeds, so that equal versions plan equal paths.
    """

    info: StackInfo
    domain: int
    environment: Mapping[str, str]
    goal_book: GoalBook
    is_repeatable: bool

    def move(
        self,
        goal: Goal,
        *,
        goal_id: str,
        seed: int | None,
        trial: TrialTag | None,
        start: Mapping[str, float] | None = None,
    ) -> MotionOutcome:
        """Sends a goal and waits for its end. Returns in bounded time, whatever happens.

        Args:
            start: joints that the plan begins at, if not where the arm happens to be; the
                arm must be there within the planner's start tolerance.
        """

    def pids(self) -> list[int]:
        """The stack's processes: who may be in its trace."""


class StackBackend(Protocol):
    """Starts and ends a stack."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> RunningStack:
        """Returns when the stack takes goals.

        Args:
            on_waiting: told every few seconds what is not there yet, where the backend knows.

        Raises:
            BringUpFailed: it did not get there; carries the last lines of each process.
        """

    def stop(self) -> None:
        """Ends every process. May be called at any time, also twice."""
