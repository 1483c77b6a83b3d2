"""Splits kernel events at losses, where the state of threads is unknown."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pytest_ldos.trace.ctf.stats import ReadStats
from pytest_ldos.trace.execution.kernel_events import KernelEvents, Vocabulary

Span = tuple[int, int]


def split_at_losses(
    found: KernelEvents, stats: ReadStats, vocabulary: Vocabulary
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Number of losses on its host before each event, and the end of validity of the state it reports.

    Returns:
        For each event the number of losses before it, -1 for an event within a loss; and the
        time up to which its state may last: the begin of the next loss, or the last
        event of the host's kernel.
    """
    epochs = np.zeros(len(found), dtype=np.int32)
    hosts = range(len(vocabulary.hosts))
    until = np.array([found.time_ns.max(where=found.host == host, initial=0) for host in hosts], dtype=np.int64)
    limits = until[found.host]
    for host, spans in _losses(stats, vocabulary).items():
        rows = np.flatnonzero(found.host == host)
        times = found.time_ns[rows]
        begins, ends = (np.array(edges) for edges in zip(*spans, strict=True))
        after = np.searchsorted(ends, times, side="left")
        following = np.append(begins, until[host])[after]
        epochs[rows] = np.where((after < len(spans)) & (times > following), -1, after)
        limits[rows] = np.minimum(following, until[host])
    return epochs, limits


def _losses(stats: ReadStats, vocabulary: Vocabulary) -> dict[int, list[Span]]:
    """Disjoint spans of each host's losses, in order."""
    spans: dict[int, list[Span]] = {}
    for stream in stats.streams:
        host = vocabulary.of_trace[stream.trace]
        if host >= 0 and stream.gaps:
            spans.setdefault(host, []).extend((gap.from_ns, gap.to_ns) for gap in stream.gaps)
    return {host: _disjoint(sorted(each)) for host, each in spans.items()}


def _disjoint(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
