"""Spans in which a kernel's events were lost, so that the state of threads is unknown."""

from __future__ import annotations

from pytest_ldos.trace.ctf.stats import ReadStats
from pytest_ldos.trace.execution.kernel_events import Vocabulary

Span = tuple[int, int]


def losses_of_hosts(stats: ReadStats, vocabulary: Vocabulary) -> list[list[Span]]:
    """Disjoint spans of each host's losses, in order; by the host's code."""
    spans: list[list[Span]] = [[] for _ in vocabulary.hosts]
    for stream in stats.streams:
        host = vocabulary.of_trace[stream.trace]
        if host >= 0:
            spans[host].extend((gap.from_ns, gap.to_ns) for gap in stream.gaps)
    return [_disjoint(sorted(each)) for each in spans]


def _disjoint(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
