"""Lateness of a path's messages, determined online from their time stamps."""

from __future__ import annotations

from collections import deque
from typing import Final

from pytest_ldos.base.units import NS_PER_S

_SHARED_CLOCK_NS: Final = 3600 * NS_PER_S
"""Stamps closer to the wall clock than this are the wall clock's; others are a simulated clock's, which begins at 0."""

REFERENCE_NS: Final = NS_PER_S // 2
"""Time for which the smallest offset of a simulated clock is kept: the clock never makes up for lost time."""


class PathLateness:
    """Counts late messages in windows of time.

    A stamp of the wall clock gives a message's age. A stamp of a simulated clock gives how much older it is than the
    youngest of the last half second: a message that waits, and a simulated clock that runs too slowly, both make it
    late. (LEDBAT's base delay works in the same way, RFC 6817.)

    Attributes:
        received, late: messages so far, of those that carry a stamp.
        unstamped: messages so far without a stamp.
        silent_windows: windows so far at whose end no message had come for too long.

    Args:
        now_ns: start of listening, monotonic.
    """

    def __init__(self, *, deadline_ns: int, silence_ns: int, now_ns: int) -> None:
        self._deadline_ns = deadline_ns
        self._silence_ns = silence_ns
        self._heard_ns = now_ns
        self._least: deque[tuple[int, int]] = deque()
        self._before = (0, 0)
        self.received = 0
        self.late = 0
        self.unstamped = 0
        self.silent_windows = 0

    def note(self, stamp_ns: int | None, *, wall_ns: int, mono_ns: int) -> None:
        """Notes a message."""
        self._heard_ns = mono_ns
        if stamp_ns is None:
            self.unstamped += 1
            return
        self.received += 1
        self.late += self._age_ns(stamp_ns, wall_ns, mono_ns) > self._deadline_ns

    def _age_ns(self, stamp_ns: int, wall_ns: int, mono_ns: int) -> int:
        if abs(wall_ns - stamp_ns) < _SHARED_CLOCK_NS:
            return wall_ns - stamp_ns
        offset_ns = mono_ns - stamp_ns
        while self._least and self._least[-1][1] >= offset_ns:
            self._least.pop()
        self._least.append((mono_ns, offset_ns))
        while self._least[0][0] < mono_ns - REFERENCE_NS:
            self._least.popleft()
        return offset_ns - self._least[0][1]

    def end_window(self, now_ns: int) -> float | None:
        """Returns the late share of the messages since the last call; 1 in silence, ``None`` if it is unknown."""
        received, late = self.received - self._before[0], self.late - self._before[1]
        self._before = (self.received, self.late)
        if now_ns - self._heard_ns >= self._silence_ns:
            self.silent_windows += 1
            return 1.0
        return late / received if received else None
