"""Rounds of equal length within a start: the numbers that are gated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Missing, Value
from pytest_ldos.instruments.study import Round
from pytest_ldos.instruments.topology.edges import Flow
from pytest_ldos.instruments.topology.lateness import Limits
from pytest_ldos.instruments.topology.recorded import Recorded
from pytest_ldos.instruments.topology.resources import cpu_percent_between, rss_between
from pytest_ldos.measure.metrics.model import Metric

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
    """Divides the time of sending into equal rounds; rounds that a process did not survive have failed."""
    edges = _edges_of_time(recorded, rounds)
    tallies = [_Tally(flow, limits, edges) for flow in flows]
    for number in range(rounds):
        begin_ns, end_ns = int(edges[number]), int(edges[number + 1])
        if recorded.failure and (not recorded.start_ns or end_ns > recorded.ended_ns):
            yield Round(case=case, block=block, failure=recorded.failure)
        else:
            values = {
                **_of_messages(tallies, number),
                CPU.name: _or_missing(cpu_percent_between(recorded.resources, begin_ns, end_ns, cores)),
                RSS.name: _or_missing(rss_between(recorded.resources, begin_ns, end_ns)),
            }
            details = {"received": float(sum(len(each.latencies(number)) for each in tallies))}
            yield Round(case=case, block=block, values=values, details=details)


def _edges_of_time(recorded: Recorded, rounds: int) -> np.ndarray:
    """Returns `rounds` + 1 moments; all zero if nothing was ever sent."""
    return np.linspace(recorded.start_ns, recorded.end_ns, rounds + 1).astype(np.int64)


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


def _or_missing(value: float | None) -> Value:
    return _NO_LOOK if value is None else value
