"""When a timer was due, and how late its callback ran.

A timer is due on a grid of its period that begins with its creation. Where on the clock
that grid lies no event says; but a timer never runs early, so the earliest of its neighbours
gives the grid to within the best that the executor reached.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.execution.columns import NEVER, TimesNs, ids_of, pick, times_of
from pytest_ldos.execution.model import ExecutionModel

_NEIGHBOURS: Final = 10
"""Runs on each side that a run is compared with: clocks drift apart over more."""


def timer_due_ns(model: ExecutionModel) -> TimesNs:
    """When each callback run was due, `NEVER` for those of no timer; shape ``(callback_runs,)``."""
    timer = pick(ids_of(model.callbacks, "timer"), ids_of(model.callback_runs, "callback"), -1)
    start_ns = times_of(model.callback_runs, "start_ns")
    due_ns = np.full(len(start_ns), NEVER, dtype=np.int64)
    for number, period_ns in model.timers.filter(pl.col("period_ns") > 0).select("id", "period_ns").iter_rows():
        rows = np.flatnonzero(timer == number)
        if len(rows):
            due_ns[rows] = start_ns[rows] - _lateness(start_ns[rows], period_ns)
    return due_ns


def _lateness(start_ns: TimesNs, period_ns: int) -> TimesNs:
    """How much later than the earliest of its neighbours each run is on the grid."""
    half = period_ns // 2
    offset = (start_ns - start_ns[len(start_ns) // 2] + half) % period_ns - half
    padded = np.pad(offset, _NEIGHBOURS, constant_values=np.iinfo(np.int64).max)
    earliest = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1).min(axis=1)
    late: TimesNs = offset - earliest
    return late
