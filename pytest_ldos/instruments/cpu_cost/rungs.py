"""The rungs of the ladder: ways to exchange the same traffic, each adding a layer to the one before.

Reference: the seed `ros2_performance` (its table of binaries, and of CPU cycles in 30 s).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest


class Rung(StrEnum):
    """The rungs, in the order in which they are shown."""

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
