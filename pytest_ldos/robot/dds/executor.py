"""A single-threaded executor like rclcpp's.

Tracepoints: ``rclcpp_executor_get_next_ready``, ``rclcpp_executor_wait_for_work``, and
``rclcpp_executor_execute`` in front of subscriptions and timers.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from cyclonedds.core import Entity, GuardCondition, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.internal import dds_infinity

from pytest_ldos.robot.dds.emission import emit

_FOREVER: Final = -1


class Waitable(Protocol):
    """An entity that can become ready and be executed.

    Attributes:
        condition: condition for a wait set; ``None`` for timers.
    """

    condition: Entity | None

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
        """Runs until `stop`."""
        while not self._stopping.is_set():
            self.spin_once()

    def spin_once(self) -> None:
        """Waits for work and executes everything that is ready."""
        emit.rclcpp_executor_get_next_ready()
        timeout_ns = self._timeout_ns()
        emit.rclcpp_executor_wait_for_work(timeout_ns)
        self._waitset.wait(dds_infinity if timeout_ns == _FOREVER else timeout_ns)
        self._run_posted()
        for waitable in [each for each in self._waitables if each.is_ready()]:
            emit.rclcpp_executor_get_next_ready()
            waitable.execute()

    def _run_posted(self) -> None:
        self._guard.set(False)
        while self._posted:
            self._posted.popleft()()

    def _timeout_ns(self) -> int:
        due = [due_ns for each in self._waitables if (due_ns := each.due_ns()) is not None]
        return max(0, min(due) - time.monotonic_ns()) if due else _FOREVER


def stop_on_signals(executor: Executor) -> None:
    """Stops `executor` on SIGINT or SIGTERM; must be called on the main thread.

    A Python handler would only run after the executor's wait in C returns, so a thread
    reads the wakeup descriptor that CPython's handler writes to.
    """
    listener, signalled = socket.socketpair()
    signalled.setblocking(False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(signalled.fileno())
    # The thread holds both ends: a closed end would look like a signal.
    arguments = (listener, signalled, executor)
    threading.Thread(target=_stop_when_signalled, args=arguments, name="signals", daemon=True).start()


def _stop_when_signalled(listener: socket.socket, _signalled: socket.socket, executor: Executor) -> None:
    listener.recv(1)
    executor.stop()
