"""Parameters of a peer, in a module of their own, because `peer` must start quickly and needs a native module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PING: Final = "ping"
PONG: Final = "pong"
BOTH: Final = "both"


@dataclass(frozen=True, kw_only=True)
class PeerParameters:
    """`PING`, `PONG` or `BOTH`, with the paths of Cyclone DDS's library and of the file for the times.

    With an interval of 0, the next message is sent as soon as the answer arrives. The CPUs of the two threads of `BOTH`
    are -1 for any.
    """

    role: str
    library: str
    domain: int
    reliable: bool
    listener: bool
    size: int
    duration_ns: int
    warm_up_ns: int
    patience_ns: int
    match_timeout_ns: int
    interval_ns: int
    ping_cpu: int
    pong_cpu: int
    samples: str
