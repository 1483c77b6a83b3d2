"""A process that queries a stack until it is ready, and then ends.

Prints a JSON list of missing parts each time it changes. The last line is an empty list, or a JSON string with the
reason why the stack will never be ready. A request to the action server to cancel nothing proves that it serves.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Collection
from typing import Any, Final

import rclpy
from action_msgs.srv import CancelGoal
from rcl_interfaces.srv import GetParameters
from rclpy.action import get_action_server_names_and_types_by_node
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from pytest_ldos.robot.stack.messages import find_type
from pytest_ldos.robot.stack.ros2.state import Readiness, group_names

_PERIOD_S: Final = 0.05
_PATIENCE_S: Final = 0.2
_GROUPS_PATIENCE_S: Final = 5.0
_ACTION_SERVICE: Final = "/_action/send_goal"
_PARAMETERS: Final = "/get_parameters"
_SEMANTICS: Final = "robot_description_semantic"
_LATEST: Final = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class Question:
    """A service that is called again after each answer, or after a timeout; a late answer also counts.

    An answer can be lost for good: a server may send it before it has discovered the client.
    """

    def __init__(self, node: Node, kind: Any, name: str, take: Callable[[Any], None], *, request: Any = None) -> None:
        self._client = node.create_client(kind, name)
        self._request = kind.Request() if request is None else request
        self._take = take
        self._pending: Any = None
        self._asked_s = 0.0

    def ask(self) -> None:
        is_waiting = self._pending is not None and time.monotonic() < self._asked_s + _PATIENCE_S
        if is_waiting or not self._client.service_is_ready():
            return
        self._asked_s = time.monotonic()
        self._pending = self._client.call_async(self._request)
        self._pending.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        if future is self._pending:
            self._pending = None
        self._take(future.result())


class Watcher:
    def __init__(self, node: Node, readiness: Readiness) -> None:
        self._node = node
        self._readiness = readiness
        self._printed: list[str] | str | None = None
        self._controllers: Question | None = None
        if readiness.controllers:
            from controller_manager_msgs.srv import ListControllers  # noqa: PLC0415 - not every stack has controllers

            service = f"{readiness.controller_manager}/list_controllers"
            self._controllers = Question(node, ListControllers, service, self._listed)
        self._action: Question | None = None
        if readiness.action:
            # A request without goal and time would cancel all goals; there are none before the first one is sent.
            service = f"{readiness.action}/_action/cancel_goal"
            self._action = Question(node, CancelGoal, service, lambda _: readiness.saw_answer())
        self._others: dict[str, Any] = {}
        self._groups: Question | None = None
        self._whole_s = time.monotonic()
        if readiness.joint_states:
            from sensor_msgs.msg import JointState  # noqa: PLC0415 - not every stack has joints

            node.create_subscription(JointState, readiness.joint_states, lambda _: readiness.saw_joint_state(), _LATEST)
        if readiness.needs_clock:
            node.create_subscription(Clock, "/clock", self._ticked, _LATEST)
        node.create_timer(_PERIOD_S, self._watch)

    @property
    def is_done(self) -> bool:
        return self._printed == [] or isinstance(self._printed, str)

    def _look_for(self, need: str, actions: Collection[str]) -> None:
        """Looks for one of the further conditions: ``KIND:NAME``."""
        kind, _, name = need.partition(":")
        if (kind == "service" and self._node.count_services(name)) or (
            kind == "action" and name + _ACTION_SERVICE in actions
        ):
            self._readiness.saw(need)
        elif kind == "topic" and need not in self._others:
            self._listen(need, name)
        elif kind == "active":
            self._ask_state(need, name)

    def _listen(self, need: str, topic: str) -> None:
        """Waits for a topic's first message, once its type is known."""
        types = dict(self._node.get_topic_names_and_types())
        if topic in types and self._node.count_publishers(topic):
            self._others[need] = self._node.create_subscription(
                find_type(types[topic][0], "msg"), topic, lambda _: self._readiness.saw(need), _LATEST, raw=True
            )

    def _ask_state(self, need: str, node: str) -> None:
        from lifecycle_msgs.msg import State  # noqa: PLC0415 - not every stack has lifecycle nodes
        from lifecycle_msgs.srv import GetState  # noqa: PLC0415

        def take(answer: Any) -> None:
            if answer.current_state.id == State.PRIMARY_STATE_ACTIVE:
                self._readiness.saw(need)

        if need not in self._others:
            self._others[need] = Question(self._node, GetState, f"{node}/get_state", take)
        self._others[need].ask()

    def _listed(self, answer: Any) -> None:
        self._readiness.saw_controllers({each.name: each.state for each in answer.controller})

    def _ask_for_groups(self, services: Collection[str]) -> None:
        """Requests the groups from the action's node, if it answers requests for parameters."""

        def take(answer: Any) -> None:
            self._readiness.saw_groups(group_names(answer.values[0].string_value if answer.values else ""))

        if self._groups is None and (name := self._planner()) is not None and f"{name}{_PARAMETERS}" in services:
            request = GetParameters.Request(names=[_SEMANTICS])
            self._groups = Question(self._node, GetParameters, f"{name}{_PARAMETERS}", take, request=request)
        if self._groups is not None:
            self._groups.ask()

    def _planner(self) -> str | None:
        """Full name of the node that serves the action; ``None`` if unknown."""
        for name, namespace in self._node.get_node_names_and_namespaces():
            with contextlib.suppress(RuntimeError):  # the node may have ended in the meantime
                actions = get_action_server_names_and_types_by_node(self._node, name, namespace)
                if self._readiness.action in dict(actions):
                    return f"{namespace.rstrip('/')}/{name}"
        return None

    def _ticked(self, message: Clock) -> None:
        self._readiness.saw_clock(message.clock.sec * 1_000_000_000 + message.clock.nanosec)

    def _watch(self) -> None:
        if self._readiness.needs_controllers and self._controllers is not None:
            self._controllers.ask()
        services = [name for name, _ in self._node.get_service_names_and_types()]
        # The list also names services that only have clients, such as the goal client's.
        served = [name for name in services if name.endswith(_ACTION_SERVICE) and self._node.count_services(name)]
        self._readiness.saw_actions([name.removesuffix(_ACTION_SERVICE) for name in served])
        if self._action is not None:
            self._action.ask()
        for need in self._readiness.unmet:
            self._look_for(need, served)
        if self._readiness.needs_groups:
            self._ask_for_groups(services)
        # It stops waiting for the groups after a while, because reporting a wrong group early must not delay it.
        if not self._readiness.only_needs_groups:
            self._whole_s = time.monotonic()
        elif time.monotonic() > self._whole_s + _GROUPS_PATIENCE_S:
            self._readiness.saw_groups(())
        word = self._readiness.wrong() or self._readiness.missing()
        if word != self._printed:
            sys.stdout.write(json.dumps(word) + "\n")
            sys.stdout.flush()
            self._printed = word


def main() -> None:
    """Watches the stack described by ``argv[1]``: JSON with the fields of `Readiness`."""
    rclpy.init(args=[])
    node = Node("ldos_readiness", enable_rosout=False, start_parameter_services=False)
    watcher = Watcher(node, Readiness(**json.loads(sys.argv[1])))
    # One executor for good: `rclpy.spin_once` would start with the subscriptions each time and starve services.
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    # The backend interrupts it when it no longer needs answers.
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        while not watcher.is_done:
            executor.spin_once()
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
