"""Analysis of all starts of a topology: rounds, events, and resource usage over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Missing, Value
from pytest_ldos.base.text import NS_PER_MS, NS_PER_US, listed
from pytest_ldos.instruments.study import Round
from pytest_ldos.instruments.topology.edges import (
    EdgeFigures,
    Flow,
    Limits,
    Recorded,
    ResourceSample,
    Totals,
    edges_of,
    figures_of,
    find_flows,
    totals_of,
)
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.robot.topology.model import Topology

MEMORY: Final = ("arena_kb", "in_use_kb", "mmap_kb", "rss_kb", "vsz_kb")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Usage of all processes at one time; sizes in KiB are sums, which count shared memory once per process."""

    start: int
    time_ms: int  # time since the first start began to send
    cpu_percent: float  # percentage of all cores, since this start began to send
    cpu_now_percent: float | None  # percentage since the previous moment; ``None`` for the first
    arena_kb: int
    in_use_kb: int
    mmap_kb: int
    rss_kb: int
    vsz_kb: int


def find_usage(recorded: Recorded, *, start: int, origin_ns: int, cores: int) -> list[Usage]:
    """Returns the usage at the times of all processes' samples; CPU time counts from the first."""
    if any(not samples for samples in recorded.resources.values()):
        return []
    moments = list(zip(*recorded.resources.values(), strict=False))
    return [
        Usage(
            start=start,
            time_ms=(max(each.mono_ns for each in moment) - origin_ns) // NS_PER_MS,
            cpu_percent=_cpu_percent(moments[0], moment, cores),
            cpu_now_percent=_cpu_percent(before, moment, cores) if before else None,
            **{name: sum(getattr(each, name) for each in moment) for name in MEMORY},
        )
        for before, moment in zip([None, *moments], moments, strict=False)
    ]


def _cpu_percent(before: Sequence[ResourceSample], now: Sequence[ResourceSample], cores: int) -> float:
    """Uses each process's own sample times, which differ."""
    shares = ((b.cpu_ns - a.cpu_ns) / max(1, b.mono_ns - a.mono_ns) for a, b in zip(before, now, strict=True))
    return 100 * sum(shares) / cores


def cpu_percent_between(
    resources: Mapping[str, Sequence[ResourceSample]], begin_ns: int, end_ns: int, cores: int
) -> float | None:
    """Percentage of all cores, CPU time interpolated linearly between samples; ``None`` without a sample at the end."""
    if not resources or any(len(samples) < 2 or samples[-1].mono_ns < end_ns for samples in resources.values()):
        return None
    used_ns = 0.0
    for samples in resources.values():
        times, used = [each.mono_ns for each in samples], [each.cpu_ns for each in samples]
        used_ns += float(np.interp(end_ns, times, used) - np.interp(begin_ns, times, used))
    return 100 * used_ns / (end_ns - begin_ns) / cores


def rss_between(resources: Mapping[str, Sequence[ResourceSample]], begin_ns: int, end_ns: int) -> float | None:
    """Resident memory of all processes in the middle of an interval, MB; ``None`` if a process never reported it."""
    if not resources or any(not samples for samples in resources.values()):
        return None
    middle = (begin_ns + end_ns) / 2
    kib = sum(
        float(np.interp(middle, [each.mono_ns for each in samples], [each.rss_kb for each in samples]))
        for samples in resources.values()
    )
    return kib * 1024 / 1e6


MEAN: Final = Metric(name="mean", title="Latency of all edges, mean", unit="µs", better=Better.LOWER)
P99: Final = Metric(name="p99", title="Latency of all edges, 99th percentile", unit="µs", better=Better.LOWER)
LATE: Final = Metric(name="late", title="Messages late or too late", unit="%", better=Better.LOWER)
LOST: Final = Metric(name="lost", title="Messages lost", unit="%", better=Better.LOWER)
CPU: Final = Metric(name="cpu", title="CPU time of all processes, of all cores", unit="%", better=Better.LOWER)
RSS: Final = Metric(name="rss", title="Resident memory of all processes", unit="MB", better=Better.LOWER)

QUANTITIES: Final = (MEAN, P99, LATE, LOST, CPU, RSS)

_NOTHING: Final = Missing("no message arrived")
_NO_LOOK: Final = Missing("a process did not say what it used")


def find_rounds(
    recorded: Recorded, flows: Sequence[Flow], limits: Limits, *, case: str, block: int, rounds: int, cores: int
) -> Iterator[Round]:
    """Divides the time of sending into equal rounds; rounds after a process's death have failed."""
    edges = np.linspace(recorded.start_ns, recorded.end_ns, rounds + 1).astype(np.int64)
    tallies = [_Tally(flow, limits, edges) for flow in flows]
    for number in range(rounds):
        begin_ns, end_ns = int(edges[number]), int(edges[number + 1])
        if recorded.failure and (not recorded.start_ns or end_ns > recorded.ended_ns):
            yield Round(case=case, block=block, failure=recorded.failure)
        else:
            cpu = cpu_percent_between(recorded.resources, begin_ns, end_ns, cores)
            rss = rss_between(recorded.resources, begin_ns, end_ns)
            values = {
                **_of_messages(tallies, number),
                CPU.name: _NO_LOOK if cpu is None else cpu,
                RSS.name: _NO_LOOK if rss is None else rss,
            }
            details = {"received": float(sum(len(each.latencies(number)) for each in tallies))}
            yield Round(case=case, block=block, values=values, details=details)


class _Tally:
    """Messages of a flow by round: received ones by time of sending, lost ones by the message that revealed the gap."""

    def __init__(self, flow: Flow, limits: Limits, edges: np.ndarray) -> None:
        rounds = len(edges) - 1
        self._latency_ns = flow.latency_ns
        self._round = np.clip(np.searchsorted(edges, flow.sent_ns, side="right") - 1, 0, rounds - 1)
        period_ns = flow.source.period_ns
        is_late = limits.late(flow.latency_ns, period_ns) | limits.too_late(flow.latency_ns, period_ns)
        self.late = np.bincount(self._round[is_late], minlength=rounds)
        self.lost = np.zeros(rounds, dtype=np.int64)
        for gap in flow.gaps:
            self.lost[rounds - 1 if gap.next_place is None else self._round[gap.next_place]] += gap.count

    def latencies(self, number: int) -> np.ndarray:
        return np.asarray(self._latency_ns[self._round == number])


def _of_messages(tallies: Sequence[_Tally], number: int) -> dict[str, Value]:
    latencies = np.concatenate([np.empty(0), *(each.latencies(number) for each in tallies)])
    lost = sum(int(each.lost[number]) for each in tallies)
    sent = len(latencies) + lost
    if not len(latencies):
        found: dict[str, Value] = dict.fromkeys((MEAN.name, P99.name, LATE.name), _NOTHING)
    else:
        found = {
            MEAN.name: float(latencies.mean()) / 1e3,
            P99.name: float(np.percentile(latencies, 99)) / 1e3,
            LATE.name: 100 * sum(int(each.late[number]) for each in tallies) / len(latencies),
        }
    return {**found, LOST.name: 100 * lost / sent if sent else _NOTHING}


SYSTEM: Final = "SYSTEM"


class Code(IntEnum):
    """Codes of the seed's files; `FAILURE` is an addition."""

    DISCOVERY = 0
    LATE = 1
    TOO_LATE = 2
    LOST = 3
    FAILURE = 4


@dataclass(frozen=True, order=True)
class Event:
    """A line of the event log, ms after the first start began to send; its caller is ``topic->node`` or `SYSTEM`."""

    time_ms: int
    caller: str
    code: Code
    description: str


def find_events(recorded: Recorded, flows: Sequence[Flow], limits: Limits, *, origin_ns: int) -> list[Event]:
    """Returns all events of a start, ordered by time; discovery is at the first message."""
    found = [event for flow in flows for event in _of_flow(flow, limits, recorded, origin_ns)]
    if recorded.start_ns:
        took_ms = (max(recorded.matched_ns.values()) - recorded.launched_ns) / NS_PER_MS
        words = f"[discovery] all ends have met their peers, {took_ms:.0f}ms after the processes were started"
        found.append(Event(_ms(recorded.start_ns, origin_ns), SYSTEM, Code.DISCOVERY, words))
    if recorded.failure:
        ended_ms = _ms(recorded.ended_ns, origin_ns) if recorded.start_ns else 0
        found.append(Event(ended_ms, SYSTEM, Code.FAILURE, " ".join(recorded.failure.split())))
    return sorted(found)


def _of_flow(flow: Flow, limits: Limits, recorded: Recorded, origin_ns: int) -> Iterator[Event]:
    caller, period_ns = f"{flow.edge.topic}->{flow.edge.node}", flow.source.period_ns
    latency_ns = flow.latency_ns
    for code, which, limit_ns, words in (
        (Code.LATE, limits.late(latency_ns, period_ns), limits.late_ns(period_ns), "late"),
        (Code.TOO_LATE, limits.too_late(latency_ns, period_ns), limits.too_late_ns(period_ns), "too late"),
    ):
        for place in np.flatnonzero(which):
            measured = f"{latency_ns[place] // NS_PER_US}us > {limit_ns / NS_PER_US:.0f}us"
            text = f"msg {flow.numbers[place]} {words}. {measured}"
            yield Event(_ms(int(flow.received_ns[place]), origin_ns), caller, code, text)
    for gap in flow.gaps:
        at_ns = recorded.end_ns if gap.next_place is None else int(flow.received_ns[gap.next_place])
        text = f"msg {gap.first} lost." if gap.count == 1 else f"msgs {gap.first} to {gap.last} lost."
        yield Event(_ms(at_ns, origin_ns), caller, Code.LOST, text)


def _ms(moment_ns: int, origin_ns: int) -> int:
    return (moment_ns - origin_ns) // NS_PER_MS


_KEPT: Final = 0.95  # smallest accepted share of sent messages
_NAMED: Final = 3


def find_shortfalls(topology: Topology, starts: Sequence[Recorded]) -> Iterator[str]:
    """Yields a note if senders sent less than declared; ignores failed starts."""
    whole = [each for each in starts if not each.failure]
    senders = [
        *((each.id, each.period_ns, f"{node.full_name} on {each.topic}") for node, each in topology.publishers),
        *((each.id, each.period_ns, f"{node.full_name} to {each.service}") for node, each in topology.clients),
    ]
    short = []
    for number, period_ns, name in senders:
        # The first message is due one period after the start.
        due = sum(max(0, (each.end_ns - each.start_ns) // period_ns - 1) for each in whole)
        sent = sum(each.sent.get(number, 0) for each in whole)
        if sent < _KEPT * due:
            short.append((sent / due, f"{name} sent {sent} of {due}"))
    if short:
        yield f"messages were not sent as often as declared: {listed([words for _, words in sorted(short)], _NAMED)}"


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The reported results of a topology; the edges are in the order of the file, failures without repetition."""

    edges: tuple[EdgeFigures, ...]
    totals: Totals
    usage: tuple[Usage, ...]
    events: tuple[Event, ...]
    rounds: tuple[Round, ...]
    failures: tuple[str, ...]


def analyse(
    topology: Topology, starts: Sequence[Recorded], limits: Limits, *, case: str, rounds: int, cores: int
) -> Analysis:
    """Computes the figures of all starts; times count from the first message of the first start."""
    edges = edges_of(topology)
    origin_ns = min((each.start_ns for each in starts if each.start_ns), default=0)
    flows = [list(find_flows(edges, recorded)) for recorded in starts]
    figures = tuple(
        figures_of(edge, [flow for of_start in flows for flow in of_start if flow.edge is edge], limits)
        for edge in edges
    )
    found: list[Round] = []
    usage: list[Usage] = []
    events: list[Event] = []
    for block, (recorded, own) in enumerate(zip(starts, flows, strict=True)):
        found += find_rounds(recorded, own, limits, case=case, block=block, rounds=rounds, cores=cores)
        usage += find_usage(recorded, start=block, origin_ns=origin_ns, cores=cores)
        events += find_events(recorded, own, limits, origin_ns=origin_ns)
    return Analysis(
        edges=figures,
        totals=totals_of(figures),
        usage=tuple(usage),
        events=tuple(events),
        rounds=tuple(found),
        failures=tuple(dict.fromkeys(each.failure for each in starts if each.failure)),
    )
