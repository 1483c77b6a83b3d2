"""A stimulus that is a program beside the stack: it gets a command for each trial, and reports the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.conversation import ANSWER_GRACE_S, Conversation
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.outcomes import MotionOutcome, died
from pytest_ldos.robot.stack.stimulus.cases import CaseBook, MessageCase
from pytest_ldos.robot.stack.stimulus.lines import Command, Ended, Order
from pytest_ldos.robot.stack.stimulus.protocol import Attempt, Case

_NEEDED: Final = frozenset({Phase.GOAL_SENT, Phase.RESULT})


class ProgramStimulus:
    """See `Stimulus`.

    Args:
        conversation: with the program.
        book: what it can be asked for.
        timeout_s: for each command.
        why: returns why the stack or the program can do no more; empty while both run.
    """

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

    def run(self, case: Case, attempt: Attempt) -> MotionOutcome:
        message = case.message if isinstance(case, MessageCase) else None
        command = Command(
            order=Order.RUN,
            goal_id=attempt.id,
            timeout_s=self._timeout_s,
            case=case.name,
            message=message,
            seed=attempt.seed,
            trial=attempt.trial,
        )
        return self._ask(command)

    def repeat(self, case: Case, attempt: Attempt, outcome: MotionOutcome) -> None:
        """Nothing: no part of such a trial is known to be cheap."""

    def warm_up_in_place(self, case: Case, attempt: Attempt) -> None:
        """Nothing: only a run warms it up."""

    def reset(self, attempt: Attempt) -> MotionOutcome | None:
        if not self._conversation.resets:
            return None
        return self._ask(Command(order=Order.RESET, goal_id=attempt.id, timeout_s=self._timeout_s))

    def _ask(self, command: Command) -> MotionOutcome:
        limit_s = self._timeout_s + ANSWER_GRACE_S
        ended = self._conversation.ask(command, timeout_s=limit_s)
        if not isinstance(ended, Ended):
            return died(command.goal_id, self._why() or f"the stimulus gave no answer within {limit_s:.0f} s")
        self.pids.update(ended.pids)
        if ended.outcome is not OutcomeClass.SUCCESS and (reason := self._why()):
            return died(command.goal_id, reason)
        if command.order is Order.RUN and not ended.stamps_ns.keys() >= _NEEDED:
            return died(command.goal_id, "the stimulus reported an end without stamps for goal_sent and result")
        return MotionOutcome(
            goal_id=command.goal_id,
            outcome=ended.outcome,
            error_code=None,
            message=ended.message,
            stamps_ns=ended.stamps_ns,
            numbers=ended.numbers,
        )
