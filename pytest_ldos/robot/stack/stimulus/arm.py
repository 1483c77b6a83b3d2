"""The stimulus of an arm behind MoveGroup: goals from home, and home again after each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol, cast

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.base.units import NS_PER_S
from pytest_ldos.robot.stack.client_protocol import TrialTag
from pytest_ldos.robot.stack.goals import Goal, GoalBook, OutcomeClass
from pytest_ldos.robot.stack.outcomes import MotionOutcome
from pytest_ldos.robot.stack.stimulus.protocol import Attempt, Case

_PLAN_REQUESTS: Final = 25
"""Planning-only requests after a trial. On a virtual machine whose CPU changes its speed, the mean of 6, 12, 25 and 50
varies between equal trials by 10, 8, 7 and 6 %; each takes as long as a plan."""

_WARM_UP_REQUESTS: Final = 3
"""Planning-only requests that warm up an arm that is not moved for it."""

_PLANNING_NS: Final = NS_PER_S
"""Time that planning-only requests after a trial may take, by what its own planning took."""


class Arm(Protocol):
    """An arm that accepts goals.

    Attributes:
        goal_book: its goals by name.
        is_repeatable: True if its planner takes seeds, so that equal versions plan equal paths.
        warms_up_by_planning: True if its first motion is like the others once it has planned.
    """

    goal_book: GoalBook
    is_repeatable: bool
    warms_up_by_planning: bool

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


class ArmStimulus:
    """See `Stimulus`."""

    pids: ClassVar[tuple[int, ...]] = ()
    not_reset: ClassVar = "the arm could not return home"

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    @property
    def takes_seeds(self) -> bool:
        return self._arm.is_repeatable

    def cases(self, name: str | None = None) -> Sequence[Goal]:
        book = self._arm.goal_book
        return next(iter(book.sets.values())) if name is None else book.goals(name)

    def run(self, case: Case, attempt: Attempt) -> MotionOutcome:
        # Equal plans from equal random numbers also need the same start state, to the last bit.
        start = self._home.joints if self.takes_seeds else None
        return self._move(cast("Goal", case), attempt, start=start)

    def repeat(self, case: Case, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Has the goal of a trial planned again from home, without execution.

        The way home lies between these requests and the next trial, which so begins with a planner as idle as ever.
        """
        for _ in range(_requests_worth(outcome) if self._arm.can_plan_only else 0):
            self._plan(case, attempt)

    def warm_up_in_place(self, case: Case, attempt: Attempt) -> MotionOutcome | None:
        if not (self._arm.warms_up_by_planning and self._arm.can_plan_only):
            return None
        outcome = None
        for _ in range(_WARM_UP_REQUESTS):
            outcome = self._plan(case, attempt)
        return outcome

    def _plan(self, case: Case, attempt: Attempt) -> MotionOutcome:
        return self._arm.move(
            cast("Goal", case),
            goal_id=uuid.uuid4().hex,
            seed=attempt.seed,
            trial=None,
            start=self._home.joints,
            plan_only=True,
        )

    def reset(self, attempt: Attempt) -> MotionOutcome:
        """Returns the arm home, so that every trial starts at the same place and no goal equals the current pose."""
        return self._move(self._home, attempt, start=None)

    @property
    def _home(self) -> Goal:
        return self._arm.goal_book.home

    def _move(self, goal: Goal, attempt: Attempt, *, start: Mapping[str, float] | None) -> MotionOutcome:
        return self._arm.move(goal, goal_id=attempt.id, seed=attempt.seed, trial=attempt.trial, start=start)


def _requests_worth(outcome: MotionOutcome) -> int:
    """Number of planning-only requests after a trial: as many as fit into `_PLANNING_NS`; none after a failure."""
    planned, executed = (outcome.stamps_ns.get(phase) for phase in (Phase.PLANNING, Phase.EXECUTING))
    if outcome.outcome is not OutcomeClass.SUCCESS or planned is None or executed is None:
        return 0
    return min(_PLAN_REQUESTS, _PLANNING_NS // max(executed - planned, 1))
