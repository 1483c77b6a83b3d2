"""How late the messages of a path are, told online by the time stamps that they carry."""

from __future__ import annotations

from collections import deque
from typing import Final

from pytest_ldos.units import NS_PER_S

_SHARED_CLOCK_NS: Final = 3600 * NS_PER_S
"""Nearer to the wall clock than that is a stamp of it; others are of a simulated clock, which begins at 0."""

REFERENCE_NS: Final = NS_PER_S // 2
"""How long the least age is remembered, where clocks differ: a simulated clock that lost time never makes up for it."""


class PathLateness:
    """Counts late messages in windows of time.

    A stamp of the wall clock tells a message's age. One of a simulated clock tells how much older it is than the
    youngest of the last half second: a message that waits, and a simulated clock that runs too slowly, both make it
    late. (So does LEDBAT's base delay, RFC 6817.)

    Attributes:
        received, late: messages so far, of those that carry a stamp.
        unstamped: messages so far that carry none.
        silent_windows: windows so far in whose end nothing had come for too long.

    Args:
        now_ns: monotonic, when listening begins.
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
        """A message came."""
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
        """The late share of the messages since the last call; 1 in silence, ``None`` where that is not known."""
        received, late = self.received - self._before[0], self.late - self._before[1]
        self._before = (self.received, self.late)
        if now_ns - self._heard_ns >= self._silence_ns:
            self.silent_windows += 1
            return 1.0
        return late / received if received else None
