"""Processes of floods as ROS 2 nodes: `flood_node` over rclpy and the stack's middleware.

The only argument is a JSON object: ``program``, ``name`` of the node, and the program's parameters.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.measure.load.flood_node import DEPTH, POLL_NS, SENDING, Flood, FloodCounter
from pytest_ldos.robot.stack.ros2.topics_node import qos_of, subscribe, take_all

_POLL_S: Final = 0.1  # after which a signal is noticed
_QUIET_S: Final = 1.0
_QUIET_PATIENCE_S: Final = 10.0
_PR_SET_TIMERSLACK: Final = 29


class TextPublisher:
    """See `flood_node.Sender`."""

    def __init__(self, node: Node, topic: str, qos: QoSProfile) -> None:
        self.topic = topic
        self._publisher = node.create_publisher(String, topic, qos)

    def publish_encoded(self, data: bytes) -> None:
        try:
            self._publisher.publish(data)
        except rclpy_implementation.RCLError as error:
            raise TimeoutError(str(error)) from None

    def matched(self) -> int:
        return int(self._publisher.get_subscription_count())


class QuietGraph:
    """Returns True when the graph had no news for a second, or has none after ten.

    Fast DDS may hold all sends of a process for a third of a second while it opens the shared memory of a peer that it
    just met.
    """

    def __init__(self, node: Node, topics: Sequence[str]) -> None:
        self._node = node
        self._topics = topics
        self._began = self._news = time.monotonic()
        self._seen: object = None

    def __call__(self) -> bool:
        now = time.monotonic()
        readers = [self._node.count_subscribers(topic) for topic in self._topics]
        seen = (sorted(self._node.get_node_names_and_namespaces()), readers)
        if seen != self._seen:
            self._seen, self._news = seen, now
        return now - self._news >= _QUIET_S or now - self._began >= _QUIET_PATIENCE_S


def run_flood_publisher(node: Node, parameters: Mapping[str, Any], executor: Executor) -> None:
    qos = qos_of(parameters["depth"], reliable=parameters["reliable"])
    flood = Flood(
        [TextPublisher(node, topic, qos) for topic in parameters["topics"]],
        may_begin=QuietGraph(node, parameters["topics"]),
        **{name: parameters[name] for name in SENDING},
    )

    ends_at = time.monotonic() + parameters["seconds"]
    try:
        while time.monotonic() < ends_at:
            executor.spin_once(timeout_sec=_POLL_S)
    finally:
        flood.stop()


def run_flood_counter(node: Node, parameters: Mapping[str, Any], _: Executor) -> None:
    qos = qos_of(DEPTH, reliable=parameters["reliable"])
    subscriptions = {topic: subscribe(node, String, topic, qos, raw=True) for topic in parameters["topics"]}
    counter = FloodCounter({topic: partial(take_all, each) for topic, each in subscriptions.items()})
    while True:
        time.sleep(POLL_NS / NS_PER_S)
        counter.poll()


_PROGRAMS: Final = {"flood_publisher": run_flood_publisher, "flood_counter": run_flood_counter}


def main() -> None:
    parameters = json.loads(sys.argv[1])
    Path("/proc/self/comm").write_text(parameters["program"], "ascii")
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # threads would wake up to 50 µs late
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = Node(parameters["name"], enable_rosout=False)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt):
        _PROGRAMS[parameters["program"]](node, parameters, executor)
    node.destroy_node()  # a process that just ends leaves Fast DDS's shared memory
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
