"""Settings of `ldos cpu-cost`, and the rungs of its ladder.

Reference: the seed `ros2_performance` (its table of binaries, and of CPU cycles in 30 s).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, require, suggest
from pytest_ldos.instruments.cost_layers import LayersSpec
from pytest_ldos.scenario.described import described


class Rung(StrEnum):
    """Rungs, in display order."""

    IN_PROCESS = "in_process"
    """Publishing calls each subscriber directly."""

    NO_PUBLISHING = "no_publishing"
    """Nodes with timers that publish nothing."""

    DDS = "dds"
    """DDS writers and readers without nodes."""

    ONE_NODE = "one_node"
    """All publishers and subscriptions in one node."""

    MANY_NODES = "many_nodes"
    """Publishers and subscriptions spread over nodes that share a participant, as since ROS 2 Foxy."""

    MANY_PARTICIPANTS = "many_participants"
    """Publishers and subscriptions spread over nodes with a participant each, as before Foxy."""


@dataclass(frozen=True)
class SeedResult:
    """The seed's measurement of one rung.

    Attributes:
        cycles: CPU cycles in 30 s.
        ratio: cycles relative to those of DDS alone.
    """

    cycles: float
    ratio: float


SEED: Final[Mapping[Rung, SeedResult]] = {
    Rung.DDS: SeedResult(3.6e9, 1.0),
    Rung.ONE_NODE: SeedResult(1.3e10, 3.5),
    Rung.MANY_PARTICIPANTS: SeedResult(3.8e10, 10.6),
}
"""The seed's many nodes had one participant each."""

TITLES: Final[Mapping[Rung, str]] = {
    Rung.IN_PROCESS: "in-process calls",
    Rung.NO_PUBLISHING: "no publishing",
    Rung.DDS: "DDS only",
    Rung.ONE_NODE: "one node",
    Rung.MANY_NODES: "many nodes",
    Rung.MANY_PARTICIPANTS: "many participants",
}


def parse_rungs(text: str) -> Sequence[Rung]:
    """Splits a comma-separated list of rungs; an empty one means all.

    Raises:
        ConfigurationError: a name is unknown; the remedy suggests the nearest.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in tuple(Rung):
            raise ConfigurationError(f"{name!r} is no rung of the ladder", remedy=suggest(name, tuple(Rung)))
    return [each for each in Rung if not names or each in names]


MOST_NODES: Final = 30
"""Number of participants that rmw_cyclonedds finds on one machine by default."""

_MOST_SUBSCRIPTIONS: Final = 2000
_LONGEST_ROUND_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class CpuCostSpec(LayersSpec):
    """The traffic, and the numbers of exchanges per rung."""

    rungs: str = field(
        default="",
        metadata=described("in_process, no_publishing, dds, one_node, many_nodes, many_participants. [default: all]"),
    )
    topics: int = field(default=20, metadata=described("Topics, each with one publisher."))
    subscribers: int = field(default=10, metadata=described("Subscribers of each topic."))
    nodes: int = field(default=10, metadata=described("Nodes of the rungs that have many."))
    rate_hz: float = field(default=10.0, metadata=described("Messages a second of each topic.", "--rate"))
    size_bytes: int = field(default=64, metadata=described("Bytes of a message's text.", "--size"))
    seconds: float = field(default=1.0, metadata=described("Seconds of a round."))
    rounds: int = field(default=2, metadata=described("Rounds of each rung in a start; rungs are interleaved."))
    starts: int = field(default=5, metadata=described("Starts of the processes; intervals are over these."))

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_rungs(self.rungs)
        require(self.topics >= 1, f"{self.topics} topics", remedy="at least 1")
        require(self.subscribers >= 1, f"{self.subscribers} subscribers of a topic", remedy="at least 1")
        require(
            self.topics * self.subscribers <= _MOST_SUBSCRIPTIONS,
            f"{self.topics} topics with {self.subscribers} subscribers each",
            remedy=f"at most {_MOST_SUBSCRIPTIONS} subscriptions in all",
        )
        require(1 <= self.nodes <= MOST_NODES, f"{self.nodes} nodes", remedy=f"between 1 and {MOST_NODES}")
        require(
            0.1 <= self.rate_hz <= 10_000, f"a rate of {self.rate_hz:g} Hz", remedy="between 0.1 and 10 000 Hz a topic"
        )
        require(1 <= self.size_bytes <= 1 << 20, f"messages of {self.size_bytes} bytes", remedy="between 1 and 1048576")
        require(
            0 < self.seconds <= _LONGEST_ROUND_S,
            f"rounds of {self.seconds:g} s",
            remedy=f"more than 0 and at most {_LONGEST_ROUND_S:.0f} s",
        )
        require(self.ticks >= 1, "a round without a message", remedy="longer rounds, or a higher rate")
        require(1 <= self.rounds <= 1000, f"{self.rounds} rounds", remedy="between 1 and 1000")
        require(1 <= self.starts <= 1000, f"{self.starts} starts", remedy="between 1 and 1000")

    @property
    def ticks(self) -> int:
        """Messages of each publisher in a round."""
        return round(self.rate_hz * self.seconds)

    @property
    def messages(self) -> int:
        """Messages of all publishers in a round."""
        return self.ticks * self.topics

    @property
    def chosen_rungs(self) -> Sequence[Rung]:
        return parse_rungs(self.rungs)

    @property
    def traffic(self) -> str:
        """Description of the traffic, for the name of a case: ``20 × 1 → 10, 10 Hz, 64 B``."""
        return f"{self.topics} × 1 → {self.subscribers}, {self.rate_hz:g} Hz, {self.size_bytes} B"
