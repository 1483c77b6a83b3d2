"""A process that subscribes to topics, and returns the numbers that arrived since the last line of its input.

The answer is a line of JSON: by ``TOPIC:FIELD``, the numbers, or the reason why there are none. Between requests the
middleware keeps the messages, and no Python runs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import rclpy
from rclpy.callback_groups import CallbackGroup
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from pytest_ldos.base.errors import ConfigurationError, require, suggest
from pytest_ldos.host.kept import say
from pytest_ldos.host.processes import comes_true
from pytest_ldos.robot.stack.messages import find_type, require_number

MOST: Final = 10_000  # messages of a topic that are kept
PATIENCE_S: Final = 5.0  # for the publishers to be discovered


class _Unspun(CallbackGroup):  # type: ignore[misc] # rclpy may be missing
    """Subscriptions that no executor takes from: its work for a message would be many times that of the taking."""

    def can_execute(self, entity: object) -> bool:
        return False

    def beginning_execution(self, entity: object) -> bool:
        return False

    def ending_execution(self, entity: object) -> None:
        """Nothing began."""


def qos_of(depth: int, *, reliable: bool) -> QoSProfile:
    policy = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
    return QoSProfile(depth=depth, reliability=policy)


def subscribe(node: Node, kind: type, topic: str, qos: QoSProfile, *, raw: bool = False) -> Subscription:
    """A subscription for `take_all`; of encoded messages if `raw`."""
    return node.create_subscription(kind, topic, print, qos, callback_group=_Unspun(), raw=raw)


def take_all(subscription: Subscription) -> list[Any]:
    """Takes the messages that have arrived."""
    taken = []
    with subscription.handle:
        while (message := subscription.handle.take_message(subscription.msg_type, subscription.raw)) is not None:
            taken.append(message[0])
    return taken


class Listener:
    """Subscribes to the topics of some ``TOPIC:FIELD``, each as reliably as its publishers publish."""

    def __init__(self, node: Node, subjects: Sequence[str]) -> None:
        self._node = node
        self._subjects = [each.rpartition(":")[::2] for each in subjects]
        self._subscriptions: dict[str, Subscription] = {}
        self._patience_s = PATIENCE_S

    def look(self) -> Mapping[str, list[float] | str]:
        """Numbers that arrived since the last call; the first one waits for the publishers."""
        topics = [topic for topic, _ in self._subjects]
        comes_true(lambda: all(map(self._node.count_publishers, topics)), limit_s=self._patience_s)
        self._patience_s = 0.0
        taken: dict[str, list[Any]] = {}
        found: dict[str, list[float] | str] = {}
        for topic, field in self._subjects:
            try:
                if topic not in taken:
                    taken[topic] = self._take(topic)
                require_number(self._subscriptions[topic].msg_type(), field, topic)
                found[f"{topic}:{field}"] = [float(each) for each in map(attrgetter(field), taken[topic])]
            except ConfigurationError as error:
                found[f"{topic}:{field}"] = f"{error.message}; {error.remedy}"
        return found

    def _take(self, topic: str) -> list[Any]:
        publishers = self._node.get_publishers_info_by_topic(topic)
        kinds = sorted({each.topic_type for each in publishers})
        require(len(kinds) < 2, f"{topic} has several types: {', '.join(kinds)}", remedy="publish one of them")
        if topic not in self._subscriptions:
            others = [name for name, _ in self._node.get_topic_names_and_types() if self._node.count_publishers(name)]
            require(bool(kinds), f"no node publishes on {topic}", remedy=suggest(topic, others))
            reliable = all(each.qos_profile.reliability is ReliabilityPolicy.RELIABLE for each in publishers)
            qos = qos_of(MOST, reliable=reliable)
            made = self._subscriptions[topic] = subscribe(self._node, find_type(kinds[0], "msg"), topic, qos)
            comes_true(lambda: made.get_publisher_count() >= len(publishers), limit_s=PATIENCE_S)
        taken = take_all(self._subscriptions[topic])
        require(len(taken) < MOST, f"more than {MOST - 1} messages on {topic}", remedy="shorten the trials")
        return taken


def answer(name: str, listen: Callable[[Node], Callable[[], Mapping[str, Any]]]) -> None:
    """Answers each line of standard input by calling the function that `listen` returns for a node of this name."""
    rclpy.init(args=[])
    node = Node(name, enable_rosout=False, start_parameter_services=False)
    look = listen(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        for _ in sys.stdin:
            say(look())
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    answer("ldos_topics", lambda node: Listener(node, sys.argv[1:]).look)
