"""A process that floods topics with `std_msgs/String` at a fixed rate.

The schedule is absolute: a late message is sent at once, so that the mean rate holds. Messages later
than `LONGEST_LAG_NS` are dropped and counted, so that a publisher that was slow or stopped does not catch
up with an endless burst.
Runs until SIGINT or SIGTERM, or until `seconds` have passed.

Its parameter ``throttle``, set through ROS 2's standard service ``set_parameters``, is the share of its
rate that it may use: above 0 and up to 1. A reliable publisher refuses it, because its readers need every message.

Ten times per second it prints a JSON line: ``mono_ns``, ``published`` by topic, ``requested`` (messages due on
all topics), ``allowed`` (those of them that the throttle let through), ``given_up`` (messages that were allowed and
will not be sent), ``error_bins`` (see `flood_reports`; by bin), ``final``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.load.flood_reports import FloodSchedule, NumberedText, bin_of
from pytest_ldos.measure.load.throttle import ThrottledTime
from pytest_ldos.robot.dds.action import ParameterService, ParameterType
from pytest_ldos.robot.dds.endpoint import QosProfile, WriteTimedOut
from pytest_ldos.robot.dds.messages import Message
from pytest_ldos.robot.dds.node import Context, Node, Publisher, run_node

LONGEST_LAG_NS: Final = 250 * NS_PER_MS

THROTTLE: Final = "throttle"
"""Name of the parameter."""

_LONGEST_SLEEP_NS: Final = 50 * NS_PER_MS
"""A longer sleep would delay the end, and changes of the throttle."""

_REPORT_EVERY_NS: Final = 100 * NS_PER_MS
_REPORT_PATIENCE_NS: Final = 20 * NS_PER_MS
_REPORT_TAKES_NS: Final = 150_000
_HEAD_START_NS: Final = 20 * NS_PER_MS
_MATCH_POLL_S: Final = 0.01


class Flood:
    """Sends on all topics of this process, on one thread.

    Args:
        awaits_readers: True to begin only when each topic has a reader.
    """

    def __init__(
        self, publishers: Sequence[Publisher], *, rate_hz: float, burst: int, size_bytes: int, awaits_readers: bool
    ) -> None:
        self._publishers = publishers
        self._rate_hz = rate_hz
        self._burst = burst
        self._texts = NumberedText(size_bytes)
        self._awaits_readers = awaits_readers
        self._stopping = threading.Event()
        self._published = [0] * len(publishers)
        self._given_up = 0
        self._error_bins: dict[int, int] = {}
        self._previous: list[tuple[int, int] | None] = [None] * len(publishers)
        self._report_due_ns = 0
        begin_ns = time.monotonic_ns()
        self._schedule, self._time = self._schedule_from(begin_ns), ThrottledTime(begin_ns)
        self._throttle = 1.0
        self._thread = threading.Thread(target=self._run, name="flood")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def throttle(self, share: float) -> None:
        """Sets the share of the rate used from now on; may be called from any thread."""
        self._throttle = share

    def _schedule_from(self, begin_ns: int) -> FloodSchedule:
        return FloodSchedule(
            rate_hz=self._rate_hz, burst=self._burst, publishers=len(self._publishers), begin_ns=begin_ns
        )

    def _run(self) -> None:
        while self._awaits_readers and not all(publisher.matched() for publisher in self._publishers):
            if self._stopping.wait(_MATCH_POLL_S):
                return
        gc.collect()
        gc.disable()  # a collection would delay messages
        self._send_all()
        self._report(time.monotonic_ns(), is_final=True)

    def _send_all(self) -> None:
        begin_ns = time.monotonic_ns() + _HEAD_START_NS
        self._schedule, self._time = self._schedule_from(begin_ns), ThrottledTime(begin_ns)
        slot = 0
        self._report_due_ns = begin_ns
        while not self._stopping.is_set():
            now_ns = time.monotonic_ns()
            if self._throttle != self._time.share and now_ns >= begin_ns:
                self._time.throttle(self._throttle, now_ns)
            due_ns = self._time.real_ns(self._schedule.due_ns(slot))
            if self._has_time_to_report(now_ns, due_ns):
                self._report(now_ns, is_final=False)
            elif now_ns < due_ns:
                time.sleep(min(due_ns - now_ns, _LONGEST_SLEEP_NS) / NS_PER_S)
            elif now_ns - due_ns > LONGEST_LAG_NS:
                next_slot = max(self._allowed_by(now_ns), slot + 1)
                self._given_up += next_slot - slot
                slot = next_slot
            else:
                self._send(self._schedule.publisher_of(slot), now_ns, due_ns)
                slot += 1

    def _allowed_by(self, now_ns: int) -> int:
        """Number of messages that were due under the throttle."""
        return self._schedule.due_by(self._time.passed_by(now_ns))

    def _has_time_to_report(self, now_ns: int, due_ns: int) -> bool:
        """Returns True if a report fits before the next message, or is overdue because messages leave no gap for it."""
        late_ns = now_ns - self._report_due_ns
        return late_ns > _REPORT_PATIENCE_NS or (late_ns >= 0 and due_ns - now_ns > _REPORT_TAKES_NS)

    def _send(self, which: int, now_ns: int, due_ns: int) -> None:
        try:
            self._publishers[which].publish_encoded(self._texts.message(self._published[which]))
        except WriteTimedOut:
            self._given_up += 1
            return
        self._published[which] += 1
        sent_ns, was_due_ns = self._previous[which] or (now_ns, due_ns)
        number = bin_of((now_ns - sent_ns) - (due_ns - was_due_ns))
        self._error_bins[number] = self._error_bins.get(number, 0) + 1
        self._previous[which] = (now_ns, due_ns)

    def _report(self, now_ns: int, *, is_final: bool) -> None:
        published = {each.topic: count for each, count in zip(self._publishers, self._published, strict=True)}
        report = {
            "mono_ns": now_ns,
            "published": published,
            "requested": self._schedule.due_by(now_ns),
            "allowed": self._allowed_by(now_ns),
            "given_up": self._given_up,
            "error_bins": self._error_bins,
            "final": is_final,
        }
        self._report_due_ns = now_ns + _REPORT_EVERY_NS
        os.write(sys.stdout.fileno(), (json.dumps(report) + "\n").encode())


class ThrottleRule:
    """Sets the parameter ``throttle``; see `SetParameter`."""

    def __init__(self, flood: Flood, *, reliable: bool) -> None:
        self._flood = flood
        self._reliable = reliable

    def __call__(self, value: Message) -> str:
        if self._reliable:
            return "a reliable publisher is not throttled: its readers wait for every message"
        if value.type != ParameterType.DOUBLE or not 0 < value.double_value <= 1:
            return "throttle is a number above 0 and up to 1"
        self._flood.throttle(value.double_value)
        return ""


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `flood_publisher_N`.

    Parameters: ``index`` (N), ``topics``, ``rate_hz`` of each, ``burst``, ``size_bytes``, ``reliable``, ``depth``,
    ``awaits_readers``, ``seconds``.
    """
    node = Node(context, f"flood_publisher_{parameters['index']}")
    qos = QosProfile(depth=parameters["depth"], reliable=parameters["reliable"])
    flood = Flood(
        [node.create_publisher("std_msgs/msg/String", topic, qos=qos) for topic in parameters["topics"]],
        rate_hz=parameters["rate_hz"],
        burst=parameters["burst"],
        size_bytes=parameters["size_bytes"],
        awaits_readers=parameters["awaits_readers"],
    )
    ParameterService(node, {THROTTLE: ThrottleRule(flood, reliable=parameters["reliable"])})
    limit = threading.Timer(parameters["seconds"], context.executor.stop)
    limit.daemon = True
    limit.start()
    return flood.stop


if __name__ == "__main__":
    run_node("flood_publisher", build)
