"""The process of the embedded stack for the stimulus ``action``, which speaks the line protocol of `stack.lines`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.dds.action import ActionClient, GoalStatus, ParameterClient
from pytest_ldos.robot.dds.endpoint import Message, default, is_known, type_names
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import REJECTED, Ended, Order, Task, judge_end, refuse, serve
from pytest_ldos.robot.stack.messages import MessageLayer, fill
from pytest_ldos.scenario.stimuli import FEEDBACK, ActionSpec

LAYER: Final = MessageLayer(default, type_names)
_DISCOVERY_S: Final = 20.0
_POLL_S: Final = 0.02
_CANCEL_S: Final = 2.0


@dataclass
class _Goal:
    """A goal in progress; its fields are set on the executor's thread."""

    ended: threading.Event = field(default_factory=threading.Event)
    was_accepted: bool = False
    status: GoalStatus = GoalStatus.UNKNOWN
    result: Message | None = None


class ActionCaller:
    """Sends one goal at a time and waits for its end; `reset` is the message of the goal after each trial, if any."""

    def __init__(self, node: Node, spec: ActionSpec, reset: Mapping[str, Any] | None) -> None:
        self._node = node
        self._spec = spec
        self._reset = reset
        if not is_known(f"{spec.type}_Goal"):
            raise ConfigurationError(
                f"the embedded stack has no actions of type {spec.type}",
                remedy="take control_msgs/action/FollowJointTrajectory, or a stack of ROS 2 nodes",
            )
        self._client = ActionClient(node, spec.type, spec.name)

    @property
    def resets(self) -> bool:
        return self._reset is not None

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Raises `ConfigurationError` for messages that are not goals of this type, and an action without a server."""
        for where, values in messages.items():
            fill(default(f"{self._spec.type}_Goal"), values, where, LAYER)
        await_servers([self._client], of=f" of type {self._spec.type}")

    def handle(self, task: Task) -> Ended:
        if task.order is Order.RUN:
            return self._send(task, task.message)
        return self._send(task, self._reset) if self._reset is not None else task.end(OutcomeClass.SUCCESS)

    def _send(self, task: Task, values: Mapping[str, Any]) -> Ended:
        message = fill(default(f"{self._spec.type}_Goal"), values, "the goal", LAYER)
        goal = _Goal()
        task.begin()
        self._node.executor.post(lambda: self._begin(task, goal, message))
        if not goal.ended.wait(task.left_s):
            self._node.executor.post(lambda: self._client.cancel_goal(task.id))
            goal.ended.wait(_CANCEL_S)
            return task.end(OutcomeClass.TIMED_OUT, f"no result within {self._spec.timeout_s:g} s")
        if not goal.was_accepted:
            return task.end(*REJECTED)
        return task.end(*judge_end(goal.status.name.lower(), goal.result, self._spec.success_codes))

    def _begin(self, task: Task, goal: _Goal, message: Message) -> None:
        """Sends the goal; runs on the executor's thread, as do its callbacks."""

        def answered(accepted: bool) -> None:
            goal.was_accepted = accepted
            task.enter(Phase.GOAL_ACCEPTED if accepted else Phase.RESULT)
            if accepted and not self._spec.executing:
                task.enter(Phase.EXECUTING)
            if not accepted:
                goal.ended.set()

        def fed_back(_: Message) -> None:
            if self._spec.executing == FEEDBACK:
                task.enter(Phase.EXECUTING)

        def ended(status: GoalStatus, result: Message) -> None:
            task.enter(Phase.RESULT)
            goal.status, goal.result = status, result
            goal.ended.set()

        task.enter(Phase.GOAL_SENT)
        if self._spec.executing:
            task.enter(Phase.PLANNING)
        self._client.send_goal(task.id, message, on_response=answered, on_feedback=fed_back, on_result=ended)


def await_servers(clients: Sequence[ActionClient | ParameterClient], *, of: str = "") -> None:
    """Raises `ConfigurationError` for a client without a server; `of` names its type."""
    ends_at = time.monotonic() + _DISCOVERY_S
    for client in clients:
        while not client.server_is_ready():
            if time.monotonic() > ends_at:
                raise ConfigurationError(f"there is no action server {client.name}{of}")
            time.sleep(_POLL_S)


class Caller(Protocol):
    """A program of a stimulus; see `stack.lines`."""

    @property
    def resets(self) -> bool: ...

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None: ...

    def handle(self, task: Task) -> Ended: ...


def serve_node(node: Node, caller: Caller, messages: Mapping[str, Mapping[str, Any]]) -> None:
    """Serves a program whose node spins on another thread, and which ends it."""
    try:
        caller.check(messages)
    except LdosError as error:
        refuse(error)
    else:
        serve(caller.handle, resets=caller.resets)
    node.executor.stop()


def build(context: Context, parameters: dict[str, Any]) -> None:
    """Parameters: ``spec``, ``messages`` by place, ``reset``."""
    node = Node(context, "ldos_action_caller")
    spec = ActionSpec(**{**parameters["spec"], "success_codes": tuple(parameters["spec"]["success_codes"])})
    try:
        caller = ActionCaller(node, spec, parameters["reset"])
    except LdosError as error:
        work = threading.Thread(target=refuse, args=(error,), name="refusal", daemon=True)
    else:
        work = threading.Thread(
            target=serve_node, args=(node, caller, parameters["messages"]), name="commands", daemon=True
        )
    work.start()


if __name__ == "__main__":
    run_node("action_caller", build)
