"""Splits a span of a process's time: it ran, waited for a CPU that its own side or strangers had, or was blocked.

A process runs while any of its threads does, so helper threads that emit no events count as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.scheduling import BLOCKED, RUNNABLE, RUNNING

Spans = npt.NDArray[np.int64]
"""Begin and end of each span; shape ``(n, 2)``."""

_NONE: Final = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class ProcessSplit:
    """Parts of a span, nanoseconds; their sum is the span.

    Attributes:
        own: waited for a CPU that the process's own side had.
        strangers: waited for a CPU that others had, and none of its threads waited for its own side.
        unknown: not covered by kernel events, or waited for nobody that is known.
    """

    ran: int
    own: int
    strangers: int
    blocked: int
    unknown: int

    @property
    def whole(self) -> int:
        """Length of the span."""
        return self.ran + self.own + self.strangers + self.blocked + self.unknown


def split_process(
    states: pl.DataFrame,
    owners: Mapping[int, int],
    pid: int,
    *,
    begin_ns: int,
    end_ns: int,
    own_side: Collection[int],
) -> ProcessSplit:
    """Splits the time of a process between two moments.

    Args:
        states: result of `build_thread_states`, of one host.
        owners: pid of each thread, by tid.
        own_side: pids that are no strangers.
    """
    near = states.filter((pl.col("begin_ns") < end_ns) & (pl.col("end_ns") > begin_ns))
    tids = [tid for tid, owner in owners.items() if owner == pid]
    mine = near.filter(pl.col("tid").is_in(tids))
    waits = list(_rivals(mine.filter(pl.col("state") == RUNNABLE), near.filter(pl.col("state") == RUNNING)))
    by_side = {
        is_own: [span for tid, span in waits if (owners.get(tid) in own_side or owners.get(tid) == pid) is is_own]
        for is_own in (True, False)
    }
    layers = [
        _spans(mine.filter(pl.col("state") == RUNNING)),
        _stacked(by_side[True]),
        _stacked(by_side[False]),
        _spans(mine.filter(pl.col("state") == BLOCKED)),
    ]
    waiting = _spans(mine.filter(pl.col("state") == RUNNABLE))
    ran, own, strangers, blocked = _lengths(layers, waiting, begin_ns, end_ns)
    return ProcessSplit(ran, own, strangers, blocked, end_ns - begin_ns - ran - own - strangers - blocked)


def _rivals(waits: pl.DataFrame, runs: pl.DataFrame) -> Iterator[tuple[int, Spans]]:
    """Threads that ran on the CPU for which a thread waited, each with the time that both took."""
    for begin_ns, end_ns, cpu in waits.select("begin_ns", "end_ns", "cpu").iter_rows():
        held = runs.filter((pl.col("cpu") == cpu) & (pl.col("begin_ns") < end_ns) & (pl.col("end_ns") > begin_ns))
        for tid, since_ns, until_ns in held.select("tid", "begin_ns", "end_ns").iter_rows():
            yield tid, np.array([[max(begin_ns, since_ns), min(end_ns, until_ns)]], dtype=np.int64)


def _lengths(layers: list[Spans], waiting: Spans, begin_ns: int, end_ns: int) -> list[int]:
    """Length of each layer where none before it lies; of the last, also where nothing waits."""
    edges = np.unique(np.clip(np.concatenate([[[begin_ns, end_ns]], *layers, waiting]), begin_ns, end_ns))
    widths, left = np.diff(edges), np.ones(max(len(edges) - 1, 0), dtype=np.bool_)
    found = []
    for layer in layers:
        if layer is layers[-1]:
            left = left & ~_covered(waiting, edges)
        here = left & _covered(layer, edges)
        found.append(int(widths[here].sum()))
        left = left & ~here
    return found


def _covered(spans: Spans, edges: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """True for each piece between neighbouring edges that a span covers."""
    changes = np.zeros(len(edges), dtype=np.int64)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 0], edges[0], edges[-1])), 1)
    np.add.at(changes, np.searchsorted(edges, np.clip(spans[:, 1], edges[0], edges[-1])), -1)
    covered: npt.NDArray[np.bool_] = np.cumsum(changes)[:-1] > 0
    return covered


def _spans(rows: pl.DataFrame) -> Spans:
    return rows.select("begin_ns", "end_ns").to_numpy().astype(np.int64).reshape(-1, 2)


def _stacked(parts: list[Spans]) -> Spans:
    return np.concatenate(parts) if parts else _NONE
