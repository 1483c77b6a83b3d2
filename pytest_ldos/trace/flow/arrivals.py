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

from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_of, pick, times_of
from pytest_ldos.trace.execution.timeline import Clock
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
    arrived = np.full(len(model.takes), NEVER, dtype=np.int64)
    take, publication = ids_of(flow.transport, "take"), ids_of(flow.transport, "publication")
    sent = sent_ns(model, publication, take)
    taken_ns = times_of(model.takes, "time_ns")[take]
    way = _ways(flow, take, publication)
    before_ns, begin_ns, end_ns = _last_waits(flow, take, taken_ns)
    silent = end_ns == NEVER
    begin_ns[silent], end_ns[silent] = _idle_since(flow, take[silent], taken_ns[silent]), taken_ns[silent]
    waited = end_ns > sent
    blocked = waited & ((sent >= begin_ns) | (end_ns - begin_ns > _AT_ONCE_NS))
    found_ready = ~blocked
    arrived[take[blocked]] = end_ns[blocked]
    usual_ns = _usual(way[blocked], (end_ns - sent)[blocked], int(way.max(initial=-1)) + 1)
    earliest = np.where(waited, np.maximum(sent, before_ns), sent)
    guess = np.clip(sent + usual_ns[way], earliest, np.maximum(np.where(waited, end_ns, taken_ns), earliest))
    arrived[take[found_ready]] = guess[found_ready]
    in_process = (flow.transport["way"] == IN_PROCESS).to_numpy()
    arrived[take[in_process]] = sent[in_process]
    return arrived


def _idle_since(flow: FlowGraph, take: IdArray, taken_ns: TimesNs) -> TimesNs:
    """End of the last callback on each take's thread.

    An executor that reports no waits is taken to have waited from then on.
    """
    runs = flow.model.callback_runs.filter(pl.col("end_ns").is_not_null()).sort("end_ns", maintain_order=True)
    end_ns = times_of(runs, "end_ns")
    clock = Clock(end_ns, taken_ns)
    thread = ids_of(flow.model.takes, "thread")[take]
    last = clock.timeline(ids_of(runs, "thread"), end_ns).last(clock.keys(thread, taken_ns))
    return pick(end_ns, last, NEVER)


def _ways(flow: FlowGraph, take: IdArray, publication: IdArray) -> IdArray:
    """One number for each pair of publisher and subscription."""
    publisher = ids_of(flow.model.publications, "publisher")[publication].astype(np.int64)
    subscription = ids_of(flow.model.takes, "subscription")[take].astype(np.int64)
    numbers: IdArray = np.unique((publisher << 32) + subscription, return_inverse=True)[1]
    return numbers


def _usual(way: IdArray, latency_ns: TimesNs, ways: int) -> TimesNs:
    """Median latency of each way where it was observed, otherwise 0."""
    usual = np.zeros(ways, dtype=np.int64)
    medians = pl.DataFrame({"way": way, "latency": latency_ns}).group_by("way").agg(pl.col("latency").median())
    usual[medians["way"].to_numpy()] = medians["latency"].to_numpy().astype(np.int64)
    return usual


def _last_waits(flow: FlowGraph, take: IdArray, taken_ns: TimesNs) -> tuple[TimesNs, TimesNs, TimesNs]:
    """The last waits of each take's executor: end of the one before the last, begin and end of the last."""
    model = flow.model
    executor_of = ids_of(model.threads, "executor")
    whole = model.waits.filter(pl.col("end_ns").is_not_null())
    executor = executor_of[ids_of(whole, "thread")]
    begin, end = times_of(whole, "begin_ns"), times_of(whole, "end_ns")
    wanted = executor_of[ids_of(model.takes, "thread")[take]]
    found = tuple(np.full(len(take), NEVER, dtype=np.int64) for _ in range(3))
    for number in np.unique(executor).tolist():
        rows = np.flatnonzero(executor == number)
        rows = rows[np.argsort(end[rows], kind="stable")]
        own = np.flatnonzero(wanted == number)
        last = np.searchsorted(end[rows], taken_ns[own], side="right") - 1
        own, last = own[last >= 0], last[last >= 0]
        found[1][own], found[2][own] = begin[rows[last]], end[rows[last]]
        own, last = own[last >= 1], last[last >= 1]
        found[0][own] = end[rows[last - 1]]
    return found[0], found[1], found[2]
