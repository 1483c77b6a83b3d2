"""The rungs of the ladder: ways to exchange the same traffic, each with a layer more than the one before it.

Reference: the seed `ros2_performance` (its table of binaries, and of CPU cycles in 30 s).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.scenario.nearest import suggest


class Rung(StrEnum):
    """In the order in which they are shown."""

    IN_PROCESS = "in_process"
    """Publishing is a call of each subscriber."""

    NO_PUBLISHING = "no_publishing"
    """Nodes with timers, and nothing to publish."""

    DDS = "dds"
    """Writers and readers, without nodes."""

    ONE_NODE = "one_node"
    """All publishers and subscriptions in one node."""

    MANY_NODES = "many_nodes"
    """Spread over nodes that share a participant, as they do since ROS 2 Foxy."""

    MANY_PARTICIPANTS = "many_participants"
    """Spread over nodes that each have a participant, as they had before."""


@dataclass(frozen=True)
class SeedResult:
    """What the seed found.

    Attributes:
        cycles: of the CPU, in 30 s.
        ratio: of these to those of DDS alone.
    """

    cycles: float
    ratio: float


SEED: Final[Mapping[Rung, SeedResult]] = {
    Rung.DDS: SeedResult(3.6e9, 1.0),
    Rung.ONE_NODE: SeedResult(1.3e10, 3.5),
    Rung.MANY_PARTICIPANTS: SeedResult(3.8e10, 10.6),
}
"""Its many nodes had a participant each."""

TITLES: Final[Mapping[Rung, str]] = {
    Rung.IN_PROCESS: "in-process calls",
    Rung.NO_PUBLISHING: "no publishing",
    Rung.DDS: "DDS only",
    Rung.ONE_NODE: "one node",
    Rung.MANY_NODES: "many nodes",
    Rung.MANY_PARTICIPANTS: "many participants",
}


def parse_rungs(text: str) -> Sequence[Rung]:
    """Names with commas between them; all where there are none.

    Raises:
        ConfigurationError: an unknown one; names the nearest.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in tuple(Rung):
            raise ConfigurationError(f"{name!r} is no rung of the ladder", remedy=suggest(name, tuple(Rung)))
    return [each for each in Rung if not names or each in names]
