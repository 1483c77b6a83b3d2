"""The common interface of all stacks under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pytest_ldos.robot.stack.client_protocol import TrialTag
from pytest_ldos.robot.stack.goals import Goal, GoalBook, OutcomeClass
from pytest_ldos.scenario.words import StackKind


@dataclass(frozen=True, kw_only=True)
class MotionOutcome:
    """The result of one goal, as its client saw it.

    Attributes:
        error_code: MoveIt's error code; ``None`` if the stack died before it could report one.
        stamps_ns: time at which the client entered each phase (``CLOCK_MONOTONIC``), by phase name.
        plan_duration_ns: duration of the planned trajectory; ``None`` if nothing was planned.
        position_error_m, rotation_error_rad: difference of the tip's final pose from the goal;
            ``None`` if unknown.
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
    """Description of a running stack, for headers and records.

    Attributes:
        name: name of its folder of baselines, such as ``ros2-gz``.
        description: text for people that names the parts.
        rmw: the middleware, as part of the host class.
        versions: versions of the relevant software, by name.
        has_simulated_clock: True if its nodes take the time from a topic.
    """

    name: str
    description: str
    rmw: str
    versions: Mapping[str, str]
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False


class RunningStack(Protocol):
    """A stack that accepts goals.

    Attributes:
        domain: DDS domain of its processes.
        environment: variables for other processes that are to use its domain and its middleware.
        goal_book: the arm's goals by name.
        is_repeatable: True if its planner takes seeds, so that equal versions plan equal paths.
    """

    info: StackInfo
    domain: int
    environment: Mapping[str, str]
    goal_book: GoalBook
    is_repeatable: bool

    @property
    def can_plan_only(self) -> bool:
        """True if goals can be planned without being executed: stacks of earlier versions cannot."""

    def move(
        self,
        goal: Goal,
        *,
        goal_id: str,
        seed: int | None,
        trial: TrialTag | None,
        start: Mapping[str, float] | None = None,
        plan_only: bool = False,
    ) -> MotionOutcome:
        """Sends a goal and waits for its end. Always returns in bounded time.

        Args:
            plan_only: plan and do not execute; the outcome's pose errors are then of an arm that did not move.
            start: joints at which the plan begins, instead of the arm's present position; the
                arm must be there within the planner's start tolerance.
        """

    def pids(self) -> list[int]:
        """Returns the stack's processes, which may appear in its trace."""


class StackBackend(Protocol):
    """Starts and ends a stack."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> RunningStack:
        """Starts the stack and returns when it accepts goals.

        Args:
            on_waiting: called every few seconds with the parts that are missing, if the backend knows them.

        Raises:
            BringUpFailed: the stack did not become ready; has the last lines of each process.
        """

    def stop(self) -> None:
        """Ends every process. May be called at any time, and repeatedly."""
