"""A guard's control law: throttles publishers by the lateness of a path.

It backs off at once and recovers slowly, so that several guards or publishers converge to fair shares.

Reference: D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
Computer Networks", Computer Networks and ISDN Systems 17 (1989). `ldos_guard` of the ROS workspace uses the same law.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.robot.dds.action import ParameterClient
from pytest_ldos.robot.dds.node import Node


@dataclass(frozen=True, kw_only=True)
class ThrottleLimits:
    """See `scenario.loads.GuardSpec`."""

    late_share: float
    least_share: float
    decrease: float
    calm_windows: int
    increase: float


class ThrottleLaw:
    """Updates the share after each time window.

    Attributes:
        share: share of their own rate that publishers may use, 0 to 1.
        decreases, increases: numbers of its changes.
    """

    def __init__(self, limits: ThrottleLimits) -> None:
        self._limits = limits
        self._calm_windows = 0
        self.share = 1.0
        self.decreases = 0
        self.increases = 0

    def judge(self, late_share: float | None) -> float:
        """Returns the share after one more window.

        Args:
            late_share: late share of the window's messages; 1 in silence; ``None`` (no change) if none came and none is
                overdue.
        """
        if late_share is None:
            return self.share
        if late_share > self._limits.late_share:
            self._calm_windows = 0
            self._move_to(max(self._limits.least_share, self.share * self._limits.decrease))
            return self.share
        self._calm_windows += 1
        if self._calm_windows >= self._limits.calm_windows:
            self._move_to(min(1.0, self.share + self._limits.increase))
        return self.share

    def _move_to(self, share: float) -> None:
        self.decreases += share < self.share
        self.increases += share > self.share
        self.share = share


ANSWER_NS: Final = 500 * NS_PER_MS
"""Time after which a request to a publisher is repeated."""


class ThrottledPublisher:
    """Sends one publisher its allowed share of the rate until it confirms.

    Attributes:
        name: name of its node, with a leading slash.
    """

    def __init__(self, guard: Node, name: str, parameter: str) -> None:
        self.name = name
        self._parameter = parameter
        self._client = ParameterClient(guard, name.removeprefix("/"))
        self._obeyed: float | None = None
        self._asked: tuple[float, int] | None = None
        self._refusal = ""
        self._is_there = False
        self._is_mute = False

    @property
    def trouble(self) -> str:
        """Reason why its obedience is not confirmed; empty if it is."""
        if not self._is_there:
            return "no such node"
        if self._refusal:
            return self._refusal
        return "does not answer" if self._is_mute or self._obeyed is None else ""

    def is_settled(self, share: float) -> bool:
        """Returns True if no answer is pending: it has confirmed or refused this share, or is absent."""
        return not self._is_there or bool(self._refusal) or self._obeyed == share

    def ask(self, share: float, now_ns: int) -> None:
        """Sends it the share unless confirmed; must be called repeatedly."""
        self._is_there = self._client.server_is_ready()
        if not self._is_there:
            self._obeyed, self._asked, self._refusal, self._is_mute = None, None, "", False
            return
        if self.is_settled(share) or self._is_waiting(now_ns):
            return
        self._is_mute = self._asked is not None
        self._asked = (share, now_ns)
        self._client.set({self._parameter: share}, lambda refused: self._note_answer(share, refused))

    def _is_waiting(self, now_ns: int) -> bool:
        return self._asked is not None and now_ns - self._asked[1] < ANSWER_NS

    def _note_answer(self, share: float, refused: list[str]) -> None:
        self._is_mute = False
        self._refusal = refused[0] if refused else ""
        if not refused:
            self._obeyed = share
        if self._asked is not None and self._asked[0] == share:
            self._asked = None


_MEMORY_NS: Final = NS_PER_S
"""Age at which stretches are dropped: no message is sent so late."""


@dataclass(frozen=True)
class _Stretch:
    """An interval with one share.

    Attributes:
        passed_ns: schedule time at its start.
    """

    begin_ns: int
    passed_ns: int
    share: float

    def passed_by(self, now_ns: int) -> int:
        return self.passed_ns + math.floor((now_ns - self.begin_ns) * self.share)

    def real_ns(self, passed_ns: int) -> int:
        return self.begin_ns + math.ceil((passed_ns - self.passed_ns) / self.share)


class ThrottledTime:
    """Conversion between schedule time and real time, as in `ldos_load`'s `ThrottledSchedule`.

    Args:
        begin_ns: monotonic time from which the two can differ.
    """

    def __init__(self, begin_ns: int) -> None:
        # An immutable tuple, replaced as a whole: one thread throttles, another sends.
        self._stretches: tuple[_Stretch, ...] = (_Stretch(begin_ns, begin_ns, 1.0),)

    @property
    def share(self) -> float:
        """Speed of schedule time relative to real time."""
        return self._stretches[-1].share

    def throttle(self, share: float, now_ns: int) -> None:
        """Sets the speed of schedule time from now on, above 0 and up to 1."""
        new = _Stretch(now_ns, self.passed_by(now_ns), share)
        recent = (each for each in self._stretches[:-1] if each.begin_ns > now_ns - _MEMORY_NS)
        self._stretches = (*recent, self._stretches[-1], new)

    def passed_by(self, now_ns: int) -> int:
        """Returns the schedule time at a real time at or after the last change."""
        return self._stretches[-1].passed_by(now_ns)

    def real_ns(self, passed_ns: int) -> int:
        """Returns the real time of a schedule time."""
        stretches = self._stretches
        last = stretches[-1]
        if last.passed_ns <= passed_ns:  # the case of nearly all messages
            return last.real_ns(passed_ns)
        earlier = (each for each in reversed(stretches) if each.passed_ns <= passed_ns)
        return next(earlier, stretches[0]).real_ns(passed_ns)


_SHARED_CLOCK_NS: Final = 3600 * NS_PER_S
"""Stamps this close to the wall clock are wall-clock stamps; others belong to a simulated clock, which begins at 0."""

REFERENCE_NS: Final = NS_PER_S // 2
"""Time for which the smallest offset of a simulated clock is kept; the clock never catches up."""


class PathLateness:
    """Counts late messages in windows of time.

    A wall-clock stamp gives a message's age. A stamp of a simulated clock gives its age relative to the youngest
    message of the last half second: it is late if the message waits or the simulated clock runs too slowly. LEDBAT's
    base delay (RFC 6817) works in the same way.

    Attributes:
        received, late: stamped messages so far.
        unstamped: messages so far without a stamp.
        silent_windows: windows so far that ended in too long a silence.

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
        """Records a message."""
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
        """Returns the late share of the messages since the last call; 1 in silence, ``None`` if unknown."""
        received, late = self.received - self._before[0], self.late - self._before[1]
        self._before = (self.received, self.late)
        if now_ns - self._heard_ns >= self._silence_ns:
            self.silent_windows += 1
            return 1.0
        return late / received if received else None
