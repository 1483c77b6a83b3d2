"""Flood of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads.spec import LoadSpec, Proven, SchedulerGroup

SEQUENCE_BYTES: Final = 16
"""Hexadecimal digits of the sequence number in each message of a flood."""


class Reliability(StrEnum):
    """ROS 2's term for retransmission of lost messages."""

    BEST_EFFORT = "best_effort"
    RELIABLE = "reliable"


class FloodDomain(StrEnum):
    """DDS domain of a flood."""

    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class DdsFloodSpec(LoadSpec):
    """Publishers of `std_msgs/String` that send at a fixed rate, volatile, each on a topic of its own.

    Attributes:
        publishers: how many.
        rate_hz: of each publisher.
        burst: messages that are sent at once; the rate stays the same.
        size_bytes: length of the text.
        reliability: of publishers and readers.
        depth: of the publishers' history.
        participants: over how many DDS participants (processes) the publishers are spread; ``0`` gives each its own.
        domain: the stack's, or another.
        readers: whether somebody takes what is sent, and counts it; without, little of it gets beyond its publisher.
        group: as of `cpu_load`; with ``own``, each participant has a session of its own.
    """

    KIND: ClassVar[str] = "dds_flood"
    PROVEN: ClassVar[Mapping[str, Proven]] = {"rate_hz": Proven("rate_hz", "allowed_hz")}

    publishers: int = 4
    rate_hz: float = 1000.0
    burst: int = 1
    size_bytes: int = 1024
    reliability: Reliability = Reliability.BEST_EFFORT
    depth: int = 1
    participants: int = 0
    domain: FloodDomain = FloodDomain.SAME
    readers: bool = True
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require(1 <= self.publishers <= 32, f"a flood of {self.publishers} publishers; between 1 and 32 are possible")
        require(
            0.01 <= self.rate_hz <= 1e6,
            f"a flood at {self.rate_hz:g} Hz a publisher; between 0.01 and 1 000 000 Hz can be asked",
        )
        require(1 <= self.burst <= 10_000, f"bursts of {self.burst} messages; between 1 and 10 000 are possible")
        require(
            SEQUENCE_BYTES <= self.size_bytes <= 1 << 20,
            f"flood messages of {self.size_bytes} bytes; between {SEQUENCE_BYTES} (a message's number) "
            f"and 1048576 (1 MiB) are possible",
        )
        require(1 <= self.depth <= 100_000, f"a history of {self.depth} messages; between 1 and 100 000 are possible")
        require(
            0 <= self.participants <= self.publishers,
            f"{self.participants} participants for {self.publishers} publishers",
            remedy="at most one each; 0 gives each its own",
        )

    @property
    def total_hz(self) -> float:
        """Messages per second of all publishers together."""
        return self.publishers * self.rate_hz

    @property
    def processes(self) -> int:
        """Number of participants that carry the publishers."""
        return self.participants or self.publishers


SPEC: Final = DdsFloodSpec
