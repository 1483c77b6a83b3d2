"""Links takes to publications by topic and source time stamp.

The middleware stamps a message when it is written, and reports the same number when it
is taken. Cyclone DDS and Fast DDS keep it to the nanosecond.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.topics import number_topics, topics_of

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


def link_stamps(model: ExecutionModel) -> IdArray:
    """Publication of each take, -1 where none in the trace fits; shape ``(takes,)``."""
    numbers = number_topics(model)
    sent = _stamped(model.publications, "publisher", model.publishers, numbers)
    taken = _stamped(model.takes, "subscription", model.subscriptions, numbers)
    found = np.full(len(model.takes), -1, dtype=np.int32)
    if len(sent) == 0 or len(taken) == 0:
        return found
    first = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="left")
    behind = np.searchsorted(sent.stamp_ns, taken.stamp_ns, side="right")
    single = np.flatnonzero(behind - first == 1)
    fits = _agree(sent.topic[first[single]], taken.topic[single])
    found[taken.row[single[fits]]] = sent.row[first[single[fits]]]
    _link_equal(sent, taken, found, np.flatnonzero(behind - first > 1), (first, behind))
    _link_rounded(sent, taken, found)
    return found


def _stamped(instances: pl.DataFrame, end: str, ends: pl.DataFrame, numbers: dict[str, int]) -> _Stamped:
    """Publications or takes in the order of their stamps; those with a stamp of 0 have none and are left out."""
    stamps_ns = times_of(instances, "source_ns")
    row = np.flatnonzero(stamps_ns > 0)
    row = row[np.argsort(stamps_ns[row], kind="stable")].astype(np.int32)
    topic = topics_of(instances, end, ends, numbers)[row]
    return _Stamped(row, stamps_ns[row], topic, ids_of(instances, end)[row])


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


def _link_rounded(sent: _Stamped, taken: _Stamped, found: IdArray) -> None:
    """Links takes without an exact match to the nearest stamp within the rounding error.

    Some stamps are round numbers by chance, so a topic can have both kinds. No subscription takes a
    message twice.
    """
    missing = (found[taken.row] < 0) & (taken.topic >= 0)
    for topic in np.unique(taken.topic[missing]).tolist():
        own, theirs = np.flatnonzero(missing & (taken.topic == topic)), np.flatnonzero(sent.topic == topic)
        if len(theirs) == 0:
            continue
        used = _pairs(taken.end, found[taken.row])[~missing & (taken.topic == topic)]
        after = np.clip(np.searchsorted(sent.stamp_ns[theirs], taken.stamp_ns[own]), 1, len(theirs)) - 1
        other = np.minimum(after + 1, len(theirs) - 1)
        distance = np.abs(sent.stamp_ns[theirs[after]] - taken.stamp_ns[own])
        further = np.abs(sent.stamp_ns[theirs[other]] - taken.stamp_ns[own])
        nearest = theirs[np.where(further < distance, other, after)]
        near = np.minimum(distance, further) <= _ROUNDING_NS
        own, nearest = own[near], nearest[near]
        pairs, first = np.unique(_pairs(taken.end[own], sent.row[nearest]), return_index=True)
        first = first[~np.isin(pairs, used)]
        found[taken.row[own[first]]] = sent.row[nearest[first]]


def _pairs(end: IdArray, publication: IdArray) -> npt.NDArray[np.int64]:
    """Subscription and publication as one number."""
    return end.astype(np.int64) << 32 | publication
