"""Action servers and their goals, service calls, and transitions of lifecycle nodes.

An action has no events of its own in ROS 2 Jazzy, and no event carries a goal's id or outcome. Its services and
topics are named ``ACTION/_action/…``. A server publishes the goals' status when it accepts a goal and when a goal
ends, and feedback in between.

Tracepoints: ``rmw_publish`` on ``ACTION/_action/status`` and ``ACTION/_action/feedback``.

Tracepoints: ``rmw_send_request``, ``rmw_take_request``, ``rmw_send_response``, ``rmw_take_response``.

Tracepoints: ``rcl_lifecycle_transition``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import ENTITIES, INSTANCES

SEND_GOAL: Final = "/_action/send_goal"


def build_actions(services: pl.DataFrame, clients: pl.DataFrame) -> pl.DataFrame:
    """One row per action server or client.

    Args:
        services, clients: tables of the model.
    """
    found = [
        (row["node"], role, row["name"].removesuffix(SEND_GOAL))
        for role, table in (("server", services), ("client", clients))
        for row in table.filter(pl.col("name").str.ends_with(SEND_GOAL)).iter_rows(named=True)
    ]
    columns = {key: [row[at] for row in found] for at, key in enumerate(("node", "role", "name"))}
    return frame_of(ENTITIES["actions"], columns)


STATUS: Final = "/_action/status"
FEEDBACK: Final = "/_action/feedback"

_FURTHEST_NS: Final = NS_PER_S
"""Longest time between a goal's acceptance and its first feedback."""


@dataclass(frozen=True, kw_only=True)
class ActionGoal:
    """Goal with at least one feedback message.

    Attributes:
        accepted_ns: time of the first status of the goal; ``None`` if not in the trace.
        feedback_ns: times of its feedback, at least one; feedback after its end is left out.
        result_ns: time of the status that reports its end; ``None`` if not in the trace.
    """

    accepted_ns: int | None
    feedback_ns: tuple[int, ...]
    result_ns: int | None

    @property
    def begin_ns(self) -> int:
        """Time of the earliest publication about the goal in the trace."""
        first_ns = self.feedback_ns[0]
        return first_ns if self.accepted_ns is None else min(first_ns, self.accepted_ns)


def find_action_goals(model: ExecutionModel, action: str) -> list[ActionGoal]:
    """Goals of an action (``/move_action``), ordered by begin.

    The action's server must execute each goal on one thread, as MoveIt's does; that thread publishes the goal's
    feedback and its end. Other threads may accept goals and cancel requests. An rclcpp server reports acceptance
    before it executes the goal; the embedded stack's server may report it right after the first feedback.
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
    """Follows the publications of an action server's threads, in time order.

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
        """Interprets a status as the end of the thread's goal; without one, as an acceptance or a cancel request."""
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
        """Begins a goal with the first feedback of a thread, except the one MoveIt sends right after a goal's end
        (``IDLE``).
        """
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
    """True if the goal's first feedback came shortly before its acceptance."""
    return goal.accepted_ns is None and len(goal.feedback_ns) == 1 and time_ns - goal.begin_ns <= _FURTHEST_NS


_STEPS: Final = {
    Ros2.RMW_SEND_REQUEST: "send_request",
    Ros2.RMW_TAKE_REQUEST: "take_request",
    Ros2.RMW_SEND_RESPONSE: "send_response",
    Ros2.RMW_TAKE_RESPONSE: "take_response",
}
_OF_CLIENT: Final = ("send_request", "take_response")


def build_requests(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    """One row per step, in time order, without takes that returned nothing."""
    parts = [_steps(observed.events(name), step, endpoints) for name, step in _STEPS.items()]
    return pl.concat(parts).sort("time_ns", maintain_order=True).with_columns(id=pl.int_range(pl.len(), dtype=pl.Int32))


def _steps(events: Events, step: str, endpoints: Endpoints) -> pl.DataFrame:
    no_entity = np.full(len(events), -1, dtype=np.int32)
    client, service = no_entity, no_entity
    subject = (events.process, events.times_ns)
    if step in _OF_CLIENT:
        client = endpoints.rmw_clients.find(subject[0], events.handles("rmw_client_handle"), subject[1])
    else:
        service = endpoints.rmw_services.find(subject[0], events.handles("rmw_service_handle"), subject[1])
    columns: dict[str, Any] = {
        "time_ns": events.times_ns,
        "thread": events.thread,
        "step": [step] * len(events),
        "client": client,
        "service": service,
        "client_gid": [None] * len(events) if step in _OF_CLIENT else events.hexadecimals("client_gid"),
        "sequence": events["sequence_number"].astype(np.int64),
    }
    frame = frame_of(INSTANCES["requests"], columns)
    return frame.filter(pl.Series(events["taken"] != 0)) if step.startswith("take_") else frame


def build_transitions(observed: Observed, endpoints: Endpoints) -> pl.DataFrame:
    """Each transition with its source and target state."""
    events = observed.events(Ros2.LIFECYCLE_TRANSITION)
    machines = endpoints.state_machines.registry
    columns = {
        "time_ns": events.times_ns,
        "thread": events.thread,
        "state_machine": machines.resolve(events.process, events.handles("state_machine"), events.times_ns),
        "from_state": events.texts("start_label"),
        "to_state": events.texts("goal_label"),
    }
    return frame_of(INSTANCES["transitions"], columns)
