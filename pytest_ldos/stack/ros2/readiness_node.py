"""A process that asks a stack whether it is ready, and ends when it is.

Prints a JSON list of what is missing each time that changes; an empty list is the last.
Asked are the controller manager (its list of controllers), the action server (to cancel
nothing: its answer proves that it serves), the joint states and the simulator's clock.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import rclpy
from action_msgs.srv import CancelGoal
from controller_manager_msgs.srv import ListControllers
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from pytest_ldos.stack.ros2.readiness import Readiness

_PERIOD_S: Final = 0.05
_ACTION_SERVICE: Final = "/_action/send_goal"


class Question:
    """A service that is asked again after each answer, and never twice at once."""

    def __init__(self, node: Node, kind: Any, name: str, take: Callable[[Any], None]) -> None:
        self._client = node.create_client(kind, name)
        self._kind = kind
        self._take = take
        self._pending: Any = None

    def ask(self) -> None:
        if self._pending is not None or not self._client.service_is_ready():
            return
        self._pending = self._client.call_async(self._kind.Request())
        self._pending.add_done_callback(self._answered)

    def _answered(self, future: Any) -> None:
        self._pending = None
        self._take(future.result())


class Watcher:
    """Asks, listens, and prints what is missing."""

    def __init__(self, node: Node, readiness: Readiness) -> None:
        self._node = node
        self._readiness = readiness
        self._said: list[str] | None = None
        self._controllers = Question(
            node, ListControllers, f"{readiness.controller_manager}/list_controllers", self._listed
        )
        # A request without goal and time would cancel all goals; there are none before the first is sent.
        self._action = Question(
            node, CancelGoal, f"{readiness.action}/_action/cancel_goal", lambda _: readiness.saw_answer()
        )
        qos = qos_profile_sensor_data
        node.create_subscription(JointState, readiness.joint_states, lambda _: readiness.saw_joint_state(), qos)
        if readiness.needs_clock:
            node.create_subscription(Clock, "/clock", self._ticked, qos)
        node.create_timer(_PERIOD_S, self._watch)

    @property
    def is_done(self) -> bool:
        return self._said == []

    def _listed(self, answer: Any) -> None:
        self._readiness.saw_controllers({each.name: each.state for each in answer.controller})

    def _ticked(self, message: Clock) -> None:
        self._readiness.saw_clock(message.clock.sec * 1_000_000_000 + message.clock.nanosec)

    def _watch(self) -> None:
        if self._readiness.needs_controllers:
            self._controllers.ask()
        services = [name for name, _ in self._node.get_service_names_and_types()]
        self._readiness.saw_actions(
            [name.removesuffix(_ACTION_SERVICE) for name in services if name.endswith(_ACTION_SERVICE)]
        )
        self._action.ask()
        missing = self._readiness.missing()
        if missing != self._said:
            sys.stdout.write(json.dumps(missing) + "\n")
            sys.stdout.flush()
            self._said = missing


def main() -> None:
    """Watches the stack described by ``argv[1]``: JSON with the fields of `Readiness`."""
    rclpy.init(args=[])
    node = Node("ldos_readiness", enable_rosout=False, start_parameter_services=False)
    watcher = Watcher(node, Readiness(**json.loads(sys.argv[1])))
    while not watcher.is_done:
        rclpy.spin_once(node)
    node.destroy_node()
    rclpy.shutdown()


if __name__ == "__main__":
    main()
