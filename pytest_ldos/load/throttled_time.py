"""Time that passes more slowly for a publisher that is throttled, so that its schedule stays as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pytest_ldos.units import NS_PER_S

_MEMORY_NS: Final = NS_PER_S
"""What is older is later than any message that is still sent."""


@dataclass(frozen=True)
class _Stretch:
    """A time with one share.

    Attributes:
        passed_ns: of the schedule's time, at its beginning.
    """

    begin_ns: int
    passed_ns: int
    share: float

    def passed_by(self, now_ns: int) -> int:
        return self.passed_ns + math.floor((now_ns - self.begin_ns) * self.share)

    def real_ns(self, passed_ns: int) -> int:
        return self.begin_ns + math.ceil((passed_ns - self.passed_ns) / self.share)


class ThrottledTime:
    """A schedule's time, and when it is; `ldos_load` has the same as `ThrottledSchedule`.

    Args:
        begin_ns: monotonic, from when on it can differ from real time.
    """

    def __init__(self, begin_ns: int) -> None:
        # A tuple that is replaced as a whole: one thread throttles, another sends.
        self._stretches: tuple[_Stretch, ...] = (_Stretch(begin_ns, begin_ns, 1.0),)

    @property
    def share(self) -> float:
        """Of real time that passes."""
        return self._stretches[-1].share

    def throttle(self, share: float, now_ns: int) -> None:
        """From now on time passes at this share, above 0 and up to 1."""
        new = _Stretch(now_ns, self.passed_by(now_ns), share)
        recent = (each for each in self._stretches[:-1] if each.begin_ns > now_ns - _MEMORY_NS)
        self._stretches = (*recent, self._stretches[-1], new)

    def passed_by(self, now_ns: int) -> int:
        """The schedule's time at a moment that is not before the last change."""
        return self._stretches[-1].passed_by(now_ns)

    def real_ns(self, passed_ns: int) -> int:
        """When it is, or was, a time of the schedule."""
        stretches = self._stretches
        last = stretches[-1]
        if last.passed_ns <= passed_ns:  # as for nearly all messages
            return last.real_ns(passed_ns)
        earlier = (each for each in reversed(stretches) if each.passed_ns <= passed_ns)
        return next(earlier, stretches[0]).real_ns(passed_ns)
