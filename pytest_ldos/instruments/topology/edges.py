"""Messages of a topology's edges (topic → node): on time, late, too late and lost.

Reference: seed of this instrument, iRobot's topology benchmark, and its limits of lateness (`Limits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_ldos.base.text import NS_PER_US
from pytest_ldos.robot.topology.conversation import NUMBER, RECEIVED_NS, RECEIVER, SENDER, SENT_NS, Samples
from pytest_ldos.robot.topology.model import Topology


@dataclass(frozen=True, kw_only=True)
class ResourceSample:
    """Resource usage of a process at one moment: CPU time since its start; sizes in KiB."""

    mono_ns: int
    cpu_ns: int
    arena_kb: int
    in_use_kb: int
    mmap_kb: int
    rss_kb: int
    vsz_kb: int


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One start of all processes. All times are ns of CLOCK_MONOTONIC."""

    launched_ns: int
    start_ns: int
    end_ns: int
    ended_ns: int  # end of the time in which all processes sent: `end_ns`, or the first early end
    # matched_ns, resources: time of complete discovery, and samples, by process
    matched_ns: Mapping[str, int]
    sent: Mapping[int, int]  # reported numbers of sent messages, by id
    samples: Samples
    resources: Mapping[str, tuple[ResourceSample, ...]]
    failure: str = ""


Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Latencies above which a message is late, or too late: the smaller of a share of its period and a fixed time."""

    late_percentage: float = 20.0
    late_absolute_us: float = 5000.0
    too_late_percentage: float = 100.0
    too_late_absolute_us: float = 50_000.0

    def late_ns(self, period_ns: int) -> float:
        return min(self.late_percentage / 100 * period_ns, self.late_absolute_us * NS_PER_US)

    def too_late_ns(self, period_ns: int) -> float:
        return min(self.too_late_percentage / 100 * period_ns, self.too_late_absolute_us * NS_PER_US)

    def too_late(self, latency_ns: Numbers, period_ns: int) -> NDArray[np.bool_]:
        return np.asarray(latency_ns > self.too_late_ns(period_ns))

    def late(self, latency_ns: Numbers, period_ns: int) -> NDArray[np.bool_]:
        """Marks messages that are late, but not too late."""
        return np.asarray(latency_ns > self.late_ns(period_ns)) & ~self.too_late(latency_ns, period_ns)


@dataclass(frozen=True)
class Gap:
    """Missing messages of a sender, and the place of the arrived one that revealed them; ``None`` if none followed."""

    first: int
    last: int
    next_place: int | None

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def find_gaps(numbers: Numbers, sent: int | None) -> Iterator[Gap]:
    """Yields the gaps in the messages of one sender, numbered from 0; with the number `sent`, also that at the end.

    Messages keep their order on a topic, so that a number above the expected one reveals a loss.
    """
    arrived, expected = set(numbers.tolist()), 0
    revealing: list[tuple[int | None, int]] = [*enumerate(numbers.tolist()), (None, sent or 0)]
    for place, number in revealing:
        first = expected
        for each in range(expected, number + 1):
            if each in arrived or each == number:  # an overtaken message is not lost
                if each > first:
                    yield Gap(first, each - 1, place)
                first = each + 1
        expected = max(expected, number + 1)


@dataclass(frozen=True)
class Source:
    """A sender on an edge: a publisher, or the client itself."""

    id: int
    size_bytes: int
    period_ns: int


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Messages of a topic to a node, the `receiver` in the samples; if `is_service`, round trips of a client."""

    receiver: int
    node: str
    topic: str
    sources: tuple[Source, ...]
    is_service: bool = False


def edges_of(topology: Topology) -> list[Edge]:
    sources: dict[str, list[Source]] = {}
    for _, each in topology.publishers:
        sources.setdefault(each.topic, []).append(Source(each.id, each.size_bytes, each.period_ns))
    found = []
    for node in topology.nodes:
        for taken in node.subscriptions:
            topic = taken.topic.removeprefix("/")
            found.append(Edge(receiver=taken.id, node=node.full_name, topic=topic, sources=tuple(sources[taken.topic])))
        for client in node.clients:
            own = (Source(client.id, client.size_bytes, client.period_ns),)
            service = client.service.removeprefix("/")
            found.append(Edge(receiver=client.id, node=node.full_name, topic=service, sources=own, is_service=True))
    return found


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Messages of one source on an edge in one start, in order of arrival, and the gaps of those that are missing."""

    edge: Edge
    source: Source
    numbers: Numbers
    sent_ns: Numbers
    received_ns: Numbers
    gaps: tuple[Gap, ...]

    @property
    def latency_ns(self) -> Numbers:
        return self.received_ns - self.sent_ns


def find_flows(edges: Sequence[Edge], recorded: Recorded) -> Iterator[Flow]:
    """Yields the messages of a start by edge and source; after an early end, messages in transit are not lost."""
    for edge in edges:
        arrived = recorded.samples[recorded.samples[:, RECEIVER] == edge.receiver]
        for source in edge.sources:
            own = arrived[arrived[:, SENDER] == source.id]
            sent = None if recorded.failure else recorded.sent.get(source.id)
            yield Flow(
                edge=edge,
                source=source,
                numbers=own[:, NUMBER],
                sent_ns=own[:, SENT_NS],
                received_ns=own[:, RECEIVED_NS],
                gaps=tuple(find_gaps(own[:, NUMBER], sent)),
            )


@dataclass(frozen=True, kw_only=True)
class EdgeFigures:
    """Figures of an edge.

    Attributes:
        mean_us, sd_us, min_us, max_us: latencies of messages that were not too late; ``None`` without any.
        p99_us: 99th percentile of all latencies.
        nominal_hz, rate_hz: rate of its first source, and rate at which messages arrived.
        duration_s: time from the first to the last arrival.
    """

    edge: Edge
    received: int
    late: int
    too_late: int
    lost: int
    mean_us: float | None
    sd_us: float | None
    min_us: float | None
    max_us: float | None
    p99_us: float | None
    nominal_hz: float
    rate_hz: float | None
    duration_s: float


def figures_of(edge: Edge, flows: Sequence[Flow], limits: Limits) -> EdgeFigures:
    latencies = _joined([flow.latency_ns for flow in flows])
    too_late = _joined([limits.too_late(flow.latency_ns, flow.source.period_ns) for flow in flows], bool)
    late = sum(int(limits.late(flow.latency_ns, flow.source.period_ns).sum()) for flow in flows)
    timely = latencies[~too_late] / 1e3
    duration_s = sum(float(np.ptp(flow.received_ns)) / 1e9 for flow in flows if len(flow.numbers)) / len(edge.sources)
    periods = sum(max(0, len(flow.numbers) - 1) for flow in flows)
    return EdgeFigures(
        edge=edge,
        received=len(latencies),
        late=late,
        too_late=int(too_late.sum()),
        lost=sum(gap.count for flow in flows for gap in flow.gaps),
        mean_us=float(timely.mean()) if len(timely) else None,
        sd_us=float(timely.std(ddof=1)) if len(timely) > 1 else None,
        min_us=float(timely.min()) if len(timely) else None,
        max_us=float(timely.max()) if len(timely) else None,
        p99_us=float(np.percentile(latencies, 99)) / 1e3 if len(latencies) else None,
        nominal_hz=1e9 / edge.sources[0].period_ns,
        rate_hz=periods / duration_s if duration_s else None,
        duration_s=duration_s,
    )


def _joined(arrays: Sequence[np.ndarray], kind: type = np.int64) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=kind), *arrays])


@dataclass(frozen=True, kw_only=True)
class Totals:
    """All edges together; percentages refer to the messages received, that of lost messages to those sent."""

    received: int
    late: int
    too_late: int
    lost: int
    mean_us: float | None
    late_percent: float | None
    too_late_percent: float | None
    lost_percent: float | None


def totals_of(figures: Sequence[EdgeFigures]) -> Totals:
    received, late, too_late, lost = (
        sum(getattr(each, name) for each in figures) for name in ("received", "late", "too_late", "lost")
    )
    timely = received - too_late
    summed_us = sum(each.mean_us * (each.received - each.too_late) for each in figures if each.mean_us is not None)
    return Totals(
        received=received,
        late=late,
        too_late=too_late,
        lost=lost,
        mean_us=summed_us / timely if timely else None,
        late_percent=100 * late / received if received else None,
        too_late_percent=100 * too_late / received if received else None,
        lost_percent=100 * lost / (received + lost) if received + lost else None,
    )
