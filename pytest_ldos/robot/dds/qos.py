"""The few QoS settings that ROS 2 uses, and Cyclone's form of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cyclonedds.qos import Policy, Qos
from cyclonedds.util import duration


@dataclass(frozen=True, kw_only=True)
class QosProfile:
    """A ROS 2 QoS profile: history is keep-last `depth`."""

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False

    def to_cyclone(self, *, user_data: str = "") -> Qos:
        policies = [
            Policy.History.KeepLast(self.depth),
            Policy.Reliability.Reliable(duration(seconds=1)) if self.reliable else Policy.Reliability.BestEffort,
            Policy.Durability.TransientLocal if self.transient_local else Policy.Durability.Volatile,
        ]
        if user_data:
            policies.append(Policy.Userdata(user_data.encode("ascii")))
        return Qos(*policies)


DEFAULT: Final = QosProfile()
CLOCK: Final = QosProfile(depth=1, reliable=False)
SERVICES: Final = QosProfile(depth=10)
STATUS: Final = QosProfile(depth=1, transient_local=True)
"""Action status: `rcl_action`'s default profile."""
