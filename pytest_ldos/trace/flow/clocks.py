"""Clock offsets between hosts, estimated from the messages that they exchanged.

Latency is positive, so each message from A to B bounds the offset of B's clock on one side, and each
message from B to A on the other. The true offset is between the closest bounds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from pytest_ldos.trace.execution.columns import ids_of
from pytest_ldos.trace.flow.graph import FlowGraph


class Bound(StrEnum):
    """Known bound of an offset."""

    LEAST = "at least"
    MOST = "at most"
    NONE = "not known"


@dataclass(frozen=True)
class ClockOffset:
    """Offset to be added to a host's times.

    Attributes:
        uncertainty_ns: largest error of `offset_ns` on either side; ``None`` if messages passed in one direction
            only, so that `offset_ns` is a bound. If the clocks drifted so that no offset fits all messages, the
            largest violation of a bound.
        messages: number of messages that the estimate rests on.
        bound: if `offset_ns` is no estimate: the offset is at least or at most that, or unknown.
    """

    offset_ns: int
    uncertainty_ns: int | None
    messages: int
    bound: Bound | None = None


def estimate_clock_offsets(flow: FlowGraph) -> dict[str, ClockOffset]:
    """Offsets by host name that bring all clocks into agreement with the first host's.

    A host that exchanged no message with the others, directly or indirectly, is left out. Source: `transport` links
    between hosts.
    """
    bounds = _least_latencies(flow)
    offsets = {0: ClockOffset(0, 0, 0)}
    waiting = deque([0])
    while waiting:
        known = waiting.popleft()
        for host in sorted({b for a, b in bounds if a == known} | {a for a, b in bounds if b == known}):
            if host not in offsets:
                offsets[host] = _combine(offsets[known], _between(bounds, known, host))
                waiting.append(host)
    names = flow.model.hosts["name"]
    return {names[host]: offset for host, offset in offsets.items()}


def _least_latencies(flow: FlowGraph) -> dict[tuple[int, int], tuple[int, int]]:
    """Least apparent latency and number of messages for each ordered pair of hosts."""
    model = flow.model
    host = ids_of(model.processes, "host")[ids_of(model.threads, "process")]
    sender = host[ids_of(model.publications, "thread")[ids_of(flow.transport, "publication")]]
    receiver = host[ids_of(model.takes, "thread")[ids_of(flow.transport, "take")]]
    links = pl.DataFrame({"sender": sender, "receiver": receiver, "latency_ns": flow.transport["latency_ns"]})
    across = links.filter(pl.col("sender") != pl.col("receiver"))
    least = across.group_by("sender", "receiver").agg(pl.col("latency_ns").min(), count=pl.len())
    return {(a, b): (latency, count) for a, b, latency, count in least.iter_rows()}


def _between(bounds: dict[tuple[int, int], tuple[int, int]], known: int, host: int) -> ClockOffset:
    """Offset to be added to the times of `host` to agree with `known`.

    Latencies cannot be negative: messages to `host` bound its offset from below, messages from it
    from above.
    """
    to_host, from_host = bounds.get((known, host)), bounds.get((host, known))
    if to_host and from_host:
        lowest, highest = -to_host[0], from_host[0]
        middle = (lowest + highest) // 2
        uncertainty = max(abs(highest - middle), abs(middle - lowest))
        return ClockOffset(middle, uncertainty, to_host[1] + from_host[1])
    if to_host:
        return ClockOffset(-to_host[0], None, to_host[1], Bound.LEAST)
    assert from_host is not None
    return ClockOffset(from_host[0], None, from_host[1], Bound.MOST)


def _combine(known: ClockOffset, step: ClockOffset) -> ClockOffset:
    offset_ns = known.offset_ns + step.offset_ns
    slack_ns = (known.uncertainty_ns or 0) + (step.uncertainty_ns or 0)
    sides = {each.bound for each in (known, step) if each.bound is not None}
    if not sides:
        return ClockOffset(offset_ns, slack_ns, step.messages)
    side = sides.pop() if len(sides) == 1 else Bound.NONE
    slack_ns = {Bound.LEAST: -slack_ns, Bound.MOST: slack_ns, Bound.NONE: 0}[side]
    return ClockOffset(offset_ns + slack_ns, None, step.messages, side)
