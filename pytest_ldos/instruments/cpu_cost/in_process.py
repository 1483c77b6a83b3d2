"""Publishing by function calls, without middleware and threads."""

from __future__ import annotations

import time

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.instruments.cpu_cost.traffic import Plan


class InProcess:
    """See `Traffic`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._message = "X" * plan.size_bytes
        self._topics = [[self._receive] * plan.subscribers for _ in range(plan.topics)]
        self._received = 0

    def _receive(self, message: str) -> None:
        self._received += 1

    def is_matched(self) -> bool:
        return True

    def exchange(self) -> tuple[int, int]:
        self._received = 0
        due_ns = time.monotonic_ns()
        for _ in range(self._plan.ticks):
            due_ns += self._plan.period_ns
            time.sleep(max(0, due_ns - time.monotonic_ns()) / NS_PER_S)
            self._publish_all()
        return self._plan.ticks * self._plan.topics, self._received

    def _publish_all(self) -> None:
        for subscribers in self._topics:
            for receive in subscribers:
                receive(self._message)
