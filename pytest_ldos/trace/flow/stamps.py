"""Links takes to publications by topic and source time stamp.

The middleware stamps a message when it is written, and reports the same number when it
is taken. Cyclone DDS and Fast DDS keep it to the nanosecond.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, ids_at, pick, times_of
from pytest_ldos.trace.execution.grouping import sorted_rows
from pytest_ldos.trace.execution.mapped import computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.topics import number_topics

_ROUNDING_NS: Final = 1_000
"""Largest rounding error of a middleware that keeps time stamps in another unit."""


@dataclass(frozen=True)
class _Stamped:
    """Messages that have a time stamp, ordered by it.

    Attributes:
        row: in the table of publications or takes.
        end: the publisher or subscription.
        topic: number of the topic, -1 where it is unknown.
    """

    row: IdArray
    stamp_ns: TimesNs
    topic: IdArray
    end: IdArray

    def __len__(self) -> int:
        return len(self.row)

    def where(self, which: npt.NDArray[Any]) -> _Stamped:
        return _Stamped(self.row[which], self.stamp_ns[which], self.topic[which], self.end[which])


class _Ordered:
    """All publications or takes with a stamp; a stamp of 0 is none.

    Args:
        end: the column that refers to `ends`, which are publishers or subscriptions.
    """

    def __init__(self, instances: pl.DataFrame, end: str, ends: pl.DataFrame, numbers: dict[str, int]) -> None:
        self._instances, self._end = instances, end
        self._topic_of_end = np.array([numbers.get(topic, -1) for topic in ends["topic"]], dtype=np.int32)
        stamps_ns = times_of(instances, "source_ns")
        rows = sorted_rows(stamps_ns)
        self.stamp_ns = computed(len(rows), np.int64, lambda part: stamps_ns[rows[part]])
        first = int(np.searchsorted(self.stamp_ns, 0, side="right"))
        self._row, self.stamp_ns = rows[first:], self.stamp_ns[first:]

    def between(self, first_ns: int, last_ns: int) -> _Stamped:
        """Messages with stamps from the first to the last one."""
        begin = np.searchsorted(self.stamp_ns, first_ns)
        behind = np.searchsorted(self.stamp_ns, min(last_ns, np.iinfo(np.int64).max), side="right")
        part = slice(int(begin), int(behind))
        ends = ids_at(self._instances, self._end, self._row[part])
        topics = pick(self._topic_of_end, ends, -1)
        return _Stamped(self._row[part], self.stamp_ns[part], topics, ends)


def link_stamps(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 where none in the trace fits; shape ``(takes,)``."""
    numbers = number_topics(model)
    sent = _Ordered(model.publications, "publisher", model.publishers, numbers)
    taken = _Ordered(model.takes, "subscription", model.subscriptions, numbers)
    found = filled(len(model.takes), np.int32, -1)
    spans = _spans(sent.stamp_ns, taken.stamp_ns)
    for span in spans:
        _link_exact(sent.between(*span), taken.between(*span), found)
    for first_ns, last_ns in spans:
        around = first_ns - 2 * _ROUNDING_NS, last_ns + 2 * _ROUNDING_NS
        _link_rounded(sent.between(*around), taken.between(*around), found, (first_ns, last_ns))
    return found


def _spans(*stamps_ns: TimesNs) -> list[tuple[int, int]]:
    """First and last stamp of spans with about a chunk of either kind, which hold all stamps; none cuts equal ones."""
    if not all(map(len, stamps_ns)):
        return []
    first = sorted({int(stamp) for each in stamps_ns for stamp in each[:: mapped.CHUNK_ROWS]})
    last = [begin - 1 for begin in first[1:]] + [max(int(each[-1]) for each in stamps_ns)]
    return list(zip(first, last, strict=True))


def _link_exact(sent: _Stamped, taken: _Stamped, found: IdArray) -> None:
    """Links takes to publications with the same stamp."""
    first = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="left")
    behind = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="right")
    single = np.flatnonzero(behind - first == 1)
    fits = _agree(sent.topic[first[single]], taken.topic[single])
    found[taken.row[single[fits]]] = sent.row[first[single[fits]]]
    _link_equal(sent, taken, found, np.flatnonzero(behind - first > 1), (first, behind))


def _agree(one: IdArray, other: IdArray) -> npt.NDArray[np.bool_]:
    """True where topics are the same; an unknown topic agrees with any."""
    same: npt.NDArray[np.bool_] = (one == other) | (one < 0) | (other < 0)
    return same


def _link_equal(
    sent: _Stamped, taken: _Stamped, found: IdArray, takes: npt.NDArray[np.intp], ranges: tuple[IdArray, IdArray]
) -> None:
    """Links takes whose stamp several publications share: those of the same topic, in order.

    The message that a subscription takes first was published first.
    """
    served: Counter[tuple[int, int]] = Counter()
    first, behind = ranges
    for take in takes.tolist():
        candidates = [
            at for at in range(int(first[take]), int(behind[take])) if sent.topic[at] == taken.topic[take] >= 0
        ]
        key = (int(taken.end[take]), int(taken.stamp_ns[take]))
        if served[key] < len(candidates):
            found[taken.row[take]] = sent.row[candidates[served[key]]]
            served[key] += 1


def _link_rounded(sent: _Stamped, taken: _Stamped, found: IdArray, span: tuple[int, int]) -> None:
    """Links takes in a span without an exact match to the nearest stamp within the rounding error.

    Some stamps are round numbers by chance, so a topic can have both kinds. No subscription takes a
    message twice.

    Args:
        sent, taken: of the span, and as far around it as one message may have two candidates.
    """
    within = (taken.stamp_ns >= span[0]) & (taken.stamp_ns <= span[1])
    missing = (found[taken.row] < 0) & (taken.topic >= 0)
    for topic in np.unique(taken.topic[missing & within]).tolist():
        own, theirs = taken.where(missing & within & (taken.topic == topic)), sent.where(sent.topic == topic)
        if len(theirs) == 0:
            continue
        others = taken.where(~missing & (taken.topic == topic))
        after = np.clip(np.searchsorted(theirs.stamp_ns, own.stamp_ns), 1, len(theirs)) - 1
        other = np.minimum(after + 1, len(theirs) - 1)
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
