"""Processes of floods and guards as ROS 2 nodes: `flood_node` and `guard_node` over rclpy and the stack's middleware.

The only argument is a JSON object: ``program``, ``name`` of the node, and the program's parameters.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import rclpy
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.callback_groups import CallbackGroup
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.load.flood_node import DEPTH, POLL_NS, SENDING, Flood, FloodCounter, set_throttle
from pytest_ldos.measure.load.flood_reports import read_stamp, stamp_place
from pytest_ldos.measure.load.guard_node import DEPTH as GUARD_DEPTH
from pytest_ldos.measure.load.guard_node import Guard
from pytest_ldos.robot.stack.messages import find_type

_POLL_S: Final = 0.1  # after which a signal is noticed
_GUARD_POLL_S: Final = 0.001
_POLLS_A_SPIN: Final = 10
_QUIET_S: Final = 1.0
_QUIET_PATIENCE_S: Final = 10.0
_THROTTLE: Final = "throttle"
_PR_SET_TIMERSLACK: Final = 29


def _qos(depth: int, *, reliable: bool) -> QoSProfile:
    policy = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
    return QoSProfile(depth=depth, reliability=policy)


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
    qos = _qos(parameters["depth"], reliable=parameters["reliable"])
    flood = Flood(
        [TextPublisher(node, topic, qos) for topic in parameters["topics"]],
        may_begin=QuietGraph(node, parameters["topics"]),
        **{name: parameters[name] for name in SENDING},
    )

    def check(changes: Sequence[Parameter]) -> SetParametersResult:
        wanted = [each.get_parameter_value() for each in changes if each.name == _THROTTLE]
        reason = "; ".join(filter(None, (set_throttle(flood, parameters["reliable"], value) for value in wanted)))
        return SetParametersResult(successful=not reason, reason=reason)

    node.declare_parameter(_THROTTLE, 1.0)
    node.add_on_set_parameters_callback(check)
    ends_at = time.monotonic() + parameters["seconds"]
    try:
        while time.monotonic() < ends_at:
            executor.spin_once(timeout_sec=_POLL_S)
    finally:
        flood.stop()


class Unspun(CallbackGroup):  # type: ignore[misc] # rclpy may be missing
    """Subscriptions that no executor takes from: its work for a message would be many times that of the taking."""

    def can_execute(self, entity: object) -> bool:
        return False

    def beginning_execution(self, entity: object) -> bool:
        return False

    def ending_execution(self, entity: object) -> None:
        """Nothing began."""


def _reader(node: Node, kind: type, topic: str, qos: QoSProfile) -> Callable[[], list[bytes]]:
    """Returns a function that takes the encoded messages that have arrived."""
    subscription = node.create_subscription(kind, topic, print, qos, callback_group=Unspun(), raw=True)

    def take_all() -> list[bytes]:
        taken = []
        with subscription.handle:
            while (message := subscription.handle.take_message(kind, True)) is not None:
                taken.append(message[0])
        return taken

    return take_all


def run_flood_counter(node: Node, parameters: Mapping[str, Any], _: Executor) -> None:
    qos = _qos(DEPTH, reliable=parameters["reliable"])
    counter = FloodCounter({topic: _reader(node, String, topic, qos) for topic in parameters["topics"]})
    while True:
        time.sleep(POLL_NS / NS_PER_S)
        counter.poll()


class RosSetter:
    """See `guard_node.Setter`."""

    def __init__(self, node: Node, target: str) -> None:
        self._client = node.create_client(SetParameters, f"/{target}/set_parameters")

    def server_is_ready(self) -> bool:
        return bool(self._client.service_is_ready())

    def set(self, values: Mapping[str, float], on_done: Callable[[list[str]], None]) -> None:
        wanted = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]

        def finish(answer: Any) -> None:
            on_done([each.reason for each in answer.result().results if not each.successful])

        self._client.call_async(SetParameters.Request(parameters=wanted)).add_done_callback(finish)


def run_guard(node: Node, parameters: Mapping[str, Any], executor: Executor) -> None:
    kind = parameters["type"]
    try:
        place = stamp_place(kind)
    except ConfigurationError as error:
        raise SystemExit(str(error)) from None
    guard = Guard(parameters, stamp_of=partial(read_stamp, place), setter_of=partial(RosSetter, node))
    take_all = _reader(node, find_type(kind, "msg"), parameters["topic"], _qos(GUARD_DEPTH, reliable=False))
    node.create_timer(parameters["window_ms"] * NS_PER_MS / NS_PER_S, guard.end_window)
    node.create_timer(parameters["report_period_s"], guard.report)
    ends_at = time.monotonic() + parameters["seconds"]
    polls = itertools.count(1)
    try:
        while time.monotonic() < ends_at:
            time.sleep(_GUARD_POLL_S)
            for message in take_all():
                guard.on_message(message)
            if next(polls) % _POLLS_A_SPIN == 0:
                executor.spin_once(timeout_sec=0)
    finally:
        guard.release(lambda: executor.spin_once(timeout_sec=_POLL_S))


_PROGRAMS: Final = {"flood_publisher": run_flood_publisher, "flood_counter": run_flood_counter, "guard": run_guard}


def main() -> None:
    parameters = json.loads(sys.argv[1])
    Path("/proc/self/comm").write_text(parameters["program"], "ascii")
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # threads would wake up to 50 µs late
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)  # a guard still has requests to send
    node = Node(parameters["name"], enable_rosout=False)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt):
        _PROGRAMS[parameters["program"]](node, parameters, executor)
    node.destroy_node()  # a process that just ends leaves Fast DDS's shared memory
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
