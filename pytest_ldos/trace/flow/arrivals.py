"""Estimated arrival times of messages at their executors.

No event reports an arrival, but the waits of the executor bound it. An executor waits until
something is ready, takes everything that is ready, and waits again. A message therefore arrived
after the end of the wait before the last one that preceded its take:

- A wait that blocked began with nothing ready: the message arrived at its end.
- A wait that returned at once found the message there. It arrived while the executor was busy; the
  median latency of the same publisher and subscription, where it could be observed, estimates when.
- A message taken without any wait since it was sent is estimated in the same way.
- Inside a process a message arrives when it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.trace.execution.columns import (
    NEVER,
    IdArray,
    TimesNs,
    ids_at,
    ids_of,
    pick,
    rows_of,
    times_at,
    times_of,
)
from pytest_ldos.trace.execution.grouping import Grouped, sorted_rows
from pytest_ldos.trace.execution.mapped import Growing, chunks, computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.timeline import Clock, Timeline, edges
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.schema import IN_PROCESS
from pytest_ldos.trace.flow.transport import sent_ns

_AT_ONCE_NS: Final = 50_000
"""A shorter wait did not block."""


class Arrivals:
    """Estimated arrivals of all messages that have a transport link."""

    def __init__(self, flow: FlowGraph) -> None:
        self._arrived = _arrivals(flow)

    def of(self, take: int, sent_ns: int, taken_ns: int) -> int:
        """Arrival time of a message, between its publication and its take."""
        arrived = int(self._arrived[take])
        return taken_ns if arrived == NEVER or taken_ns <= sent_ns else min(max(arrived, sent_ns), taken_ns)


def _arrivals(flow: FlowGraph) -> TimesNs:
    """Arrival time of each take; `NEVER` where no wait of its executor shows anything."""
    model = flow.model
    arrived = filled(len(model.takes), np.int64, NEVER)
    waits, ways = _Waits(model), _ways(flow)
    way, latency_ns = Growing(np.int32), Growing(np.int64)
    for part in chunks(len(flow.transport)):
        shown = _shown(flow, part, waits)
        arrived[shown.take[shown.blocked]] = shown.end_ns[shown.blocked]
        way.add(np.searchsorted(ways, _way(flow, shown))[shown.blocked])
        latency_ns.add((shown.end_ns - shown.sent_ns)[shown.blocked])
    usual_ns = _usual(way.finish(), latency_ns.finish(), len(ways))
    for part in chunks(len(flow.transport)):
        shown = _shown(flow, part, waits)
        guess_ns = _guess(shown, usual_ns[np.searchsorted(ways, _way(flow, shown))])
        arrived[shown.take[~shown.blocked]] = guess_ns[~shown.blocked]
        in_process = (rows_of(flow.transport, part)["way"] == IN_PROCESS).to_numpy()
        arrived[shown.take[in_process]] = shown.sent_ns[in_process]
    return arrived


@dataclass(frozen=True)
class _Shown:
    """Messages, and what the waits before their takes show.

    Attributes:
        before_ns: end of the wait before the last one.
        end_ns: end of the last wait.
        waited: true if the last wait ended after the message was sent.
        blocked: true if it did not return at once.
    """

    take: IdArray
    publication: IdArray
    sent_ns: TimesNs
    taken_ns: TimesNs
    before_ns: TimesNs
    end_ns: TimesNs
    waited: npt.NDArray[np.bool_]
    blocked: npt.NDArray[np.bool_]


def _shown(flow: FlowGraph, part: slice, waits: _Waits) -> _Shown:
    links = rows_of(flow.transport, part)
    take, publication = ids_of(links, "take"), ids_of(links, "publication")
    sent = sent_ns(flow.model, publication, take)
    taken_ns, thread = times_at(flow.model.takes, "time_ns", take), ids_at(flow.model.takes, "thread", take)
    before_ns, begin_ns, end_ns = waits.last(thread, taken_ns)
    silent = end_ns == NEVER
    begin_ns[silent], end_ns[silent] = waits.idle_since(thread[silent], taken_ns[silent]), taken_ns[silent]
    waited = end_ns > sent
    blocked = waited & ((sent >= begin_ns) | (end_ns - begin_ns > _AT_ONCE_NS))
    return _Shown(take, publication, sent, taken_ns, before_ns, end_ns, waited, blocked)


def _guess(shown: _Shown, usual_ns: TimesNs) -> TimesNs:
    """Arrival of messages that were found when their executor looked."""
    earliest = np.where(shown.waited, np.maximum(shown.sent_ns, shown.before_ns), shown.sent_ns)
    latest = np.maximum(np.where(shown.waited, shown.end_ns, shown.taken_ns), earliest)
    guess: TimesNs = np.clip(shown.sent_ns + usual_ns, earliest, latest)
    return guess


def _way(flow: FlowGraph, shown: _Shown) -> TimesNs:
    """Publisher and subscription of each message as one number."""
    publisher = ids_at(flow.model.publications, "publisher", shown.publication).astype(np.int64)
    return (publisher << 32) + ids_at(flow.model.takes, "subscription", shown.take)


def _ways(flow: FlowGraph) -> TimesNs:
    """All pairs of publisher and subscription, in order."""
    found = np.empty(0, dtype=np.int64)
    for part in chunks(len(flow.transport)):
        links = rows_of(flow.transport, part)
        publisher = ids_at(flow.model.publications, "publisher", ids_of(links, "publication")).astype(np.int64)
        subscription = ids_at(flow.model.takes, "subscription", ids_of(links, "take"))
        found = np.union1d(found, (publisher << 32) + subscription)
    return found


def _usual(way: IdArray, latency_ns: TimesNs, ways: int) -> TimesNs:
    """Median latency of each way where it was observed, otherwise 0."""
    return np.array([int(median or 0) for median in Grouped(way, latency_ns, ways).medians()], dtype=np.int64)


class _Waits:
    """Waits of executors that have an end, in the order of their ends."""

    def __init__(self, model: ExecutionModel) -> None:
        self._model = model
        self._executor_of = ids_of(model.threads, "executor")
        begin_ns, end_ns = times_of(model.waits, "begin_ns"), times_of(model.waits, "end_ns")
        rows = _ended(end_ns)
        thread = ids_of(model.waits, "thread")
        self._begin_ns = computed(len(rows), np.int64, lambda part: begin_ns[rows[part]])
        self._end_ns = computed(len(rows), np.int64, lambda part: end_ns[rows[part]])
        executor = computed(len(rows), np.int32, lambda part: self._executor_of[thread[rows[part]]])
        self._clock = _clock(self._end_ns, times_of(model.takes, "time_ns"))
        self._timeline = self._clock.timeline(executor, self._end_ns)

    def last(self, thread: IdArray, taken_ns: TimesNs) -> tuple[TimesNs, TimesNs, TimesNs]:
        """The last waits of the executor of each take: end of the one before the last, begin and end of the last."""
        executor = self._executor_of[thread]
        keys = self._clock.keys(np.maximum(executor, 0), taken_ns)
        last = np.where(executor >= 0, self._timeline.last(keys), -1)
        before = np.where(executor >= 0, self._timeline.last(keys, skip=1), -1)
        return pick(self._end_ns, before, NEVER), pick(self._begin_ns, last, NEVER), pick(self._end_ns, last, NEVER)

    def idle_since(self, thread: IdArray, taken_ns: TimesNs) -> TimesNs:
        """End of the last callback on the thread of each take.

        An executor that reports no waits is taken to have waited from then on.
        """
        end_ns, clock, timeline = self._runs
        return pick(end_ns, timeline.last(clock.keys(thread, taken_ns)), NEVER)

    @cached_property
    def _runs(self) -> tuple[TimesNs, Clock, Timeline]:
        runs = self._model.callback_runs
        ends_ns, threads = times_of(runs, "end_ns"), ids_of(runs, "thread")
        rows = _ended(ends_ns)
        end_ns = computed(len(rows), np.int64, lambda part: ends_ns[rows[part]])
        thread = computed(len(rows), np.int32, lambda part: threads[rows[part]])
        clock = _clock(end_ns, times_of(self._model.takes, "time_ns"))
        return end_ns, clock, clock.timeline(thread, end_ns)


def _ended(end_ns: TimesNs) -> IdArray:
    """Rows that have an end, in the order of their ends."""
    rows = sorted_rows(end_ns)
    endless = sum(int(np.count_nonzero(end_ns[part] == NEVER)) for part in chunks(len(end_ns)))
    return rows[endless:]


def _clock(*columns: TimesNs) -> Clock:
    return Clock(*(edges(column[part]) for column in columns for part in chunks(len(column))))
