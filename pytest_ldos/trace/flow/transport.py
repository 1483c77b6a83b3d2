"""Transport links from a publication to each of its receptions, and the clock offsets between hosts that they imply.

Inside a process, a publisher writes the message to a slot of each subscription's buffer. The subscription
takes the last message written to a slot.

The middleware stamps a message when it is written, and reports the same stamp when it
is taken. Cyclone DDS and Fast DDS keep nanoseconds.

Latency is positive, so each message from A to B bounds the offset of B's clock on one side, and each
message from B to A on the other. The true offset is between the closest bounds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_at, ids_of, pick, times_at, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Clock
from pytest_ldos.trace.flow.graph import LINKS, FlowGraph, number_topics, topics_of, unlinked_topics


def link_buffers(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 for messages that came through the middleware; shape ``(takes,)``."""
    found = mapped.filled(len(model.takes), np.int32, -1)
    taken = mapped.rows_where(len(model.takes), lambda part: mapped.rows_of(model.takes["intra"], part).to_numpy())
    if len(taken) == 0 or len(model.enqueues) == 0:
        return found
    enqueue, publication = _enqueue_of(model, taken), _publication_of_enqueues(model)
    for part in mapped.chunks(len(taken)):
        found[taken[part]] = pick(publication, enqueue[part], -1)
    return found


def _publication_of_enqueues(model: ExecutionModel) -> IdArray:
    """The intra-process publication of each enqueue: the last one on its thread."""
    sent = model.publications
    intra = mapped.rows_where(len(sent), lambda part: mapped.rows_of(sent["intra_ns"], part).is_not_null().to_numpy())
    published_ns = mapped.computed(len(intra), np.int64, lambda part: times_at(sent, "intra_ns", intra[part]))
    publisher = mapped.computed(len(intra), np.int32, lambda part: ids_at(sent, "thread", intra[part]))
    thread, enqueued_ns = ids_of(model.enqueues, "thread"), times_of(model.enqueues, "time_ns")
    clock = Clock(published_ns, enqueued_ns)
    timeline = clock.timeline(publisher, published_ns)

    def last(part: slice) -> IdArray:
        return pick(intra, timeline.last(clock.keys(thread[part], enqueued_ns[part])), -1)

    return mapped.computed(len(enqueued_ns), np.int32, last)


def _enqueue_of(model: ExecutionModel, taken: IdArray) -> IdArray:
    """The enqueue that filled each take's slot; an enqueue serves one take only."""
    enqueued_ns = times_of(model.enqueues, "time_ns")
    taken_ns = mapped.computed(len(taken), np.int64, lambda part: times_at(model.takes, "time_ns", taken[part]))
    put, emptied = _slots(model, taken)
    clock = Clock(enqueued_ns, taken_ns)
    filling, emptying = clock.timeline(put, enqueued_ns), clock.timeline(emptied, taken_ns)

    def filled_by(part: slice) -> IdArray:
        keys = clock.keys(emptied[part], taken_ns[part])
        enqueue, since = filling.last(keys), pick(taken_ns, emptying.last(keys, before=True), NEVER)
        return np.where(pick(enqueued_ns, enqueue, NEVER) > since, enqueue, -1).astype(np.int32)

    return mapped.computed(len(taken), np.int32, filled_by)


def _slots(model: ExecutionModel, taken: IdArray) -> tuple[IdArray, IdArray]:
    """Process, buffer and slot as one number, of all enqueues and of the takes."""
    process = ids_of(model.threads, "process")

    def columns(number: int, part: slice) -> list[mapped.Array]:
        table = mapped.rows_of(model.enqueues, part) if number == 0 else model.takes[taken[part]]
        return [process[ids_of(table, "thread")], table["buffer"].to_numpy(), table["slot"].to_numpy()]

    rows = (len(model.enqueues), len(taken))
    every = [(number, part) for number in range(2) for part in mapped.chunks(rows[number])]
    known = [_distinct(columns(*each)[at] for each in every) for at in range(3)]

    def codes(number: int, part: slice) -> mapped.Array:
        places = [np.searchsorted(*pair) for pair in zip(known, columns(number, part), strict=True)]
        return (places[0] * len(known[1]) + places[1]) * len(known[2]) + places[2]

    kept = _distinct(codes(*each) for each in every)
    return (
        mapped.computed(rows[0], np.int32, lambda part: np.searchsorted(kept, codes(0, part))),
        mapped.computed(rows[1], np.int32, lambda part: np.searchsorted(kept, codes(1, part))),
    )


def _distinct(parts: Iterable[mapped.Array]) -> mapped.Array:
    return np.unique(np.concatenate([np.unique(part) for part in parts]))


_ROUNDING_NS: Final = 1_000  # largest rounding error of a middleware that keeps time stamps in another unit


@dataclass(frozen=True)
class _Stamped:
    """Messages that have a time stamp, ordered by it: rows, topics (-1 if unknown), publishers or subscriptions."""

    row: IdArray
    stamp_ns: TimesNs
    topic: IdArray
    end: IdArray

    def where(self, which: npt.NDArray[Any]) -> _Stamped:
        return _Stamped(self.row[which], self.stamp_ns[which], self.topic[which], self.end[which])


class _Ordered:
    """All publications or takes with a non-zero stamp, ordered by it; their column `end` refers to `ends`."""

    def __init__(self, instances: pl.DataFrame, end: str, ends: pl.DataFrame, numbers: dict[str, int]) -> None:
        self._instances, self._end = instances, end
        self._topic_of_end = topics_of(ends, numbers)
        stamps_ns = times_of(instances, "source_ns")
        rows = mapped.sorted_rows(stamps_ns)
        self.stamp_ns = mapped.computed(len(rows), np.int64, lambda part: stamps_ns[rows[part]])
        first = int(np.searchsorted(self.stamp_ns, 0, side="right"))
        self._row, self.stamp_ns = rows[first:], self.stamp_ns[first:]

    def between(self, first_ns: int, last_ns: int) -> _Stamped:
        begin = np.searchsorted(self.stamp_ns, first_ns)
        behind = np.searchsorted(self.stamp_ns, min(last_ns, np.iinfo(np.int64).max), side="right")
        part = slice(int(begin), int(behind))
        ends = ids_at(self._instances, self._end, self._row[part])
        return _Stamped(self._row[part], self.stamp_ns[part], pick(self._topic_of_end, ends, -1), ends)


def link_stamps(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 if none in the trace matches; shape ``(takes,)``."""
    numbers = number_topics(model)
    sent = _Ordered(model.publications, "publisher", model.publishers, numbers)
    taken = _Ordered(model.takes, "subscription", model.subscriptions, numbers)
    found = mapped.filled(len(model.takes), np.int32, -1)
    spans: list[tuple[int, int]] = []  # of about a chunk each; equal stamps stay together
    if len(sent.stamp_ns) and len(taken.stamp_ns):
        both = (sent.stamp_ns, taken.stamp_ns)
        first = sorted({int(stamp) for each in both for stamp in each[:: mapped.CHUNK_ROWS]})
        last = [begin - 1 for begin in first[1:]] + [max(int(each[-1]) for each in both)]
        spans = list(zip(first, last, strict=True))
    for span in spans:
        _link_exact(sent.between(*span), taken.between(*span), found)
    for first_ns, last_ns in spans:
        around = first_ns - 2 * _ROUNDING_NS, last_ns + 2 * _ROUNDING_NS
        _link_rounded(sent.between(*around), taken.between(*around), found, (first_ns, last_ns))
    return found


def _link_exact(sent: _Stamped, taken: _Stamped, found: IdArray) -> None:
    """Links takes to publications with the same stamp and topic; an unknown topic agrees with any.

    A subscription takes messages in the order of their publication: those with one stamp are linked in this order.
    """
    first = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="left")
    behind = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="right")
    single = np.flatnonzero(behind - first == 1)
    one, other = sent.topic[first[single]], taken.topic[single]
    fits = (one == other) | (one < 0) | (other < 0)
    found[taken.row[single[fits]]] = sent.row[first[single[fits]]]
    served: Counter[tuple[int, int]] = Counter()
    for take in np.flatnonzero(behind - first > 1).tolist():
        same = range(int(first[take]), int(behind[take]))
        candidates = [at for at in same if sent.topic[at] == taken.topic[take] >= 0]
        key = (int(taken.end[take]), int(taken.stamp_ns[take]))
        if served[key] < len(candidates):
            found[taken.row[take]] = sent.row[candidates[served[key]]]
            served[key] += 1


def _link_rounded(sent: _Stamped, taken: _Stamped, found: IdArray, span: tuple[int, int]) -> None:
    """Links takes in a span without an exact match to the nearest stamp within the rounding error.

    Some stamps are round numbers by chance, so a topic can have both kinds. No subscription takes a message twice. The
    messages have a margin, in which a message may have two candidates.
    """
    within = (taken.stamp_ns >= span[0]) & (taken.stamp_ns <= span[1])
    missing = (found[taken.row] < 0) & (taken.topic >= 0)
    for topic in np.unique(taken.topic[missing & within]).tolist():
        own, theirs = taken.where(missing & within & (taken.topic == topic)), sent.where(sent.topic == topic)
        if len(theirs.row) == 0:
            continue
        others = taken.where(~missing & (taken.topic == topic))
        after = np.clip(np.searchsorted(theirs.stamp_ns, own.stamp_ns), 1, len(theirs.row)) - 1
        other = np.minimum(after + 1, len(theirs.row) - 1)
        distance = np.abs(theirs.stamp_ns[after] - own.stamp_ns)
        further = np.abs(theirs.stamp_ns[other] - own.stamp_ns)
        nearest = theirs.row[np.where(further < distance, other, after)]
        near = np.minimum(distance, further) <= _ROUNDING_NS
        own, nearest = own.where(near), nearest[near]
        pairs, first = np.unique(_pairs(own.end, nearest), return_index=True)
        first = first[~np.isin(pairs, _pairs(others.end, found[others.row]))]
        found[own.row[first]] = nearest[first]


def _pairs(end: IdArray, publication: IdArray) -> npt.NDArray[np.int64]:
    """Subscription and publication as one number."""
    return end.astype(np.int64) << 32 | publication


def link_transport(model: ExecutionModel) -> pl.DataFrame:
    """One row per reception whose publication is in the trace, in the order of the receptions."""
    by_stamp, by_buffer = link_stamps(model), link_buffers(model)
    process_of, host_of = ids_of(model.threads, "process"), ids_of(model.processes, "host")
    columns = mapped.growing(publication=np.int32, take=np.int32, latency_ns=np.int64, way=np.uint32)
    for part in mapped.chunks(len(model.takes)):
        publication = np.where(by_buffer[part] >= 0, by_buffer[part], by_stamp[part])
        take = np.flatnonzero(publication >= 0).astype(np.int32) + np.int32(part.start)
        publication = publication[publication >= 0]
        columns["publication"].add(publication)
        columns["take"].add(take)
        columns["latency_ns"].add(model.takes["time_ns"].to_numpy()[take] - sent_ns(model, publication, take))
        sender = process_of[ids_at(model.publications, "thread", publication)]
        receiver = process_of[ids_at(model.takes, "thread", take)]
        within = model.takes["intra"].gather(take).to_numpy()
        conditions = [within, sender == receiver, host_of[sender] == host_of[receiver]]
        columns["way"].add(np.select(conditions, [0, 1, 2], 3))  # numbers in `WAYS`
    return mapped.frame_of(LINKS["transport"], {name: column.finish() for name, column in columns.items()})


def first_linked(size: int, links: pl.DataFrame, key: str, value: str) -> IdArray:
    """The first `value` of each `key`, -1 if none; shape ``(size,)``."""
    found = mapped.filled(size, np.int32, -1)
    for part in reversed(list(mapped.chunks(len(links)))):
        some = mapped.rows_of(links, part)
        found[ids_of(some, key)[::-1]] = ids_of(some, value)[::-1]
    return found


def sent_ns(model: ExecutionModel, publication: IdArray, take: IdArray) -> TimesNs:
    """Send time of each message, by its way: through the middleware, or intra-process."""
    within = model.takes["intra"].gather(take).to_numpy()
    through_ns, within_ns = (times_at(model.publications, name, publication) for name in ("time_ns", "intra_ns"))
    return np.where(within, within_ns, through_ns)


def count_without_partner(model: ExecutionModel, transport: pl.DataFrame) -> dict[str, int]:
    """Publications without reception and receptions without publication, by cause; zero counts are omitted."""
    subscribed_topics = set(model.subscriptions["topic"].drop_nulls())
    published_topics = set(model.publishers["topic"].drop_nulls())
    unlinked = unlinked_topics(model)
    untaken, unseen = _without(model, transport["publication"], "publications", "publisher")
    unsent, _ = _without(model, transport["take"], "takes", "subscription")
    unlinked_sent, unlinked_taken = (sum(found.pop(topic, 0) for topic in unlinked) for found in (untaken, unsent))
    listened, published = (
        sum(count for topic, count in found.items() if topic in known)
        for found, known in ((untaken, subscribed_topics), (unsent, published_topics))
    )
    counts = {
        "publications that cannot be linked with receptions": unlinked_sent,
        "receptions that cannot be linked with publications": unlinked_taken,
        "publications on topics without an observed subscriber": sum(untaken.values()) - listened,
        "publications no observed subscription took": listened,
        "of these were published while events of a subscribing process may be missing": unseen,
        "receptions on topics without an observed publisher": sum(unsent.values()) - published,
        "receptions whose publication is not in the trace": published,
    }
    return {cause: count for cause, count in counts.items() if count}


def _without(model: ExecutionModel, linked: pl.Series, table: str, end: str) -> tuple[Counter[str | None], int]:
    """Number of publications or takes without a link, by topic; the key ``None`` is an unknown topic.

    The second number counts those while a process that subscribes to the topic is not whole.
    """
    instances, ends = getattr(model, table), getattr(model, f"{end}s")
    is_linked = mapped.room_for(len(instances), np.bool_)
    for part in mapped.chunks(len(linked)):
        is_linked[mapped.rows_of(linked, part).to_numpy()] = True
    found: Counter[str | None] = Counter()
    unseen = 0
    topics = [*ends["topic"], None]
    subscribing = dict(model.subscriptions.group_by("topic").agg("process").iter_rows())
    for part in mapped.chunks(len(instances)):
        rows = mapped.rows_of(instances, part)
        own, times_ns = ids_of(rows, end)[~is_linked[part]], times_of(rows, "time_ns")[~is_linked[part]]
        for number, count in enumerate(np.bincount(own + 1).tolist()):
            topic = topics[number - 1]
            found[topic] += count
            if count and model.coverage and topic is not None:
                stretch = model.coverage.stretches(subscribing.get(topic, ()), times_ns[own == number - 1])
                unseen += int(np.count_nonzero(stretch < 0))
    return found, unseen


class Bound(StrEnum):
    LEAST = "at least"
    MOST = "at most"
    NONE = "not known"


@dataclass(frozen=True)
class ClockOffset:
    """Offset to be added to a host's times.

    Attributes:
        uncertainty_ns: largest error of `offset_ns` on either side; ``None`` if messages passed in one direction
            only, so that `offset_ns` is a bound. If the clocks drifted so that no offset fits all messages, the
            largest violation of a bound.
        messages: number of messages that the estimate rests on.
        bound: if `offset_ns` is no estimate: the offset is at least or at most that, or unknown.
    """

    offset_ns: int
    uncertainty_ns: int | None
    messages: int
    bound: Bound | None = None


def estimate_clock_offsets(flow: FlowGraph) -> dict[str, ClockOffset]:
    """Offsets by host name that bring all clocks into agreement with the first host's.

    A host that exchanged no message with the others, directly or indirectly, is left out.
    """
    model = flow.model
    host_of = ids_of(model.processes, "host")[ids_of(model.threads, "process")]
    sender = host_of[ids_of(model.publications, "thread")[ids_of(flow.transport, "publication")]]
    receiver = host_of[ids_of(model.takes, "thread")[ids_of(flow.transport, "take")]]
    links = pl.DataFrame({"sender": sender, "receiver": receiver, "latency_ns": flow.transport["latency_ns"]})
    across = links.filter(pl.col("sender") != pl.col("receiver"))
    least = across.group_by("sender", "receiver").agg(pl.col("latency_ns").min(), count=pl.len())
    bounds = {(one, other): (latency_ns, count) for one, other, latency_ns, count in least.iter_rows()}
    offsets = {0: ClockOffset(0, 0, 0)}
    waiting = deque([0])
    while waiting:
        known = waiting.popleft()
        for host in sorted({b for a, b in bounds if a == known} | {a for a, b in bounds if b == known}):
            if host not in offsets:
                offsets[host] = _combine(offsets[known], _between(bounds, known, host))
                waiting.append(host)
    names = flow.model.hosts["name"]
    return {names[host]: offset for host, offset in offsets.items()}


def _between(bounds: dict[tuple[int, int], tuple[int, int]], known: int, host: int) -> ClockOffset:
    """Offset to be added to the times of `host`: messages to it are bounds from below, messages from it from above."""
    to_host, from_host = bounds.get((known, host)), bounds.get((host, known))
    if to_host and from_host:
        lowest, highest = -to_host[0], from_host[0]
        middle = (lowest + highest) // 2
        return ClockOffset(middle, max(abs(highest - middle), abs(middle - lowest)), to_host[1] + from_host[1])
    if to_host:
        return ClockOffset(-to_host[0], None, to_host[1], Bound.LEAST)
    assert from_host is not None
    return ClockOffset(from_host[0], None, from_host[1], Bound.MOST)


def _combine(known: ClockOffset, step: ClockOffset) -> ClockOffset:
    offset_ns = known.offset_ns + step.offset_ns
    slack_ns = (known.uncertainty_ns or 0) + (step.uncertainty_ns or 0)
    sides = {each.bound for each in (known, step) if each.bound is not None}
    if not sides:
        return ClockOffset(offset_ns, slack_ns, step.messages)
    side = sides.pop() if len(sides) == 1 else Bound.NONE
    slack_ns = {Bound.LEAST: -slack_ns, Bound.MOST: slack_ns, Bound.NONE: 0}[side]
    return ClockOffset(offset_ns + slack_ns, None, step.messages, side)
