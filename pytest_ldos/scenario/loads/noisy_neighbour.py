"""Noisy neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from pytest_ldos.scenario.loads.spec import LoadSpec, SchedulerGroup


class NeighbourStack(StrEnum):
    """Kind of the second stack."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"
    """A second instance of the launch file under test."""


@dataclass(frozen=True, kw_only=True)
class NoisyNeighbourSpec(LoadSpec):
    """A second stack on a DDS domain of its own, whose arm moves all the time.

    Attributes:
        stack: which: the embedded one, or the launch file of the stack under test once more.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "noisy_neighbour"

    stack: NeighbourStack = NeighbourStack.EMBEDDED
    group: SchedulerGroup = SchedulerGroup.STACK


SPEC: Final = NoisyNeighbourSpec
