"""The times at which the messages of a flood are due."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_ldos.base.units import NS_PER_S


@dataclass(frozen=True, kw_only=True)
class FloodSchedule:
    """Bursts at equal intervals from a beginning, so that a late burst does not delay those after it.

    Several publishers are interleaved: each has its own bursts at its own rate, evenly between the others'.

    Attributes:
        rate_hz: messages per second of each publisher.
        burst: messages that one publisher sends at once.
        publishers: number of interleaved publishers.
    """

    rate_hz: float
    burst: int
    publishers: int
    begin_ns: int

    @property
    def between_bursts_ns(self) -> float:
        return NS_PER_S * self.burst / (self.rate_hz * self.publishers)

    def due_ns(self, slot: int) -> int:
        """Returns the time at which a message is due; slots count the messages of all publishers."""
        return self.begin_ns + math.ceil(slot // self.burst * self.between_bursts_ns)

    def publisher_of(self, slot: int) -> int:
        return slot // self.burst % self.publishers

    def due_by(self, now_ns: int) -> int:
        """Returns the number of messages due up to and including this moment."""
        if now_ns < self.begin_ns:
            return 0
        bursts = int((now_ns - self.begin_ns) / self.between_bursts_ns) + 1
        # The division is rounded; `due_ns` decides.
        while self.due_ns(bursts * self.burst) <= now_ns:
            bursts += 1
        while bursts > 1 and self.due_ns((bursts - 1) * self.burst) > now_ns:
            bursts -= 1
        return bursts * self.burst
