"""Events ordered by thread, then time, to ask what a thread did right before or after a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.execution.columns import IdArray, TimesNs

Keys = npt.NDArray[np.int64]
"""Thread and time as one number, ordered by thread first; shape ``(n,)``."""

_KEY_BITS = 63


class Clock:
    """Turns (thread, time) into keys for times between `first_ns` and `last_ns`."""

    def __init__(self, first_ns: int, last_ns: int) -> None:
        self._first_ns = first_ns
        self.last_ns = last_ns
        self._bits = max((last_ns - first_ns).bit_length(), 1)

    def keys(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Keys:
        """Keys of moments; the threads must not be -1.

        Raises:
            ConfigurationError: the trace is too long for as many threads as it has.
        """
        if len(thread) and int(thread.max()) >= 1 << (_KEY_BITS - self._bits):
            raise ConfigurationError(
                "the trace is too long for the number of its threads", remedy="read it in parts, with `window`"
            )
        return (thread.astype(np.int64) << self._bits) | (times_ns - self._first_ns)

    def timeline(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Timeline:
        """Events that are given in time order."""
        narrow = thread.astype(np.uint16) if len(thread) and thread.max() < 1 << 16 else thread
        rows = np.argsort(narrow, kind="stable").astype(np.int32)
        return Timeline(self.keys(thread, times_ns)[rows], rows, self._bits)


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
        """For each event of another timeline, in the order of its table, the row `last` gives.

        Both are in order, which makes this several times faster than asking with the keys.
        """
        return in_table(others, self.last(others.keys, before=before))

    def next_for(self, others: Timeline, *, after: bool = False) -> IdArray:
        """For each event of another timeline, in the order of its table, the row `next` gives."""
        return in_table(others, self.next(others.keys, after=after))

    def last(self, keys: Keys, *, before: bool = False) -> IdArray:
        """The row of the last event of the key's thread at its time or earlier (`before`: earlier)."""
        position = np.searchsorted(self.keys, keys, side="left" if before else "right") - 1
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
    """Values in a timeline's order, put in the order of its table; shape ``(n,)``."""
    ordered = np.empty(len(values), dtype=np.int32)
    ordered[timeline.rows] = values
    return ordered
