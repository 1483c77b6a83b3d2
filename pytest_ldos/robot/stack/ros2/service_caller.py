"""The process of the stimulus ``service``; calls a service a number of times in each trial.

It speaks the line protocol of `stimulus.lines`, and marks each trial in the trace.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.ros2.message_fields import fill, find_service_type
from pytest_ldos.robot.stack.stimulus.lines import Ended, Task, refuse, serve
from pytest_ldos.scenario.stimuli import ServiceSpec

_DISCOVERY_S: Final = 10.0


class ServiceCaller:
    """Calls a service.

    Raises:
        ConfigurationError: its type is not installed.
    """

    def __init__(self, node: Node, spec: ServiceSpec) -> None:
        self._spec = spec
        self._type = find_service_type(spec.type)
        self._client = node.create_client(self._type, spec.name)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses messages that are not requests of this type.

        Raises:
            ConfigurationError: names the place and the field.
        """
        for where, values in messages.items():
            fill(self._type.Request(), values, where)
        if not self._client.wait_for_service(timeout_sec=_DISCOVERY_S):
            raise ConfigurationError(f"there is no service {self._spec.name}")

    def handle(self, task: Task) -> Ended:
        """Makes the calls of a trial."""
        request = fill(self._type.Request(), task.message, "the request")
        latencies_ns: list[int] = []
        task.begin()
        task.enter(Phase.GOAL_SENT)
        outcome, message = OutcomeClass.SUCCESS, ""
        for number in range(1, self._spec.calls + 1):
            begin_ns = time.monotonic_ns()
            answer = self._client.call_async(request)
            self._executor.spin_until_future_complete(answer, timeout_sec=self._spec.timeout_s)
            if not answer.done():
                outcome, message = OutcomeClass.TIMED_OUT, f"call {number} was not answered"
                break
            latencies_ns.append(time.monotonic_ns() - begin_ns)
            if getattr(answer.result(), "success", True) is False:
                outcome, message = OutcomeClass.ABORTED, _why(answer.result(), number)
                break
        task.enter(Phase.RESULT)
        return task.end(outcome, message, **_numbers(latencies_ns))


def _why(answer: Any, number: int) -> str:
    text = getattr(answer, "message", "")
    return f"call {number} did not succeed" + (f": {text}" if text else "")


def _numbers(latencies_ns: Sequence[int]) -> dict[str, float]:
    """Geometric mean, median, 99th percentile (nearest rank) and maximum of the calls."""
    if not latencies_ns:
        return {}
    ordered = sorted(latencies_ns)
    return {
        "calls_mean_ms": statistics.geometric_mean(ordered) / NS_PER_MS,
        "calls_p50_ms": statistics.median(ordered) / NS_PER_MS,
        "calls_p99_ms": ordered[math.ceil(0.99 * len(ordered)) - 1] / NS_PER_MS,
        "calls_max_ms": ordered[-1] / NS_PER_MS,
    }


def main() -> None:
    """Calls the service described by ``argv[1]``: JSON with ``spec`` and ``messages`` (by place)."""
    settings = json.loads(sys.argv[1])
    rclpy.init(args=[])
    node = Node("ldos_service_caller", enable_rosout=False, start_parameter_services=False)
    try:
        caller = ServiceCaller(node, ServiceSpec(**settings["spec"]))
        caller.check(settings["messages"])
    except LdosError as error:
        refuse(error)
    else:
        serve(caller.handle, resets=False)


if __name__ == "__main__":
    main()
