"""A node that measures the lateness of a topic's messages, and throttles publishers when it is too large.

Its only argument is a JSON object with the same parameters as the ROS workspace's `ldos_guard`: see
`scenario.loads.GuardSpec`, and ``topic``, ``type``, ``publishers`` (names of nodes), ``report_period_s``, ``seconds``
(time limit). Runs until SIGINT or SIGTERM; then it lets the publishers use their whole rate again.

Each `report_period_s` it prints a JSON line: ``mono_ns``, ``share``, and since its start ``received`` and ``late``
messages, ``unstamped`` ones, ``silent_windows``, ``decreases``, ``increases``; ``missing`` has a reason for
each publisher that does not obey.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.load.flood_reports import stamp_reader
from pytest_ldos.measure.load.throttle import PathLateness, ThrottledPublisher, ThrottleLaw, ThrottleLimits
from pytest_ldos.robot.dds.endpoint import QosProfile
from pytest_ldos.robot.dds.messages import Message
from pytest_ldos.robot.dds.node import Context, Node, run_node

_DEPTH: Final = 100
_FAREWELL_NS: Final = NS_PER_S
"""Time limit for releasing the publishers at the end."""


class Guard:
    """Node of the guard; see the module."""

    def __init__(self, node: Node, parameters: dict[str, Any]) -> None:
        self._node = node
        self._stamp_of = stamp_reader(parameters["type"])
        self._lateness = PathLateness(
            deadline_ns=round(parameters["deadline_ms"] * NS_PER_MS),
            silence_ns=round(parameters["silence_ms"] * NS_PER_MS),
            now_ns=time.monotonic_ns(),
        )
        self._law = ThrottleLaw(
            ThrottleLimits(
                late_share=parameters["late_share"],
                least_share=parameters["least_share"],
                decrease=parameters["decrease"],
                calm_windows=parameters["calm_windows"],
                increase=parameters["increase"],
            )
        )
        names = parameters["publishers"]
        self._publishers = [ThrottledPublisher(node, name, parameters["parameter"]) for name in names]
        qos = QosProfile(depth=_DEPTH, reliable=False)
        node.create_subscription(parameters["type"], parameters["topic"], self.on_message, qos=qos)
        node.create_timer(round(parameters["window_ms"] * NS_PER_MS), self.end_window)
        node.create_timer(round(parameters["report_period_s"] * NS_PER_S), self.report)

    def on_message(self, message: Message) -> None:
        self._lateness.note(self._stamp_of(message), wall_ns=time.time_ns(), mono_ns=time.monotonic_ns())

    def end_window(self) -> None:
        now_ns = time.monotonic_ns()
        if self._lateness.received:  # before its first message, the path may not be running
            self._law.judge(self._lateness.end_window(now_ns))
        self._tell(self._law.share, now_ns)

    def _tell(self, share: float, now_ns: int) -> None:
        for publisher in self._publishers:
            publisher.ask(share, now_ns)

    def report(self) -> None:
        report = {
            "mono_ns": time.monotonic_ns(),
            "share": self._law.share,
            "received": self._lateness.received,
            "late": self._lateness.late,
            "unstamped": self._lateness.unstamped,
            "silent_windows": self._lateness.silent_windows,
            "decreases": self._law.decreases,
            "increases": self._law.increases,
            "missing": [f"{each.name}: {each.trouble}" for each in self._publishers if each.trouble],
        }
        with contextlib.suppress(BrokenPipeError):  # the throttled publishers must still be released
            os.write(sys.stdout.fileno(), (json.dumps(report) + "\n").encode())

    def release(self) -> None:
        """Lets all present publishers use their whole rate; waits for their confirmation, up to a limit."""
        executor = self._node.executor
        self._law.share = 1.0
        limit_ns = time.monotonic_ns() + _FAREWELL_NS
        while (now_ns := time.monotonic_ns()) < limit_ns:
            self._tell(1.0, now_ns)
            if all(each.is_settled(1.0) for each in self._publishers):
                return
            executor.spin_once()


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `guard`; see the module."""
    guard = Guard(Node(context, "guard"), parameters)
    limit = threading.Timer(parameters["seconds"], context.executor.stop)
    limit.daemon = True
    limit.start()
    return guard.release


if __name__ == "__main__":
    run_node("guard", build)
