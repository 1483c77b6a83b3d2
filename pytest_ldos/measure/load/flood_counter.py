"""A process that counts received and missing messages on the flooded topics.

It is an instrument, not a part of the load: it reads in batches, without tracepoints. Ten times per second it prints a
JSON line: ``mono_ns``, ``received`` and ``lost`` by topic.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.measure.load.flood_reports import number_of
from pytest_ldos.robot.dds.endpoint import QosProfile, Reader, dds_topic
from pytest_ldos.robot.dds.node import Context, Node, run_node

_POLL_NS: Final = 10 * NS_PER_MS
_POLLS_A_REPORT: Final = 10
_DEPTH: Final = 4096


class Tally:
    """Counts of one topic: messages of one publisher, in order.

    Attributes:
        lost: numbers missing between the first and the last message received.
    """

    def __init__(self) -> None:
        self.received = 0
        self._first: int | None = None
        self._last = 0

    @property
    def lost(self) -> int:
        return 0 if self._first is None else self._last - self._first + 1 - self.received

    def add(self, batch: Sequence[bytes]) -> None:
        if not batch:
            return
        if self._first is None:
            self._first = number_of(batch[0])
        self._last = number_of(batch[-1])
        self.received += len(batch)


class FloodCounter:
    """Counts messages by topic."""

    def __init__(self, context: Context, topics: Sequence[str], *, reliable: bool) -> None:
        qos = QosProfile(depth=_DEPTH, reliable=reliable)
        self._readers = {
            topic: Reader(context.participant, dds_topic(topic), "std_msgs/msg/String", qos) for topic in topics
        }
        self._tallies = {topic: Tally() for topic in topics}
        self._polls = 0

    def poll(self) -> None:
        for topic, reader in self._readers.items():
            self._tallies[topic].add(reader.take_many(_DEPTH))
        self._polls += 1
        if self._polls % _POLLS_A_REPORT == 0:
            self._report()

    def _report(self) -> None:
        report = {
            "mono_ns": time.monotonic_ns(),
            "received": {topic: tally.received for topic, tally in self._tallies.items()},
            "lost": {topic: tally.lost for topic, tally in self._tallies.items()},
        }
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `flood_counter`; parameters: ``topics``, ``reliable``."""
    counter = FloodCounter(context, parameters["topics"], reliable=parameters["reliable"])
    Node(context, "flood_counter").create_timer(_POLL_NS, counter.poll)
    return lambda: None


if __name__ == "__main__":
    run_node("flood_counter", build)
