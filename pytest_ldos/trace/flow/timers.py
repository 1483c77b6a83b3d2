"""Due times of timers, and how late their callbacks ran.

A timer is due on a grid of its period that begins with its creation. No event reports the phase of
the grid, but a timer never runs early. The most punctual of a group of runs therefore
gives the phase, up to the smallest lateness that the executor reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_of, pick
from pytest_ldos.trace.execution.grouping import index_by
from pytest_ldos.trace.execution.mapped import computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.causal import Runs

_TOGETHER: Final = 20
"""Number of runs compared with each other; clocks drift apart over more."""

_MUCH: Final = 0.3
"""Lateness that counts as large, as a fraction of the period."""


def timer_due_ns(model: ExecutionModel, runs: Runs) -> TimesNs:
    """Due time of each callback run, `NEVER` for runs of no timer; shape ``(callback_runs,)``."""
    of_callback, callback = ids_of(model.callbacks, "timer"), ids_of(model.callback_runs, "callback")
    timer = computed(len(callback), np.int32, lambda part: pick(of_callback, callback[part], -1))
    by_timer = index_by(timer, len(model.timers))
    due_ns = filled(len(timer), np.int64, NEVER)
    for number, period_ns in model.timers.filter(pl.col("period_ns") > 0).select("id", "period_ns").iter_rows():
        before_ns: int | None = None
        rows = by_timer.rows[int(by_timer.first[number]) : int(by_timer.first[number + 1])]
        for part in _blocks(len(rows)):
            own = rows[part]
            on_grid_ns = runs.start_ns[own] - _lateness(runs.start_ns[_with_neighbours(rows, part)], part, period_ns)
            due_ns[own] = _held_up(runs, own, on_grid_ns, before_ns, period_ns)
            before_ns = int(on_grid_ns[-1])
    return due_ns


def _blocks(runs: int) -> Iterator[slice]:
    """Parts of a timer's runs, each of whole groups that are compared with each other."""
    size = max(mapped.CHUNK_ROWS // _TOGETHER, 1) * _TOGETHER
    firsts = [first for first in range(0, runs, size) if first == 0 or runs - first >= _TOGETHER]
    yield from (slice(*pair) for pair in pairwise([*firsts, runs]))


def _with_neighbours(rows: IdArray, part: slice) -> IdArray:
    """Rows of a block, and one more on each side where there is one."""
    return rows[max(part.start - 1, 0) : part.stop + 1]


def _held_up(runs: Runs, rows: IdArray, on_grid_ns: TimesNs, before_ns: int | None, period_ns: int) -> TimesNs:
    """Due times of a timer's runs, given the last grid place before each run, and that of the run before the first.

    `rcl` makes a timer due at the first grid place after its last run, however late it then runs, and
    skips the places it missed. A thread that was idle at that place shows that the timer was stopped.
    """
    first_ns = on_grid_ns[0] if before_ns is None else before_ns + period_ns
    next_ns = np.concatenate(([first_ns], on_grid_ns[:-1] + period_ns))
    busy = runs.at(runs.thread[rows], next_ns) >= 0
    return np.where(busy & (next_ns < on_grid_ns), next_ns, on_grid_ns)


def _lateness(with_neighbours_ns: TimesNs, part: slice, period_ns: int) -> TimesNs:
    """Time from each run's grid place to its start, less than a period.

    The grid is that of the most punctual run near the usual phase. Runs that are certainly much
    late do not count; otherwise a run late by nearly a period would pass for a punctual one.

    Args:
        with_neighbours_ns: starts of a block of runs, see `_with_neighbours`.
    """
    since = 1 if part.start else 0
    own = slice(since, since + part.stop - part.start)
    certainly_late, start_ns = _certainly_late(with_neighbours_ns, period_ns)[own], with_neighbours_ns[own]
    count = min(len(start_ns), _TOGETHER)
    first = np.minimum(np.arange(0, len(start_ns), count), len(start_ns) - count)
    rows = first[:, np.newaxis] + np.arange(count)
    counts = ~certainly_late[rows]
    counts[~counts.any(axis=1)] = True
    place_ns = start_ns[rows] % period_ns
    usual = np.angle((np.exp(2j * np.pi * place_ns / period_ns) * counts).sum(axis=1)) / (2 * np.pi)
    quarter = period_ns // 4
    from_usual_ns = place_ns - np.rint(usual * period_ns).astype(np.int64)[:, np.newaxis]
    from_usual_ns = (from_usual_ns + quarter) % period_ns - quarter
    punctual_ns = np.where(counts, from_usual_ns, period_ns).min(axis=1)
    late_ns = np.empty(len(start_ns), dtype=np.int64)
    late_ns[rows] = (from_usual_ns - punctual_ns[:, np.newaxis]) % period_ns
    return late_ns


def _certainly_late(start_ns: TimesNs, period_ns: int) -> npt.NDArray[np.bool_]:
    """True for runs late by `_MUCH` for certain: too long after the previous run, or too soon before the next."""
    since_ns = np.diff(start_ns, prepend=start_ns[0] - period_ns)
    until_ns = np.diff(start_ns, append=start_ns[-1] + period_ns)
    late: npt.NDArray[np.bool_] = (since_ns > (1 + _MUCH) * period_ns) | (until_ns < (1 - _MUCH) * period_ns)
    return late
