"""A process that floods one topic with `std_msgs/String` at a fixed rate.

Messages are sent by an absolute schedule: one that is late is sent at once, so that the
mean rate holds. Runs until SIGINT or SIGTERM, or until `seconds` have passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pytest_ldos.dds.messages import default, encode
from pytest_ldos.dds.node import Context, Node, Publisher
from pytest_ldos.dds.process import run_node
from pytest_ldos.dds.qos import QosProfile
from pytest_ldos.units import NS_PER_S

_LONGEST_SLEEP_S: Final = 0.1
"""Longer waits can be ended; a sleep keeps time better."""


def publish_at_rate(publisher: Publisher, data: bytes, period_ns: float, stopping: threading.Event) -> None:
    """Sends `data` each period until `stopping` is set."""
    began_ns = time.monotonic_ns()
    count = 0
    while not stopping.is_set():
        left_s = (began_ns + count * period_ns - time.monotonic_ns()) / NS_PER_S
        if left_s > _LONGEST_SLEEP_S:
            stopping.wait(left_s - _LONGEST_SLEEP_S)
            continue
        if left_s > 0:
            time.sleep(left_s)
        publisher.publish_encoded(data)
        count += 1


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Node `flood_publisher_N`; parameters: ``index``, ``topic``, ``rate_hz``, ``size_bytes``, ``seconds``."""
    node = Node(context, f"flood_publisher_{parameters['index']}")
    publisher = node.create_publisher(
        "std_msgs/msg/String", parameters["topic"], qos=QosProfile(depth=1, reliable=False)
    )
    data = encode(default("std_msgs/msg/String", data="X" * parameters["size_bytes"]))
    stopping = threading.Event()
    arguments = (publisher, data, NS_PER_S / parameters["rate_hz"], stopping)
    thread = threading.Thread(target=publish_at_rate, args=arguments, name="flood")
    thread.start()
    limit = threading.Timer(parameters["seconds"], context.executor.stop)
    limit.daemon = True
    limit.start()

    def close() -> None:
        stopping.set()
        thread.join()

    return close


if __name__ == "__main__":
    run_node("flood_publisher", build)
