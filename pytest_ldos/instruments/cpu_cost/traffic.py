"""Interface of the ways to exchange messages in a process of `exchange_program`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pytest_ldos.base.text import NS_PER_S

TYPE: Final = "std_msgs/msg/String"
PATIENCE_NS: Final = NS_PER_S
"""Time to wait for messages after the last tick."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The traffic to exchange; see `spec.CpuCostSpec`."""

    domain: int
    topics: int
    subscribers: int
    nodes: int
    rate_hz: float
    size_bytes: int
    ticks: int

    @property
    def period_ns(self) -> int:
        return int(NS_PER_S / self.rate_hz)

    @property
    def deliveries(self) -> int:
        return self.ticks * self.topics * self.subscribers

    def topic(self, number: int) -> str:
        return f"/cost_topic_{number}"


class Traffic(Protocol):
    """Publishers and subscribers."""

    def is_matched(self) -> bool:
        """Returns True if every publisher has found all its subscribers."""

    def exchange(self) -> tuple[int, int]:
        """Publishes on all topics at every tick; returns the numbers of messages published and received.

        Returns when all messages were received, or `PATIENCE_NS` after the last tick.
        """


Maker = Callable[[Plan], Traffic]
