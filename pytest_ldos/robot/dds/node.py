"""A ROS 2 node over Cyclone DDS, with publishers, subscriptions and timers, its executor, and the process that runs it.

Each entity emits the tracepoints of Jazzy's rclcpp, rcl and rmw, in the same order; the executor
``rclcpp_executor_get_next_ready``, ``rclcpp_executor_wait_for_work``, and ``rclcpp_executor_execute`` in front of
subscriptions and timers.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from cyclonedds.core import Entity, GuardCondition, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.internal import dds_infinity

from pytest_ldos.robot.dds.domain import loopback_config
from pytest_ldos.robot.dds.emission import emit, new_handle
from pytest_ldos.robot.dds.endpoint import (
    DEFAULT,
    Message,
    QosProfile,
    Reader,
    ReaderWaitable,
    Writer,
    dds_topic,
    decode,
    encode,
    type_hash,
    wall_clock_ns,
)

_FOREVER: Final = -1


class Waitable(Protocol):
    condition: Entity | None  # for a wait set; None for timers

    def is_ready(self) -> bool: ...

    def due_ns(self) -> int | None:
        """Monotonic time at which it becomes ready by itself; ``None`` if it does not."""

    def execute(self) -> None: ...


class Executor:
    """Runs the callbacks of a process on the thread that calls `spin`."""

    def __init__(self, participant: DomainParticipant) -> None:
        self._waitset = WaitSet(participant)
        self._guard = GuardCondition(participant)
        self._waitset.attach(self._guard)
        self._waitables: list[Waitable] = []
        self._posted: deque[Callable[[], None]] = deque()
        self._stopping = threading.Event()

    def add(self, waitable: Waitable) -> None:
        """Adds a waitable, which stays until the process ends."""
        self._waitables.append(waitable)
        if waitable.condition is not None:
            self._waitset.attach(waitable.condition)
        self.wake()

    def post(self, work: Callable[[], None]) -> None:
        """Runs `work` on the executor's thread; may be called from any thread."""
        self._posted.append(work)
        self.wake()

    def wake(self) -> None:
        self._guard.set(True)

    def stop(self) -> None:
        """Makes `spin` return; may be called from any thread."""
        self._stopping.set()
        self.wake()

    def spin(self) -> None:
        while not self._stopping.is_set():
            self.spin_once()

    def spin_once(self) -> None:
        emit.rclcpp_executor_get_next_ready()
        due = [due_ns for each in self._waitables if (due_ns := each.due_ns()) is not None]
        timeout_ns = max(0, min(due) - time.monotonic_ns()) if due else _FOREVER
        emit.rclcpp_executor_wait_for_work(timeout_ns)
        self._waitset.wait(dds_infinity if timeout_ns == _FOREVER else timeout_ns)
        self._guard.set(False)
        while self._posted:
            self._posted.popleft()()
        for waitable in [each for each in self._waitables if each.is_ready()]:
            emit.rclcpp_executor_get_next_ready()
            waitable.execute()


def stop_on_signals(executor: Executor) -> None:
    """Stops `executor` on SIGINT or SIGTERM; must be called on the main thread.

    A Python handler would only run after the executor's wait in C returns, so a thread reads the wakeup descriptor that
    CPython's handler writes to.
    """
    listener, signalled = socket.socketpair()
    signalled.setblocking(False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    def stop_when_signalled(_held: socket.socket) -> None:
        listener.recv(1)
        executor.stop()

    signal.set_wakeup_fd(signalled.fileno())
    # The thread holds both ends: a closed end would look like a signal.
    threading.Thread(target=stop_when_signalled, args=(signalled,), name="signals", daemon=True).start()


class DelayedWriter:
    """Writes samples after a delay, in order, in a separate thread."""

    def __init__(self, writer: Writer, delay_s: float) -> None:
        self._writer = writer
        self._delay_s = delay_s
        self._waiting: queue.SimpleQueue[tuple[float, bytes, int]] = queue.SimpleQueue()
        self.gid = writer.gid
        threading.Thread(target=self._write_all, name="delayed_writer", daemon=True).start()

    def write(self, data: bytes, timestamp_ns: int) -> None:
        self._waiting.put((time.monotonic() + self._delay_s, data, timestamp_ns))

    def matched(self) -> int:
        return self._writer.matched()

    def _write_all(self) -> None:
        while True:
            due, data, timestamp_ns = self._waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self._writer.write(data, timestamp_ns)


_TRACETOOLS_VERSION: Final = "8.2.2"  # emulated version of tracetools; a field of `rcl_init`


class Context:
    """DDS participant and executor, shared by the nodes of a process; the first one configures the domain."""

    def __init__(self, domain: int, *, is_first: bool = True) -> None:
        self._domain = Domain(domain, loopback_config()) if is_first else None
        self.participant = DomainParticipant(domain)
        self.executor = Executor(self.participant)
        emit.rcl_init(new_handle(), _TRACETOOLS_VERSION)

    def close(self) -> None:
        """Leaves the domain, which notifies the remaining processes."""
        for entity in (self.participant, self._domain):
            if entity is not None:
                entity._delete(entity._ref)  # noqa: SLF001 - otherwise it lasts until the interpreter lets go of it


class Node:
    def __init__(self, context: Context, name: str) -> None:
        self.context = context
        self.name = name
        self.executor = context.executor
        self.handle = new_handle()
        emit.rcl_node_init(self.handle, new_handle(), name, "/")

    def create_publisher(
        self, ros_type: str, topic: str, *, qos: QosProfile = DEFAULT, delay_s: float = 0.0
    ) -> Publisher:
        return Publisher(self, ros_type, topic, qos, delay_s=delay_s)

    def create_subscription(
        self, ros_type: str, topic: str, callback: Callable[[Message], None], *, qos: QosProfile = DEFAULT
    ) -> Subscription:
        subscription = Subscription(self, ros_type, topic, callback, qos)
        self.executor.add(subscription)
        return subscription

    def create_timer(self, period_ns: int, callback: Callable[[], None]) -> Timer:
        timer = Timer(self, period_ns, callback)
        self.executor.add(timer)
        return timer


def register_callback(handle: int, callback: Callable[..., Any]) -> None:
    """Traces the function of a callback handle, with its module and qualified name as the symbol."""
    emit.rclcpp_callback_register(handle, f"{callback.__module__}.{callback.__qualname__}")


class Publisher:
    """Publishes messages of one type; `delay_s` of each message is an injected fault.

    Tracepoints: ``rmw_publisher_init``, ``rcl_publisher_init``; at each publication
    ``rclcpp_publish`` (not for the publishers inside an action, as in rclcpp),
    ``rcl_publish``, ``rmw_publish``, whose timestamp is the sample's source timestamp.
    """

    def __init__(
        self, node: Node, ros_type: str, topic: str, qos: QosProfile, *, in_action: bool = False, delay_s: float = 0.0
    ) -> None:
        self.topic = topic
        self._in_action = in_action
        writer = Writer(node.context.participant, dds_topic(topic), ros_type, qos, user_data=_type_hash_entry(ros_type))
        self._writer = DelayedWriter(writer, delay_s) if delay_s else writer
        self.handle = new_handle()
        self._rmw_handle = new_handle()
        emit.rmw_publisher_init(self._rmw_handle, self._writer.gid)
        emit.rcl_publisher_init(self.handle, node.handle, self._rmw_handle, topic, qos.depth)

    def publish(self, message: Message) -> None:
        """Encodes and writes one message; may be called from any thread."""
        timestamp_ns = self._announce(id(message))
        self._writer.write(encode(message), timestamp_ns)

    def publish_encoded(self, data: bytes) -> None:
        self._writer.write(data, self._announce(id(data)))

    def _announce(self, message: int) -> int:
        if not self._in_action:
            emit.rclcpp_publish(message)
        emit.rcl_publish(self.handle, message)
        timestamp_ns = wall_clock_ns()
        emit.rmw_publish(self._rmw_handle, message, timestamp_ns)
        return timestamp_ns

    def matched(self) -> int:
        return self._writer.matched()


def _type_hash_entry(ros_type: str) -> str:
    """Entry that Jazzy's rmw_cyclonedds expects in the user data of an endpoint."""
    return f"typehash={type_hash(ros_type)};" if "/msg/" in ros_type else ""


class Subscription(ReaderWaitable):
    """Calls a function for each message.

    Tracepoints: ``rmw_subscription_init``, ``rcl_subscription_init``, ``rclcpp_subscription_init``,
    ``rclcpp_subscription_callback_added``, ``rclcpp_callback_register``; at each message ``rclcpp_executor_execute``,
    ``rmw_take``, ``rcl_take``, ``rclcpp_take``, ``callback_start``, ``callback_end``. Inside an action (`in_action`)
    only the first two and the rmw and rcl takes, as in rclcpp.
    """

    def __init__(
        self,
        node: Node,
        ros_type: str,
        topic: str,
        callback: Callable[[Message], None],
        qos: QosProfile,
        *,
        in_action: bool = False,
    ) -> None:
        self.topic = topic
        self._ros_type = ros_type
        self._call = callback
        self._in_action = in_action
        hashed = _type_hash_entry(ros_type)
        super().__init__(Reader(node.context.participant, dds_topic(topic), ros_type, qos, user_data=hashed))
        self._handle = new_handle()
        self._rmw_handle = new_handle()
        self._callback_handle = new_handle()
        emit.rmw_subscription_init(self._rmw_handle, self._reader.gid)
        emit.rcl_subscription_init(self._handle, node.handle, self._rmw_handle, topic, qos.depth)
        if not in_action:
            subscription = new_handle()
            emit.rclcpp_subscription_init(self._handle, subscription)
            emit.rclcpp_subscription_callback_added(subscription, self._callback_handle)
            register_callback(self._callback_handle, callback)

    def execute(self) -> None:
        if not self._in_action:
            emit.rclcpp_executor_execute(self._handle)
        message = self.take()
        if message is None:
            return
        if self._in_action:
            self._call(message)
            return
        emit.rclcpp_take(id(message))
        emit.callback_start(self._callback_handle, False)
        self._call(message)
        emit.callback_end(self._callback_handle)

    def take(self) -> Message | None:
        sample = self._reader.take()
        if sample is None:
            emit.rmw_take(self._rmw_handle, 0, 0, False)
            return None
        message = decode(sample.data, self._ros_type)
        emit.rmw_take(self._rmw_handle, id(message), sample.source_timestamp_ns, True)
        emit.rcl_take(id(message))
        return message

    def matched(self) -> int:
        return self._reader.matched()


class Timer:
    """Calls a function periodically; missed ticks are skipped, as in rcl.

    Tracepoints: ``rcl_timer_init``, ``rclcpp_timer_callback_added``, ``rclcpp_callback_register``,
    ``rclcpp_timer_link_node``; at each tick ``rclcpp_executor_execute``, ``callback_start``, ``callback_end``.
    """

    def __init__(self, node: Node, period_ns: int, callback: Callable[[], None]) -> None:
        self.condition: Entity | None = None
        self._period_ns = period_ns
        self._call = callback
        self._due_ns = time.monotonic_ns() + period_ns
        self._handle = new_handle()
        self._callback_handle = new_handle()
        emit.rcl_timer_init(self._handle, period_ns)
        emit.rclcpp_timer_callback_added(self._handle, self._callback_handle)
        register_callback(self._callback_handle, callback)
        emit.rclcpp_timer_link_node(self._handle, node.handle)

    def restart(self) -> None:
        """Begins a new period now, on the executor's thread."""
        self._due_ns = time.monotonic_ns() + self._period_ns

    def is_ready(self) -> bool:
        return time.monotonic_ns() >= self._due_ns

    def due_ns(self) -> int | None:
        return self._due_ns

    def execute(self) -> None:
        emit.rclcpp_executor_execute(self._handle)
        self._due_ns = next_tick(self._due_ns, self._period_ns, time.monotonic_ns())
        emit.callback_start(self._callback_handle, False)
        self._call()
        emit.callback_end(self._callback_handle)


def next_tick(due_ns: int, period_ns: int, now_ns: int) -> int:
    """Next due time of a timer after a tick: the first on its grid from now on."""
    missed = max(0, now_ns - due_ns - 1) // period_ns
    return due_ns + (missed + 1) * period_ns


_PR_SET_NAME: Final = 15
_PR_SET_TIMERSLACK: Final = 29
_TIMER_SLACK_NS: Final = 1


def run_node(name: str, build: Callable[[Context, dict[str, Any]], Callable[[], None] | None]) -> None:
    """Runs a node that `build` creates until SIGINT or SIGTERM, then calls the function that `build` returned, if any.

    The process gets the node's name (`procname` in traces) and the finest timer slack. Its only argument is a JSON
    object of parameters, with the DDS domain as ``domain``. It exits at once after leaving the domain, because the
    interpreter's shutdown would take a quarter of a second.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, name.encode("ascii"), 0, 0, 0)
    libc.prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0)
    parameters = json.loads(sys.argv[1])
    context = Context(parameters["domain"])
    stop_on_signals(context.executor)
    close = build(context, parameters)
    context.executor.spin()
    if close is not None:
        close()
    context.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
