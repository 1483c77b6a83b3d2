"""The stimulus that sends nothing: a trial is a time of the running stack."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.outcomes import MotionOutcome, died
from pytest_ldos.robot.stack.stimulus.cases import MessageCase, single_case
from pytest_ldos.robot.stack.stimulus.protocol import Attempt, Case

_POLL_S: Final = 0.1


class WindowStimulus:
    """See `Stimulus`.

    Args:
        seconds: length of a trial.
        why: returns why the stack has ended; empty while it runs.
    """

    pids: ClassVar[tuple[int, ...]] = ()
    not_reset: ClassVar = "nothing is reset"
    takes_seeds: ClassVar = False

    def __init__(self, seconds: float, why: Callable[[], str]) -> None:
        self._seconds = seconds
        self._why = why

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        return single_case("window").cases(name)

    def run(self, case: Case, attempt: Attempt) -> MotionOutcome:
        begin_ns = time.monotonic_ns()
        ends_at = time.monotonic() + self._seconds
        while (left_s := ends_at - time.monotonic()) > 0:
            time.sleep(min(left_s, _POLL_S))
            if reason := self._why():
                return died(attempt.id, reason)
        return MotionOutcome(
            goal_id=attempt.id,
            outcome=OutcomeClass.SUCCESS,
            error_code=None,
            message="",
            stamps_ns={Phase.GOAL_SENT: begin_ns, Phase.RESULT: time.monotonic_ns()},
        )

    def repeat(self, case: Case, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Nothing: all that is measured is the window itself."""

    def warm_up_in_place(self, case: Case, attempt: Attempt) -> None:
        """Nothing: only a run warms it up."""

    def reset(self, attempt: Attempt) -> None:
        """Nothing was sent, so there is nothing to bring back."""
