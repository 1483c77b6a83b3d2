"""Edges of a topology (topic → node), with messages on time, late, too late and lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_ldos.instruments.topology.recorded import Gap, Limits, Numbers, Recorded, find_gaps
from pytest_ldos.robot.topology.conversation import NUMBER, RECEIVED_NS, RECEIVER, SENDER, SENT_NS, Samples
from pytest_ldos.robot.topology.model import Topology


@dataclass(frozen=True)
class Source:
    """A sender on an edge: a publisher, or the client itself."""

    id: int
    size_bytes: int
    period_ns: int


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Messages of a topic to a node; if `is_service`, round trips between a client and a service.

    Attributes:
        receiver: its id in the samples.
    """

    receiver: int
    node: str
    topic: str
    sources: tuple[Source, ...]
    is_service: bool = False

    @property
    def label(self) -> str:
        return f"{self.topic}->{self.node}"


def edges_of(topology: Topology) -> list[Edge]:
    """Returns all edges, in the order of the file."""
    sources: dict[str, list[Source]] = {}
    for _, each in topology.publishers:
        sources.setdefault(each.topic, []).append(Source(each.id, each.size_bytes, each.period_ns))
    found = []
    for node in topology.nodes:
        for taken in node.subscriptions:
            topic = taken.topic.removeprefix("/")
            found.append(Edge(receiver=taken.id, node=node.full_name, topic=topic, sources=tuple(sources[taken.topic])))
        for client in node.clients:
            source = Source(client.id, client.size_bytes, client.period_ns)
            service = client.service.removeprefix("/")
            found.append(
                Edge(receiver=client.id, node=node.full_name, topic=service, sources=(source,), is_service=True)
            )
    return found


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Messages of one source on an edge in one start; arrays have one element per message, in order of arrival.

    Attributes:
        gaps: messages that did not arrive.
    """

    edge: Edge
    source: Source
    numbers: Numbers
    sent_ns: Numbers
    received_ns: Numbers
    gaps: tuple[Gap, ...]

    @property
    def latency_ns(self) -> Numbers:
        return self.received_ns - self.sent_ns

    @property
    def lost(self) -> int:
        return sum(gap.count for gap in self.gaps)


def find_flows(edges: Sequence[Edge], recorded: Recorded) -> Iterator[Flow]:
    """Yields the messages of a start by edge and source.

    The number of sent messages is used only if all processes ended normally, because messages in transit at a stop
    are not lost.
    """
    for edge in edges:
        arrived = recorded.samples[recorded.samples[:, RECEIVER] == edge.receiver]
        for source in edge.sources:
            own = arrived[arrived[:, SENDER] == source.id]
            sent = None if recorded.failure else recorded.sent.get(source.id)
            yield _flow(edge, source, own, sent)


def _flow(edge: Edge, source: Source, own: Samples, sent: int | None) -> Flow:
    numbers = own[:, NUMBER]
    return Flow(
        edge=edge,
        source=source,
        numbers=numbers,
        sent_ns=own[:, SENT_NS],
        received_ns=own[:, RECEIVED_NS],
        gaps=tuple(find_gaps(numbers, sent)),
    )


@dataclass(frozen=True, kw_only=True)
class EdgeFigures:
    """An edge in figures.

    Attributes:
        late, too_late, lost: numbers of messages.
        mean_us, sd_us, min_us, max_us: latencies of messages that were not too late; ``None`` without any.
        p99_us: 99th percentile of all latencies.
        nominal_hz: rate of its first source.
        rate_hz: rate at which messages arrived.
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

    @property
    def timely(self) -> int:
        """Number of messages that were not too late."""
        return self.received - self.too_late


def figures_of(edge: Edge, flows: Sequence[Flow], limits: Limits) -> EdgeFigures:
    """Computes an edge's figures over all its sources and starts."""
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
        lost=sum(flow.lost for flow in flows),
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

    @property
    def late_percent(self) -> float | None:
        return _percent(self.late, self.received)

    @property
    def too_late_percent(self) -> float | None:
        return _percent(self.too_late, self.received)

    @property
    def lost_percent(self) -> float | None:
        return _percent(self.lost, self.received + self.lost)


def totals_of(figures: Sequence[EdgeFigures]) -> Totals:
    timely = sum(each.timely for each in figures)
    summed_us = sum(each.mean_us * each.timely for each in figures if each.mean_us is not None)
    return Totals(
        received=sum(each.received for each in figures),
        late=sum(each.late for each in figures),
        too_late=sum(each.too_late for each in figures),
        lost=sum(each.lost for each in figures),
        mean_us=summed_us / timely if timely else None,
    )


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
