"""Impaired network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.loads.spec import LoadSpec


@dataclass(frozen=True, kw_only=True)
class NetworkImpairmentSpec(LoadSpec):
    """Impairs the messages of the stack's DDS domain on the network (``tc netem``).

    Attributes:
        delay_ms: by which each datagram is later.
        jitter_ms: by how much that varies, either way.
        loss_percent: of the datagrams.
        rate_mbps: to which they are throttled, in 10^6 bits a second; ``0`` for no limit.
    """

    KIND: ClassVar[str] = "network_impairment"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"rate_mbps"})

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rate_mbps: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.delay_ms <= 10_000, "delay_ms must lie between 0 and 10 000")
        require(0 <= self.jitter_ms <= self.delay_ms, "jitter_ms must lie between 0 and delay_ms")
        require(0 <= self.loss_percent <= 100, "loss_percent must lie between 0 and 100")
        require(self.rate_mbps == 0 or 0.01 <= self.rate_mbps <= 100_000, "rate_mbps must lie between 0.01 and 100 000")


SPEC: Final = NetworkImpairmentSpec
