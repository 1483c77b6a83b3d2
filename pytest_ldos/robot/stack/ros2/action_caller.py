"""The process of the stimulus ``action``; sends goals of any action.

It speaks the line protocol of `stimulus.lines`, and marks each trial's phases in the trace.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from rosidl_runtime_py.utilities import get_message

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.ros2.message_fields import fill, find_action_type, find_service_type
from pytest_ldos.robot.stack.stimulus.lines import REJECTED, Ended, Order, Task, judge_end, refuse, serve
from pytest_ldos.scenario.stimuli import FEEDBACK, ActionSpec

_STATUS: Final = "STATUS_"
_DISCOVERY_S: Final = 10.0
_CANCEL_S: Final = 2.0
_POLL_S: Final = 0.02


class ActionCaller:
    """Sends one goal at a time and waits for its end.

    Args:
        reset: message of the goal after each trial; ``None`` for none.

    Raises:
        ConfigurationError: a type is not installed, or the topic in `executing` does not exist.
    """

    def __init__(self, node: Node, spec: ActionSpec, reset: Mapping[str, Any] | None) -> None:
        self._node = node
        self._spec = spec
        self._reset = reset
        self._type = find_action_type(spec.type)
        self._client = ActionClient(node, self._type, spec.name)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._task: Task | None = None
        self._service = None
        if spec.reset_service:
            self._service = node.create_client(find_service_type(spec.reset_type), spec.reset_service)
        if spec.executing and spec.executing != FEEDBACK:
            self._listen(spec.executing)

    @property
    def resets(self) -> bool:
        return self._reset is not None or self._service is not None

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses messages that are not goals of this type.

        Raises:
            ConfigurationError: names the place and the field.
        """
        for where, values in messages.items():
            fill(self._type.Goal(), values, where)
        if not self._client.wait_for_server(timeout_sec=_DISCOVERY_S):
            raise ConfigurationError(f"there is no action server {self._spec.name} of type {self._spec.type}")

    def handle(self, task: Task) -> Ended:
        """Executes a command."""
        if task.order is Order.RUN:
            return self._send(task, task.message)
        if self._service is not None:
            answer = self._service.call_async(self._service.srv_type.Request())
            if not self._await(answer, task):
                return task.end(OutcomeClass.TIMED_OUT, f"no answer from {self._spec.reset_service}")
        return self._send(task, self._reset) if self._reset is not None else task.end(OutcomeClass.SUCCESS)

    def _send(self, task: Task, values: Mapping[str, Any]) -> Ended:
        goal = fill(self._type.Goal(), values, "the goal")
        self._task = task
        task.begin()
        task.enter(Phase.GOAL_SENT)
        if self._spec.executing:
            task.enter(Phase.PLANNING)
        sent = self._client.send_goal_async(goal, feedback_callback=self._fed_back)
        if not self._await(sent, task):
            task.enter(Phase.RESULT)
            return task.end(OutcomeClass.TIMED_OUT, "the server did not answer the goal")
        handle = sent.result()
        if not handle.accepted:
            task.enter(Phase.RESULT)
            return task.end(*REJECTED)
        task.enter(Phase.GOAL_ACCEPTED)
        if not self._spec.executing:
            task.enter(Phase.EXECUTING)
        done = handle.get_result_async()
        if not self._await(done, task):
            self._executor.spin_until_future_complete(handle.cancel_goal_async(), timeout_sec=_CANCEL_S)
            task.enter(Phase.RESULT)
            return task.end(OutcomeClass.TIMED_OUT, f"no result within {self._spec.timeout_s:g} s")
        task.enter(Phase.RESULT)
        answer = done.result()
        return task.end(*judge_end(_status_name(answer.status), answer.result, self._spec.success_codes))

    def _await(self, future: Future, task: Task) -> bool:
        """Returns True if the future was completed in time."""
        self._executor.spin_until_future_complete(future, timeout_sec=task.left_s)
        return bool(future.done())

    def _fed_back(self, _: Any) -> None:
        if self._spec.executing == FEEDBACK and self._task is not None:
            self._task.enter(Phase.EXECUTING)

    def _heard(self, _: Any) -> None:
        if self._task is not None and Phase.GOAL_SENT in self._task.stamps and Phase.RESULT not in self._task.stamps:
            self._task.enter(Phase.EXECUTING)

    def _listen(self, topic: str) -> None:
        ends_at = time.monotonic() + _DISCOVERY_S
        while topic not in (types := dict(self._node.get_topic_names_and_types())):
            if time.monotonic() > ends_at:
                names = ", ".join(sorted(types)) or "none"
                message = f"executing names the topic {topic}, which does not exist"
                raise ConfigurationError(message, remedy=f"there is {names}")
            self._executor.spin_once(timeout_sec=_POLL_S)
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._node.create_subscription(get_message(types[topic][0]), topic, self._heard, qos)


def _status_name(status: int) -> str:
    """``aborted`` for `GoalStatus.STATUS_ABORTED`."""
    names = (name for name, value in vars(GoalStatus).items() if name.startswith(_STATUS) and value == status)
    return next(names, f"status {status}").removeprefix(_STATUS).lower()


def main() -> None:
    """Serves the action described by ``argv[1]``: JSON with ``spec``, ``messages`` (by place) and ``reset``."""
    settings = json.loads(sys.argv[1])
    rclpy.init(args=[])
    node = Node("ldos_action_caller", enable_rosout=False, start_parameter_services=False)
    spec = ActionSpec(**{**settings["spec"], "success_codes": tuple(settings["spec"]["success_codes"])})
    try:
        caller = ActionCaller(node, spec, settings["reset"])
        caller.check(settings["messages"])
    except LdosError as error:
        refuse(error)
    else:
        serve(caller.handle, resets=caller.resets)


if __name__ == "__main__":
    main()
