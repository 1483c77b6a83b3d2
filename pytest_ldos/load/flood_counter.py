"""A process that counts what arrives on the flooded topics: the proof of a flood.

It is an instrument, not a part of the load: a plain DDS reader without tracepoints, read
in batches. Ten times a second it prints a JSON line with the monotonic time and the
number of messages received so far on each topic.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from pytest_ldos.dds.endpoint import Reader
from pytest_ldos.dds.naming import dds_topic
from pytest_ldos.dds.node import Context, Node
from pytest_ldos.dds.process import run_node
from pytest_ldos.dds.qos import QosProfile
from pytest_ldos.units import NS_PER_MS

_POLL_NS: Final = 10 * NS_PER_MS
_POLLS_A_REPORT: Final = 10
_DEPTH: Final = 4096


class Counter:
    """Counts messages by topic."""

    def __init__(self, context: Context, topics: list[str]) -> None:
        qos = QosProfile(depth=_DEPTH, reliable=False)
        self._readers = {
            topic: Reader(context.participant, dds_topic(topic), "std_msgs/msg/String", qos) for topic in topics
        }
        self._received = dict.fromkeys(topics, 0)
        self._polls = 0

    def poll(self) -> None:
        for topic, reader in self._readers.items():
            self._received[topic] += reader.discard(_DEPTH)
        self._polls += 1
        if self._polls % _POLLS_A_REPORT == 0:
            sys.stdout.write(json.dumps({"mono_ns": time.monotonic_ns(), "received": self._received}) + "\n")
            sys.stdout.flush()


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Node `flood_counter`; parameters: ``topics``."""
    counter = Counter(context, parameters["topics"])
    Node(context, "flood_counter").create_timer(_POLL_NS, counter.poll)
    return lambda: None


if __name__ == "__main__":
    run_node("flood_counter", build)
