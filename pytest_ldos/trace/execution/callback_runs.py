"""Runs of callbacks: each `callback_start` paired with its `callback_end`.

Tracepoints: ``callback_start``, ``callback_end``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, frame_of, pick, times_of
from pytest_ldos.trace.execution.endpoints import Kind
from pytest_ldos.trace.execution.mapped import chunks
from pytest_ldos.trace.execution.observed import Observed
from pytest_ldos.trace.execution.schema import INSTANCES


def build_callback_runs(observed: Observed, callbacks: Kind, *, lossy: bool) -> tuple[pl.DataFrame, IdArray]:
    """The table, and the rows that a later end may still belong to.

    Runs on one thread may nest (a callback that spins). Where events were lost, a callback
    that starts while it already runs on the thread is taken as proof that an end was lost.
    """
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    end, parent, running = _pair(observed, lossy=lossy)
    columns = {
        "start_ns": starts.times_ns,
        "end_ns": pick(ends.times_ns, end, NEVER),
        "thread": starts.thread,
        "callback": callbacks.registry.resolve(starts.process, starts.handles("callback"), starts.times_ns),
        "intra": starts["is_intra_process"] != 0,
        "parent": parent,
    }
    return frame_of(INSTANCES["callback_runs"], columns), running


def count_unpaired(runs: pl.DataFrame, ends: int, gaps: Sequence[Gap]) -> dict[str, int]:
    """Numbers of starts and ends without a counterpart, or with a possibly wrong one.

    Args:
        ends: number of `callback_end`.
    """
    start_ns, end_ns = times_of(runs, "start_ns"), times_of(runs, "end_ns")
    paired = len(runs) - runs["end_ns"].null_count()
    touched = sum(_count_touched(start_ns[part], end_ns[part], gaps) for part in chunks(len(runs)))
    return {
        "callback starts without an end": len(runs) - paired,
        "callback ends without a start": ends - paired,
        "callback runs during which events were lost": touched,
    }


def _count_touched(start_ns: TimesNs, end_ns: TimesNs, gaps: Sequence[Gap]) -> int:
    """Number of runs that may be two, with the end of the first and the start of the second lost."""
    touched = np.zeros(len(start_ns), dtype=bool)
    for gap in gaps:
        touched |= (start_ns <= gap.to_ns) & (end_ns >= gap.from_ns)
    return int(np.count_nonzero(touched))


def _pair(observed: Observed, *, lossy: bool) -> tuple[IdArray, IdArray, IdArray]:
    """For each start, its end and the start that encloses it; and the starts that still run at the end."""
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    parent = np.full(len(starts), -1, dtype=np.int32)
    if len(starts) == 0:
        return parent.copy(), parent, parent.copy()
    timeline = observed.timeline(Ros2.CALLBACK_START)
    end = observed.timeline(Ros2.CALLBACK_END).next_for(timeline)
    following = timeline.next_for(timeline, after=True)
    until = np.where(following >= 0, starts.times_ns[following], np.iinfo(np.int64).max)
    plain = (end >= 0) & (pick(ends.times_ns, end, NEVER) <= until)
    plain &= pick(ends.handles("callback"), end, 0) == starts.handles("callback")
    end = np.where(plain, end, -1).astype(np.int32)
    running = [] if plain.all() else _pair_nested(observed, end, parent, lossy=lossy)
    return end, parent, np.array(sorted(running), dtype=np.int32)


def _pair_nested(observed: Observed, end: IdArray, parent: IdArray, *, lossy: bool) -> list[int]:
    """Pairs the remaining starts, event by event, on the threads that have them; returns those that still run."""
    running: list[int] = []
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    for thread in np.unique(starts.thread[end < 0]).tolist():
        of_start = np.flatnonzero(starts.thread == thread)
        of_end = np.flatnonzero(ends.thread == thread)
        times = np.concatenate((starts.times_ns[of_start], ends.times_ns[of_end]))
        is_end = np.repeat([False, True], [len(of_start), len(of_end)])
        rows = np.concatenate((of_start, of_end))
        handles = np.concatenate((starts.handles("callback")[of_start], ends.handles("callback")[of_end]))
        order = np.argsort(times, kind="stable")
        events = zip(is_end[order].tolist(), rows[order].tolist(), handles[order].tolist(), strict=True)
        running += _walk(events, end, parent, lossy=lossy)
    return running


def _walk(events: Iterable[tuple[bool, int, int]], end: IdArray, parent: IdArray, *, lossy: bool) -> list[int]:
    """Follows one thread, and returns what still runs.

    `running` holds (start row, callback) from the outermost to the innermost.
    """
    running: list[tuple[int, int]] = []
    for is_end, row, callback in events:
        if not is_end:
            if lossy:
                running = [each for each in running if each[1] != callback]
            parent[row] = running[-1][0] if running else -1
            running.append((row, callback))
            continue
        depth = next((at for at in reversed(range(len(running))) if running[at][1] == callback), None)
        if depth is not None:
            end[running[depth][0]] = row
            del running[depth:]
    return [row for row, _ in running]
