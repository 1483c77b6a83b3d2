"""Events ordered by thread, then time, to find a thread's last event before or first event after a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.columns import IdArray, TimesNs
from pytest_ldos.trace.execution.grouping import index_by
from pytest_ldos.trace.execution.mapped import chunks, computed

Keys = npt.NDArray[np.int64]
"""Thread and time as one number, ordered by thread first; shape ``(n,)``."""

_KEY_BITS = 63


_ERA_NS = 1 << 46
"""Eras are further apart than this, about 20 hours."""


class Clock:
    """Turns (thread, time) into keys.

    Hosts whose clocks were never set are in eras of their own. The time between two eras is
    left out, so that enough bits remain for the threads.

    Args:
        times_ns: all times to be covered; those between the first and last of an era may be omitted.
    """

    def __init__(self, *times_ns: TimesNs) -> None:
        every = [times for times in times_ns if len(times)]
        first = min((int(times.min()) for times in every), default=0)
        self.last_ns = max((int(times.max()) for times in every), default=0)
        self._first_ns, self._before_ns = _eras(every) if self.last_ns - first > _ERA_NS else _one_era(first)
        last = self._since_first(np.array([self.last_ns]))
        self._bits = max(int(last[0]).bit_length(), 1)

    def _since_first(self, times_ns: TimesNs) -> TimesNs:
        if len(self._first_ns) == 1:
            since: TimesNs = times_ns - self._first_ns[0]
            return since
        era = np.maximum(np.searchsorted(self._first_ns, times_ns, side="right") - 1, 0)
        passed: TimesNs = times_ns - self._first_ns[era] + self._before_ns[era]
        return passed

    def keys(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Keys:
        """Keys of (thread, time) pairs; the threads must not be -1.

        Raises:
            ConfigurationError: the trace is too long for the number of its threads.
        """
        if len(thread) and int(thread.max()) >= 1 << (_KEY_BITS - self._bits):
            raise ConfigurationError(
                "the trace is too long for the number of its threads", remedy="read it in parts, with `window`"
            )
        return (thread.astype(np.int64) << self._bits) | self._since_first(times_ns)

    def timeline(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Timeline:
        """Timeline of events given in time order."""
        if len(thread) <= mapped.CHUNK_ROWS:
            narrow = thread.astype(np.uint16) if len(thread) and thread.max() < 1 << 16 else thread
            rows = np.argsort(narrow, kind="stable").astype(np.int32)
            return Timeline(self.keys(thread, times_ns)[rows], rows, self._bits)
        rows = index_by(thread, int(thread.max()) + 1).rows
        keys = computed(len(rows), np.int64, lambda part: self.keys(thread[rows[part]], times_ns[rows[part]]))
        return Timeline(keys, rows, self._bits)


def _one_era(first_ns: int) -> tuple[TimesNs, TimesNs]:
    return np.array([first_ns], dtype=np.int64), np.zeros(1, dtype=np.int64)


def _eras(every: list[TimesNs]) -> tuple[TimesNs, TimesNs]:
    """Begin of each era, and the total length of the eras before it."""
    times_ns = _edges(every)
    begin = np.concatenate(([0], np.flatnonzero(np.diff(times_ns) > _ERA_NS) + 1))
    end = np.append(begin[1:], len(times_ns)) - 1
    lengths = times_ns[end] - times_ns[begin] + 1
    return times_ns[begin], np.cumsum(lengths) - lengths


def _edges(every: list[TimesNs]) -> TimesNs:
    """Times that lie as far apart as all: what is left out is closer than an era to those next to it."""
    return np.unique(np.concatenate([edges(times_ns[part]) for times_ns in every for part in chunks(len(times_ns))]))


def edges(times_ns: TimesNs) -> TimesNs:
    """First and last time of each stretch of an era's length; no gap between eras lies within one."""
    if not len(times_ns):
        return times_ns
    first_ns, last_ns = times_ns.min(), times_ns.max()
    if last_ns - first_ns <= _ERA_NS:
        return np.array([first_ns, last_ns])
    ordered = np.sort(times_ns)
    stretch = ordered // _ERA_NS
    begins = np.flatnonzero(np.diff(stretch, prepend=stretch[0] - 1))
    return np.concatenate((ordered[begins], ordered[np.append(begins[1:], len(ordered)) - 1]))


@dataclass(frozen=True)
class Timeline:
    """Events of one kind.

    Attributes:
        keys: ascending; shape ``(n,)``.
        rows: the event's row in its table; shape ``(n,)``.
    """

    keys: Keys
    rows: IdArray
    bits: int

    def last_for(self, others: Timeline, *, before: bool = False) -> IdArray:
        """For each event of another timeline, in the order of its table, the row that `last` returns.

        Both timelines are sorted, which makes this several times faster than a lookup of unsorted keys.
        """
        return in_table(others, self.last(others.keys, before=before))

    def next_for(self, others: Timeline, *, after: bool = False) -> IdArray:
        """For each event of another timeline, in the order of its table, the row that `next` returns."""
        return in_table(others, self.next(others.keys, after=after))

    def last(self, keys: Keys, *, before: bool = False, skip: int = 0) -> IdArray:
        """The row of the last event of the key's thread at its time or earlier (`before`: earlier).

        Args:
            skip: number of events to go back further.
        """
        position = np.searchsorted(self.keys, keys, side="left" if before else "right") - 1 - skip
        return self._rows(position, keys)

    def next(self, keys: Keys, *, after: bool = False) -> IdArray:
        """The row of the first event of the key's thread at its time or later (`after`: later)."""
        return self._rows(np.searchsorted(self.keys, keys, side="right" if after else "left"), keys)

    def _rows(self, position: npt.NDArray[np.intp], keys: Keys) -> IdArray:
        if len(self.keys) == 0:
            return np.full(len(keys), -1, dtype=np.int32)
        inside = (position >= 0) & (position < len(self.keys))
        held = np.where(inside, position, 0)
        same = inside & (self.keys[held] >> self.bits == keys >> self.bits)
        return np.where(same, self.rows[held], np.int32(-1))


def in_table(timeline: Timeline, values: IdArray) -> IdArray:
    """Values in a timeline's order, rearranged to the order of its table; shape ``(n,)``."""
    ordered = np.empty(len(values), dtype=np.int32)
    ordered[timeline.rows] = values
    return ordered
