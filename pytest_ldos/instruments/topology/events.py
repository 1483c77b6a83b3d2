"""Events by time: discovery, and messages that were late, too late or lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from pytest_ldos.base.units import NS_PER_MS, NS_PER_US
from pytest_ldos.instruments.topology.edges import Flow
from pytest_ldos.instruments.topology.lateness import Limits
from pytest_ldos.instruments.topology.recorded import Recorded

SYSTEM: Final = "SYSTEM"


class Code(IntEnum):
    """Codes as in the seed's files; `FAILURE` is ours."""

    DISCOVERY = 0
    LATE = 1
    TOO_LATE = 2
    LOST = 3
    FAILURE = 4


@dataclass(frozen=True, order=True)
class Event:
    """A line of the event log.

    Attributes:
        time_ms: time since the first start began to send.
        caller: ``topic->node``, or `SYSTEM`.
    """

    time_ms: int
    caller: str
    code: Code
    description: str


def find_events(recorded: Recorded, flows: Sequence[Flow], limits: Limits, *, origin_ns: int) -> list[Event]:
    """Returns all events of a start, ordered by time."""
    found = [*_of_system(recorded, origin_ns)]
    for flow in flows:
        found += _of_flow(flow, limits, recorded, origin_ns)
    return sorted(found)


def _of_system(recorded: Recorded, origin_ns: int) -> Iterator[Event]:
    """Yields discovery, at the time of the first message and with its duration in the text, and failure."""
    start_ms = _ms(recorded.start_ns, origin_ns)
    if recorded.start_ns:
        took_ms = (max(recorded.matched_ns.values()) - recorded.launched_ns) / NS_PER_MS
        words = f"[discovery] all ends have met their peers, {took_ms:.0f}ms after the processes were started"
        yield Event(start_ms, SYSTEM, Code.DISCOVERY, words)
    if recorded.failure:
        ended_ms = _ms(recorded.ended_ns, origin_ns) if recorded.start_ns else 0
        yield Event(ended_ms, SYSTEM, Code.FAILURE, " ".join(recorded.failure.split()))


def _of_flow(flow: Flow, limits: Limits, recorded: Recorded, origin_ns: int) -> Iterator[Event]:
    caller, period_ns = flow.edge.label, flow.source.period_ns
    latency_ns = flow.latency_ns
    for code, which, limit_ns, words in (
        (Code.LATE, limits.late(latency_ns, period_ns), limits.late_ns(period_ns), "late"),
        (Code.TOO_LATE, limits.too_late(latency_ns, period_ns), limits.too_late_ns(period_ns), "too late"),
    ):
        for place in np.flatnonzero(which):
            text = (
                f"msg {flow.numbers[place]} {words}. {latency_ns[place] // NS_PER_US}us > {limit_ns / NS_PER_US:.0f}us"
            )
            yield Event(_ms(int(flow.received_ns[place]), origin_ns), caller, code, text)
    for gap in flow.gaps:
        at_ns = recorded.end_ns if gap.next_place is None else int(flow.received_ns[gap.next_place])
        text = f"msg {gap.first} lost." if gap.count == 1 else f"msgs {gap.first} to {gap.last} lost."
        yield Event(_ms(at_ns, origin_ns), caller, Code.LOST, text)


def _ms(moment_ns: int, origin_ns: int) -> int:
    return (moment_ns - origin_ns) // NS_PER_MS
