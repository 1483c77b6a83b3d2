"""Small topologies, and what their processes might have recorded."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pytest_ldos.instruments.topology.edges import Recorded, ResourceSample
from pytest_ldos.robot.topology.conversation import COLUMNS
from pytest_ldos.robot.topology.model import Topology, decode_topology

MS = 1_000_000
SECOND = 1_000_000_000

TWO = {
    "nodes": [
        {
            "node_name": "talker",
            "publishers": [{"topic_name": "counts", "msg_type": "stamped_int64", "period_ms": 10}],
            "servers": [{"service_name": "sum", "srv_type": "stamped10b"}],
        },
        {
            "node_name": "listener",
            "subscribers": [{"topic_name": "counts", "msg_type": "stamped_int64"}],
            "clients": [{"service_name": "sum", "srv_type": "stamped10b", "period_ms": 50}],
        },
    ]
}
"""A topic at 100 Hz and a service at 20 Hz between two nodes. The publisher is 0, the subscription 1, the client 2."""


def topology(declared: dict[str, Any] | None = None) -> Topology:
    return decode_topology(text_of(declared or TWO), "two.json")


def text_of(declared: dict[str, Any]) -> str:
    return json.dumps(declared, indent=1)


def recorded(samples: list[tuple[int, int, int, int, int]], **changes: Any) -> Recorded:
    """A start of one second at 0, whose only process used half a CPU and 10 MiB."""
    looks = tuple(
        ResourceSample(
            mono_ns=SECOND + number * SECOND // 2,
            cpu_ns=5 * SECOND + number * SECOND // 4,
            arena_kb=1000,
            in_use_kb=900,
            mmap_kb=100,
            rss_kb=10 * 1024,
            vsz_kb=20 * 1024,
        )
        for number in range(3)
    )
    made = {
        "launched_ns": SECOND // 2,
        "start_ns": SECOND,
        "end_ns": 2 * SECOND,
        "ended_ns": 2 * SECOND,
        "matched_ns": {"two": SECOND - 100 * MS},
        "sent": {},
        "samples": np.array(samples, dtype=np.int64).reshape(-1, COLUMNS),
        "resources": {"two": looks},
    }
    return Recorded(**{**made, **changes})


def arrivals(latencies_ms: dict[int, float], *, receiver: int = 1, sender: int = 0, period_ms: int = 10):
    """Samples of messages by number, sent on the grid of their period."""
    return [
        (receiver, sender, number, sent := SECOND + (number + 1) * period_ms * MS, sent + round(latency * MS))
        for number, latency in latencies_ms.items()
    ]
