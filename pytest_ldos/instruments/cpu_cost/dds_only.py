"""DDS writers and readers of encoded messages on one thread, without nodes, executor and tracepoints."""

from __future__ import annotations

import time
from typing import Final

from cyclonedds.core import WaitSet
from cyclonedds.domain import Domain, DomainParticipant

from pytest_ldos.instruments.cpu_cost.traffic import PATIENCE_NS, TYPE, Plan
from pytest_ldos.robot.dds.domain import loopback_config
from pytest_ldos.robot.dds.endpoint import DEFAULT, Reader, Writer, dds_topic, wall_clock_ns
from pytest_ldos.robot.dds.messages import default, encode

_BATCH: Final = 64


class DdsOnly:
    """See `Traffic`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._domain = Domain(plan.domain, loopback_config())
        self._participant = DomainParticipant(plan.domain)
        self._data = encode(default(TYPE, data="X" * plan.size_bytes))
        names = [dds_topic(plan.topic(number)) for number in range(plan.topics)]
        self._writers = [Writer(self._participant, name, TYPE, DEFAULT) for name in names]
        self._readers = [
            Reader(self._participant, name, TYPE, DEFAULT) for name in names for _ in range(plan.subscribers)
        ]
        self._waitset = WaitSet(self._participant)
        for reader in self._readers:
            self._waitset.attach(reader.condition)

    def is_matched(self) -> bool:
        return all(writer.matched() >= self._plan.subscribers for writer in self._writers)

    def exchange(self) -> tuple[int, int]:
        plan = self._plan
        due_ns = time.monotonic_ns() + plan.period_ns
        end_ns = due_ns + plan.ticks * plan.period_ns + PATIENCE_NS
        ticks = received = 0
        while received < plan.deliveries and (now_ns := time.monotonic_ns()) < end_ns:
            if ticks < plan.ticks and now_ns >= due_ns:
                self._write_all()
                ticks += 1
                due_ns += plan.period_ns
            else:
                received += self._wait_and_take((due_ns if ticks < plan.ticks else end_ns) - now_ns)
        return ticks * plan.topics, received

    def _write_all(self) -> None:
        for writer in self._writers:
            writer.write(self._data, wall_clock_ns())

    def _wait_and_take(self, timeout_ns: int) -> int:
        self._waitset.wait(timeout_ns)
        return sum(len(reader.take_many(_BATCH)) for reader in self._readers if reader.has_data())
