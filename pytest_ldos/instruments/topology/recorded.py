"""Raw results of one start of a topology, and the rules for late, too late and lost messages.

Reference: seed of this instrument, iRobot's topology benchmark: *too late* above ``min(period, 50 ms)``, *late* above
``min(20 % of the period, 5 ms)``, *lost* by numbers that were skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.robot.topology.conversation import Samples


@dataclass(frozen=True, kw_only=True)
class ResourceSample:
    """Resource usage of a process at one moment; sizes in KiB.

    Attributes:
        cpu_ns: CPU time since its start.
    """

    mono_ns: int
    cpu_ns: int
    arena_kb: int
    in_use_kb: int
    mmap_kb: int
    rss_kb: int
    vsz_kb: int


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One start of all processes. All times are ns of CLOCK_MONOTONIC.

    Attributes:
        launched_ns: start of the first process.
        start_ns, end_ns: interval of sending.
        ended_ns: end of the time in which all processes sent: `end_ns`, or the first early end.
        matched_ns: time of complete discovery, by process.
        sent: reported numbers of sent messages, by id.
        resources: samples by process.
        failure: reason of an abnormal end; empty for a normal one.
    """

    launched_ns: int
    start_ns: int
    end_ns: int
    ended_ns: int
    matched_ns: Mapping[str, int]
    sent: Mapping[int, int]
    samples: Samples
    resources: Mapping[str, tuple[ResourceSample, ...]]
    failure: str = ""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Latencies above which a message is late, or too late: the smaller of a share of its period and a fixed time."""

    late_percentage: float = 20.0
    late_absolute_us: float = 5000.0
    too_late_percentage: float = 100.0
    too_late_absolute_us: float = 50_000.0

    def late_ns(self, period_ns: int) -> float:
        return min(self.late_percentage / 100 * period_ns, self.late_absolute_us * NS_PER_US)

    def too_late_ns(self, period_ns: int) -> float:
        return min(self.too_late_percentage / 100 * period_ns, self.too_late_absolute_us * NS_PER_US)

    def too_late(self, latency_ns: Numbers, period_ns: int) -> NDArray[np.bool_]:
        return np.asarray(latency_ns > self.too_late_ns(period_ns))

    def late(self, latency_ns: Numbers, period_ns: int) -> NDArray[np.bool_]:
        """Marks messages that are late, but not too late."""
        return np.asarray(latency_ns > self.late_ns(period_ns)) & ~self.too_late(latency_ns, period_ns)


@dataclass(frozen=True)
class Gap:
    """Missing messages of one sender.

    Attributes:
        first, last: their numbers.
        next_place: index, among the arrived messages, of the one that revealed the gap; ``None`` if none followed.
    """

    first: int
    last: int
    next_place: int | None

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def find_gaps(numbers: Numbers, sent: int | None) -> Iterator[Gap]:
    """Yields the gaps in the messages of one sender.

    Messages keep their order on a topic, so that a number above the expected one reveals a loss. If the number of sent
    messages is known, those after the last received one are lost, too.

    Args:
        numbers: in the order of arrival; the first message has number 0.
        sent: number of messages sent; ``None`` if unknown.
    """
    arrived = set(numbers.tolist())
    expected = 0
    for place, number in enumerate(numbers.tolist()):
        yield from _absent(expected, number, arrived, place)
        expected = max(expected, number + 1)
    if sent is not None and sent > expected:
        yield Gap(expected, sent - 1, None)


def _absent(expected: int, number: int, arrived: set[int], place: int) -> Iterator[Gap]:
    """Yields the gaps between two numbers; an overtaken message is not lost."""
    first = expected
    for each in range(expected, number):
        if each in arrived:
            if each > first:
                yield Gap(first, each - 1, place)
            first = each + 1
    if number > first:
        yield Gap(first, number - 1, place)
