"""Settings of ``ldos topology``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.instruments.topology.recorded import Limits
from pytest_ldos.robot.topology.conversation import Processes
from pytest_ldos.scenario.described import described

LONGEST_S: Final = 3600.0
MOST_ROUNDS: Final = 1000
SHORTEST_ROUND_S: Final = 0.2


class Layer(StrEnum):
    """Library of the nodes."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"


@dataclass(frozen=True, kw_only=True)
class TopologySpec:
    """A topology, its duration, and limits of lateness."""

    file: str = field(
        metadata=described(
            "JSON, or the name of one of ours: pick_cell (10 nodes), packing_hall (20).", is_argument=True
        )
    )
    seconds: float = field(
        default=10.0, metadata=described("Seconds that messages are sent, in each start.", "--time", "-t", default=60.0)
    )
    starts: int = field(default=1, metadata=described("Starts of all processes."))
    rounds: int = field(
        default=10, metadata=described("Parts of equal length of each start; each gives the numbers that are gated.")
    )
    processes: Processes = field(default=Processes.ONE, metadata=described("One for all nodes, or one a node."))
    layer: Layer = field(default=Layer.EMBEDDED, metadata=described("Our node layer over Cyclone DDS, or rclcpp."))
    rmw: str = field(default="", metadata=described("Middleware of rclcpp. [default: that of the environment]"))
    intra_process: bool = field(
        default=False, metadata=described("rclcpp hands messages over within a process.", "--ipc/--no-ipc")
    )
    sampling: float = field(default=0.5, metadata=described("Seconds between two looks at CPU time and memory."))
    late_percentage: float = field(
        default=20.0,
        metadata=described(
            "A message is late above this share of its period in %, or above late-absolute if that is less."
        ),
    )
    late_absolute: float = field(
        default=5000.0,
        metadata=described("A message is late above this time in µs, or above late-percentage if that is less."),
    )
    too_late_percentage: float = field(
        default=100.0,
        metadata=described(
            "It is too late above this share of its period in %, or above too-late-absolute if that is less."
        ),
    )
    too_late_absolute: float = field(
        default=50_000.0,
        metadata=described("It is too late above this time in µs, or above too-late-percentage if that is less."),
    )
    target: str = field(default="", metadata=described("Performance to be reached: JSON with limits.", is_path=True))
    log: str = field(
        default="",
        metadata=described(
            "Folder for latency_all.txt, latency_total.txt, resources.txt and events.txt.", is_path=True
        ),
    )

    def __post_init__(self) -> None:
        require(bool(self.file), "no topology is named", remedy="give a file, or the name of one of ours")
        require(
            SHORTEST_ROUND_S <= self.seconds <= LONGEST_S,
            f"{self.seconds:g} seconds cannot be measured",
            remedy=f"ask for {SHORTEST_ROUND_S} s to an hour",
        )
        require(1 <= self.starts <= 100, f"{self.starts} starts cannot be made", remedy="ask for 1 to 100")
        require(
            1 <= self.rounds <= MOST_ROUNDS, f"{self.rounds} rounds cannot be cut", remedy=f"ask for 1 to {MOST_ROUNDS}"
        )
        require(
            self.seconds / self.rounds >= SHORTEST_ROUND_S,
            f"{self.seconds:g} seconds cut into {self.rounds} rounds give less than {SHORTEST_ROUND_S} s to each",
            remedy=f"ask for more seconds, or for {int(self.seconds / SHORTEST_ROUND_S)} rounds at most",
        )
        require(
            0.05 <= self.sampling <= 60, f"sampling is {self.sampling} s", remedy="it must lie between 0.05 and 60 s"
        )
        require(
            self.sampling <= self.seconds,
            f"sampling is {self.sampling} s, more than the {self.seconds} seconds of a start",
            remedy="look more often, or ask for more seconds",
        )
        for name in ("late_percentage", "late_absolute", "too_late_percentage", "too_late_absolute"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"{name} is {value}", remedy="it must be above 0")
        is_ros2 = self.layer is Layer.ROS2
        require(
            is_ros2 or not self.intra_process,
            "the embedded layer has no intra-process way",
            remedy="ask for layer ros2",
        )
        require(
            is_ros2 or not self.rmw, "the embedded layer is Cyclone DDS, whatever rmw says", remedy="ask for layer ros2"
        )

    @property
    def limits(self) -> Limits:
        return Limits(
            late_percentage=self.late_percentage,
            late_absolute_us=self.late_absolute,
            too_late_percentage=self.too_late_percentage,
            too_late_absolute_us=self.too_late_absolute,
        )
