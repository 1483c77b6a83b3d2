"""Estimated arrival times of messages at their executors, and due times of timers.

No event reports an arrival, but the waits of the executor bound it. An executor waits until
something is ready, takes everything that is ready, and waits again. A message therefore arrived
after the end of the wait before the last one that preceded its take:

- A wait that blocked: nothing was ready at its start, so the message arrived at its end.
- A wait that returned at once: the message arrived earlier, while the executor was busy. The
  observed median latency of the same publisher and subscription estimates the time.
- No wait since the message was sent: estimated in the same way.
- Inside a process a message arrives when it is sent.

A timer is due on a grid of its period that begins with its creation. No event reports the grid's phase,
but a timer never runs early. The most punctual of a group of runs therefore gives the phase, up to the
executor's smallest lateness.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_at, ids_of, pick, times_at, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Clock
from pytest_ldos.trace.flow.graph import IN_PROCESS, FlowGraph, Runs
from pytest_ldos.trace.flow.transport import sent_ns

_AT_ONCE_NS: Final = 50_000  # shortest wait that counts as blocking


class Arrivals:
    """Estimated arrivals of all messages that have a transport link."""

    def __init__(self, flow: FlowGraph) -> None:
        model = flow.model
        self._arrived = mapped.filled(len(model.takes), np.int64, NEVER)  # never if no wait of its executor bounds it
        waits, ways = _Waits(model), np.empty(0, dtype=np.int64)
        for part in mapped.chunks(len(flow.transport)):
            ways = np.union1d(ways, _way(flow, part))
        way, latency_ns = mapped.Growing(np.int32), mapped.Growing(np.int64)
        for part in mapped.chunks(len(flow.transport)):
            shown = _shown(flow, part, waits)
            self._arrived[shown.take[shown.blocked]] = shown.end_ns[shown.blocked]
            way.add(np.searchsorted(ways, _way(flow, part))[shown.blocked])
            latency_ns.add((shown.end_ns - shown.sent_ns)[shown.blocked])
        medians = mapped.Grouped(way.finish(), latency_ns.finish(), len(ways)).medians()
        usual_ns = np.array([int(median or 0) for median in medians], dtype=np.int64)
        for part in mapped.chunks(len(flow.transport)):
            shown = _shown(flow, part, waits)
            # messages that were ready when their executor looked
            earliest = np.where(shown.waited, np.maximum(shown.sent_ns, shown.before_ns), shown.sent_ns)
            latest = np.maximum(np.where(shown.waited, shown.end_ns, shown.taken_ns), earliest)
            guess_ns = np.clip(shown.sent_ns + usual_ns[np.searchsorted(ways, _way(flow, part))], earliest, latest)
            self._arrived[shown.take[~shown.blocked]] = guess_ns[~shown.blocked]
            in_process = (mapped.rows_of(flow.transport, part)["way"] == IN_PROCESS).to_numpy()
            self._arrived[shown.take[in_process]] = shown.sent_ns[in_process]

    def of(self, take: int, sent_ns: int, taken_ns: int) -> int:
        """Arrival time of a message, between its publication and its take."""
        arrived = int(self._arrived[take])
        return taken_ns if arrived == NEVER or taken_ns <= sent_ns else min(max(arrived, sent_ns), taken_ns)


@dataclass(frozen=True)
class _Shown:
    """Messages, with the ends of the last two waits before their takes, `before_ns` and `end_ns`.

    The last wait ended after the message was sent (`waited`), and did not return at once (`blocked`).
    """

    take: IdArray
    sent_ns: TimesNs
    taken_ns: TimesNs
    before_ns: TimesNs
    end_ns: TimesNs
    waited: npt.NDArray[np.bool_]
    blocked: npt.NDArray[np.bool_]


def _shown(flow: FlowGraph, part: slice, waits: _Waits) -> _Shown:
    links = mapped.rows_of(flow.transport, part)
    take, publication = ids_of(links, "take"), ids_of(links, "publication")
    sent = sent_ns(flow.model, publication, take)
    taken_ns, thread = times_at(flow.model.takes, "time_ns", take), ids_at(flow.model.takes, "thread", take)
    before_ns, begin_ns, end_ns = waits.last(thread, taken_ns)
    silent = end_ns == NEVER
    begin_ns[silent], end_ns[silent] = waits.idle_since(thread[silent], taken_ns[silent]), taken_ns[silent]
    waited = end_ns > sent
    blocked = waited & ((sent >= begin_ns) | (end_ns - begin_ns > _AT_ONCE_NS))
    return _Shown(take, sent, taken_ns, before_ns, end_ns, waited, blocked)


def _way(flow: FlowGraph, part: slice) -> TimesNs:
    """Publisher and subscription of each message as one number."""
    links = mapped.rows_of(flow.transport, part)
    publisher = ids_at(flow.model.publications, "publisher", ids_of(links, "publication")).astype(np.int64)
    return (publisher << 32) + ids_at(flow.model.takes, "subscription", ids_of(links, "take"))


class _Waits:
    """Waits of executors that have an end, in the order of their ends."""

    def __init__(self, model: ExecutionModel) -> None:
        self._model = model
        self._executor_of = ids_of(model.threads, "executor")
        thread, begin_ns = ids_of(model.waits, "thread"), times_of(model.waits, "begin_ns")
        self._ends = ends = _Ends(model, model.waits, lambda rows: self._executor_of[thread[rows]])
        self._begin_ns = mapped.computed(len(ends.rows), np.int64, lambda part: begin_ns[ends.rows[part]])

    def last(self, thread: IdArray, taken_ns: TimesNs) -> tuple[TimesNs, TimesNs, TimesNs]:
        """Last two waits of the executor before each take: end of the first, begin and end of the second."""
        executor, end_ns, timeline = self._executor_of[thread], self._ends.end_ns, self._ends.timeline
        keys = self._ends.clock.keys(np.maximum(executor, 0), taken_ns)
        last = np.where(executor >= 0, timeline.last(keys), -1)
        before = np.where(executor >= 0, timeline.last(keys, skip=1), -1)
        return pick(end_ns, before, NEVER), pick(self._begin_ns, last, NEVER), pick(end_ns, last, NEVER)

    def idle_since(self, thread: IdArray, taken_ns: TimesNs) -> TimesNs:
        """End of the last callback on the thread of each take; executors without recorded waits wait from then on."""
        runs = self._runs
        return pick(runs.end_ns, runs.timeline.last(runs.clock.keys(thread, taken_ns)), NEVER)

    @cached_property
    def _runs(self) -> _Ends:
        runs = self._model.callback_runs
        thread = ids_of(runs, "thread")
        return _Ends(self._model, runs, lambda rows: thread[rows])


class _Ends:
    """Rows of a table that have an end, in the order of their ends, and their owners' timeline."""

    def __init__(self, model: ExecutionModel, table: pl.DataFrame, owner_of: Callable[[IdArray], IdArray]) -> None:
        ends_ns = times_of(table, "end_ns")
        self.rows = mapped.sorted_rows(ends_ns)[table["end_ns"].null_count() :]
        self.end_ns = mapped.computed(len(self.rows), np.int64, lambda part: ends_ns[self.rows[part]])
        owner = mapped.computed(len(self.rows), np.int32, lambda part: owner_of(self.rows[part]))
        self.clock = Clock.of(table["end_ns"], model.takes["time_ns"])
        self.timeline = self.clock.timeline(owner, self.end_ns)


_TOGETHER: Final = 20  # number of runs per group; over longer groups, clock drift matters
_MUCH: Final = 0.3  # fraction of the period above which lateness counts as large


def timer_due_ns(model: ExecutionModel, runs: Runs) -> TimesNs:
    """Due time of each callback run, `NEVER` for runs of no timer; shape ``(callback_runs,)``."""
    of_callback, callback = ids_of(model.callbacks, "timer"), ids_of(model.callback_runs, "callback")
    timer = mapped.computed(len(callback), np.int32, lambda part: pick(of_callback, callback[part], -1))
    by_timer = mapped.index_by(timer, len(model.timers))
    due_ns = mapped.filled(len(timer), np.int64, NEVER)
    for number, period_ns in model.timers.filter(pl.col("period_ns") > 0).select("id", "period_ns").iter_rows():
        before_ns: int | None = None
        rows = by_timer.rows[int(by_timer.first[number]) : int(by_timer.first[number + 1])]
        size = max(mapped.CHUNK_ROWS // _TOGETHER, 1) * _TOGETHER
        firsts = [first for first in range(0, len(rows), size) if first == 0 or len(rows) - first >= _TOGETHER]
        for part in (slice(*pair) for pair in pairwise([*firsts, len(rows)])):
            own, neighbours = rows[part], rows[max(part.start - 1, 0) : part.stop + 1]
            on_grid_ns = runs.start_ns[own] - _lateness(runs.start_ns[neighbours], part, period_ns)
            # `rcl` makes a timer due at the first grid point after its last run, and skips the points it missed.
            # If the thread was idle at that point, the timer was stopped.
            first_ns = on_grid_ns[0] if before_ns is None else before_ns + period_ns
            next_ns = np.concatenate(([first_ns], on_grid_ns[:-1] + period_ns))
            busy = runs.at(runs.thread[own], next_ns) >= 0
            due_ns[own] = np.where(busy & (next_ns < on_grid_ns), next_ns, on_grid_ns)
            before_ns = int(on_grid_ns[-1])
    return due_ns


def _lateness(with_neighbours_ns: TimesNs, part: slice, period_ns: int) -> TimesNs:
    """Time from each run's grid point to its start, less than a period.

    The most punctual run near the usual phase defines the grid. Runs that are certainly very late are excluded: a run
    late by nearly a period would look punctual. A block of runs has one more on each side if present.
    """
    since = 1 if part.start else 0
    own = slice(since, since + part.stop - part.start)
    since_ns = np.diff(with_neighbours_ns, prepend=with_neighbours_ns[0] - period_ns)
    until_ns = np.diff(with_neighbours_ns, append=with_neighbours_ns[-1] + period_ns)
    # too long after the previous run, or too soon before the next
    certainly_late = ((since_ns > (1 + _MUCH) * period_ns) | (until_ns < (1 - _MUCH) * period_ns))[own]
    start_ns = with_neighbours_ns[own]
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
