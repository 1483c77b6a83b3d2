"""Parameters of a peer, in a separate module, because only its process imports `peer`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

PING: Final = "ping"
PONG: Final = "pong"
BOTH: Final = "both"


@dataclass(frozen=True, kw_only=True)
class PeerParameters:
    """Parameters of a peer.

    Attributes:
        role: `PING`, `PONG` or `BOTH`.
        library: path of Cyclone DDS's library.
        samples: file for the times.
        interval_ns: time between messages; 0 sends the next as soon as the answer arrives.
        ping_cpu, pong_cpu: CPUs of the two threads of `BOTH`; -1 for any.
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
    """Encodes the parameters as the argument of `peer.main`."""
    return json.dumps(asdict(given))
