"""What a peer is told to do; see `peer`, which is imported by its own process alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

PING: Final = "ping"
PONG: Final = "pong"
BOTH: Final = "both"


@dataclass(frozen=True, kw_only=True)
class PeerParameters:
    """What a peer is to do.

    Attributes:
        role: `PING`, `PONG` or `BOTH`.
        library: of Cyclone DDS.
        samples: file for the times.
        interval_ns: between messages; 0 sends the next when the answer is there.
        ping_cpu, pong_cpu: of the two threads of `BOTH`; -1 for any.
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


def as_argument(given: PeerParameters) -> str:
    """What `main` takes."""
    return json.dumps(asdict(given))
