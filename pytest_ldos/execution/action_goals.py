"""Goals of an action as its server shows them to everybody.

An action of ROS 2 Jazzy has no events of its own, and no event carries a goal's id or outcome. But a server
publishes the goals' status when it accepts one and when one ends, and feedback in between.

Tracepoints: ``rmw_publish`` on ``ACTION/_action/status`` and ``ACTION/_action/feedback``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.units import NS_PER_S

STATUS: Final = "/_action/status"
FEEDBACK: Final = "/_action/feedback"

_FURTHEST_NS: Final = NS_PER_S
"""A status that is further from the first feedback of a goal than this does not tell that it was accepted."""


@dataclass(frozen=True, kw_only=True)
class ActionGoal:
    """A goal that gave feedback.

    Attributes:
        accepted_ns: when the status told of it first; ``None`` where that is not in the trace.
        feedback_ns: what it published until it ended, at least once; whatever follows its end is left out.
        result_ns: when the status told of its end; ``None`` where that is not in the trace.
    """

    accepted_ns: int | None
    feedback_ns: tuple[int, ...]
    result_ns: int | None

    @property
    def begin_ns(self) -> int:
        """The first that the trace has of it."""
        first_ns = self.feedback_ns[0]
        return first_ns if self.accepted_ns is None else min(first_ns, self.accepted_ns)


def find_action_goals(model: ExecutionModel, action: str) -> list[ActionGoal]:
    """The goals of an action (``/move_action``), in the order in which they began.

    The action's server must execute a goal on one thread, as MoveIt's does, which publishes the goal's feedback
    and its end. Other threads may accept goals and requests to cancel them. A server of rclcpp tells that it has
    accepted a goal before it executes it; the embedded stack's may tell it right after the first feedback.
    """
    server = _Server()
    for time_ns, thread, is_status in _published(model, action).iter_rows():
        (server.status if is_status else server.feedback)(thread, time_ns)
    return sorted(server.ended + list(server.running.values()), key=lambda goal: goal.begin_ns)


def _published(model: ExecutionModel, action: str) -> pl.DataFrame:
    """Columns: `time_ns`, `thread`, `is_status`."""
    topics = model.publishers.select(publisher="id", topic="topic")
    own = topics.filter(pl.col("topic").is_in([action + STATUS, action + FEEDBACK]))
    found = model.publications.join(own, on="publisher", maintain_order="left")
    return found.select("time_ns", "thread", is_status=pl.col("topic") == action + STATUS)


class _Server:
    """Follows what the threads of an action server publish, in the order of time.

    Attributes:
        running: the goal of each thread.
        ended: goals with their end.
    """

    def __init__(self) -> None:
        self.running: dict[int, ActionGoal] = {}
        self.ended: list[ActionGoal] = []
        self._accepted_ns: int | None = None
        self._just_ended: set[int] = set()

    def status(self, thread: int, time_ns: int) -> None:
        """A thread that executes a goal tells its end, any other that a goal was accepted or is to be cancelled."""
        self._just_ended.discard(thread)
        if thread in self.running:
            self.ended.append(replace(self.running.pop(thread), result_ns=time_ns))
            self._just_ended.add(thread)
            return
        begun = next((other for other, goal in self.running.items() if _has_just_begun(goal, time_ns)), None)
        if begun is None:
            self._accepted_ns = time_ns
        else:
            self.running[begun] = replace(self.running[begun], accepted_ns=time_ns)

    def feedback(self, thread: int, time_ns: int) -> None:
        """The first of a thread begins a goal, but for what MoveIt sends right after the end of one (``IDLE``)."""
        if thread in self.running:
            goal = self.running[thread]
            self.running[thread] = replace(goal, feedback_ns=(*goal.feedback_ns, time_ns))
        elif thread in self._just_ended:
            self._just_ended.discard(thread)
        else:
            self.running[thread] = ActionGoal(
                accepted_ns=self._take_acceptance(time_ns), feedback_ns=(time_ns,), result_ns=None
            )

    def _take_acceptance(self, time_ns: int) -> int | None:
        accepted_ns, self._accepted_ns = self._accepted_ns, None
        return None if accepted_ns is None or time_ns - accepted_ns > _FURTHEST_NS else accepted_ns


def _has_just_begun(goal: ActionGoal, time_ns: int) -> bool:
    """Whether a goal has given its first feedback right before, ahead of its acceptance."""
    return goal.accepted_ns is None and len(goal.feedback_ns) == 1 and time_ns - goal.begin_ns <= _FURTHEST_NS
