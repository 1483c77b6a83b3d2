"""Time that passes more slowly for a throttled publisher, so that its schedule need not change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.units import NS_PER_S

_MEMORY_NS: Final = NS_PER_S
"""Older stretches are not needed: no message that late is still sent."""


@dataclass(frozen=True)
class _Stretch:
    """An interval with one share.

    Attributes:
        passed_ns: the schedule's time at its beginning.
    """

    begin_ns: int
    passed_ns: int
    share: float

    def passed_by(self, now_ns: int) -> int:
        return self.passed_ns + math.floor((now_ns - self.begin_ns) * self.share)

    def real_ns(self, passed_ns: int) -> int:
        return self.begin_ns + math.ceil((passed_ns - self.passed_ns) / self.share)


class ThrottledTime:
    """Conversion between a schedule's time and real time; `ldos_load`'s `ThrottledSchedule` does the same.

    Args:
        begin_ns: monotonic time from which the two can differ.
    """

    def __init__(self, begin_ns: int) -> None:
        # An immutable tuple, replaced as a whole: one thread throttles, another sends.
        self._stretches: tuple[_Stretch, ...] = (_Stretch(begin_ns, begin_ns, 1.0),)

    @property
    def share(self) -> float:
        """Speed of the schedule's time relative to real time."""
        return self._stretches[-1].share

    def throttle(self, share: float, now_ns: int) -> None:
        """From now on, time passes at this share of real time, above 0 and up to 1."""
        new = _Stretch(now_ns, self.passed_by(now_ns), share)
        recent = (each for each in self._stretches[:-1] if each.begin_ns > now_ns - _MEMORY_NS)
        self._stretches = (*recent, self._stretches[-1], new)

    def passed_by(self, now_ns: int) -> int:
        """Returns the schedule's time at a moment that is not before the last change."""
        return self._stretches[-1].passed_by(now_ns)

    def real_ns(self, passed_ns: int) -> int:
        """Returns the real time of a time of the schedule."""
        stretches = self._stretches
        last = stretches[-1]
        if last.passed_ns <= passed_ns:  # the case of nearly all messages
            return last.real_ns(passed_ns)
        earlier = (each for each in reversed(stretches) if each.passed_ns <= passed_ns)
        return next(earlier, stretches[0]).real_ns(passed_ns)
