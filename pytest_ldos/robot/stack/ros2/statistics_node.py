"""A process that subscribes to a controller manager's statistics, and returns the latest for each line of its input.

The answer is a line of JSON: ``[count, mean, standard deviation]`` by name, empty if nothing is published. Between
requests the middleware keeps the last message, and no Python runs.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pal_statistics_msgs.msg import StatisticsNames, StatisticsValues
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from pytest_ldos.robot.stack.ros2.topics_node import answer

PATIENCE_S: Final = 5.0  # for the manager to be discovered, and to publish
_POLL_S: Final = 0.05


class Listener:
    def __init__(self, node: Node, topic: str) -> None:
        self._names: dict[int, Sequence[str]] = {}
        self._values: StatisticsValues | None = None
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        latest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        node.create_subscription(StatisticsNames, f"{topic}/names", self._name, latched)
        node.create_subscription(StatisticsValues, f"{topic}/values", self._hear, latest)

    def _name(self, names: StatisticsNames) -> None:
        self._names[names.names_version] = names.names

    def _hear(self, values: StatisticsValues) -> None:
        self._values = values

    def look(self) -> Mapping[str, Any]:
        """The latest statistics; empty on timeout."""
        self._values = None
        ends_at = time.monotonic() + PATIENCE_S
        while self._values is None or self._values.names_version not in self._names:
            if time.monotonic() > ends_at:
                return {}
            self._executor.spin_once(timeout_sec=_POLL_S)
        return moments(dict(zip(self._names[self._values.names_version], self._values.values, strict=False)))


def moments(values: Mapping[str, float]) -> dict[str, tuple[int, float, float]]:
    """Count, mean and standard deviation of each statistic that has all three."""
    found = {}
    for name, count in values.items():
        prefix, _, ending = name.rpartition("/")
        mean, sd = (values.get(f"{prefix}/{part}", math.nan) for part in ("average", "standard_deviation"))
        if ending == "sample_count" and all(math.isfinite(each) for each in (count, mean, sd)):
            found[prefix] = (int(count), mean, sd)
    return found


if __name__ == "__main__":
    answer("ldos_statistics", lambda node: Listener(node, sys.argv[1]).look)
