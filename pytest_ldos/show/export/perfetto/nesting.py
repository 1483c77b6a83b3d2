"""Nesting runs of callbacks, even if the trace lost their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.columns import NEVER, TimesNs, ids_of, times_of


def nested_ends(runs: pl.DataFrame, *, last_ns: int) -> TimesNs:
    """An end for each callback run, such that runs of one thread are nested or disjoint.

    A run without an end in the trace ends with the enclosing run, before the next run beside it, or at
    `last_ns`, whichever comes first. Known ends are kept unless they contradict each other.

    Args:
        runs: columns of `callback_runs`, in the order of their starts.
    """
    start, end = times_of(runs, "start_ns"), times_of(runs, "end_ns")
    end = np.maximum(np.where(end == NEVER, last_ns, end), start)
    parent = ids_of(runs, "parent").astype(np.int64)
    thread = ids_of(runs, "thread")
    if not runs["end_ns"].null_count() and np.all(parent < 0):
        return end
    for _ in range(len(runs)):
        parent = _enclosing(parent, start, end)
        closer = np.minimum(end, np.where(parent >= 0, end[parent], end))
        closer = np.maximum(np.minimum(closer, _next_beside(thread, parent, start)), start)
        if np.array_equal(closer, end):
            break
        end = closer
    return end


def _enclosing(parent: npt.NDArray[np.int64], start: TimesNs, end: TimesNs) -> npt.NDArray[np.int64]:
    """For each run, the innermost enclosing run that has not ended before it starts."""
    while True:
        over = (parent >= 0) & (end[parent] < start)
        if not over.any():
            return parent
        parent = np.where(over, parent[parent], parent)


def _next_beside(thread: npt.NDArray[Any], parent: npt.NDArray[np.int64], start: TimesNs) -> TimesNs:
    """Start of the next run of the same thread within the same enclosing run."""
    order = np.lexsort((np.arange(len(start)), parent, thread))
    following = np.full(len(start), np.iinfo(np.int64).max)
    same = (thread[order][1:] == thread[order][:-1]) & (parent[order][1:] == parent[order][:-1])
    following[order[:-1][same]] = start[order[1:][same]]
    return following
