"""A node that measures the lateness of a topic's messages, and throttles publishers when it is too large.

Its only argument is a JSON object; `guard.guard_program` has the parameters. It runs until SIGINT or SIGTERM; then it
lets the publishers use their whole rate again. Each `report_period_s` it prints a JSON line with the counts since its
start; ``missing`` has a reason for each publisher that does not obey.

Reference: D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in
Computer Networks", Computer Networks and ISDN Systems 17 (1989).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.measure.load.flood_reports import stamp_reader

if TYPE_CHECKING:
    from pytest_ldos.robot.dds.node import Context


@dataclass(kw_only=True)
class ThrottleLaw:
    """The share of their rate that publishers may use, updated after each window; `GuardSpec` has its limits."""

    late_share: float
    least_share: float
    decrease: float
    calm_windows: int
    increase: float
    share: float = field(default=1.0, init=False)
    decreases: int = field(default=0, init=False)
    increases: int = field(default=0, init=False)
    _calm: int = field(default=0, init=False)

    def judge(self, late_share: float | None) -> float:
        """Returns the share after a window with this late share: 1 in silence, ``None`` (no change) if unknown."""
        if late_share is None:
            return self.share
        share = self.share
        if late_share > self.late_share:
            self._calm = 0
            share = max(self.least_share, self.share * self.decrease)
        else:
            self._calm += 1
            if self._calm >= self.calm_windows:
                share = min(1.0, self.share + self.increase)
        self.decreases += share < self.share
        self.increases += share > self.share
        self.share = share
        return share


ANSWER_NS: Final = 500 * NS_PER_MS  # time after which a request to a publisher is repeated


class Setter(Protocol):
    """A client that sets parameters of one node."""

    def server_is_ready(self) -> bool: ...

    def set(self, values: Mapping[str, float], on_done: Callable[[list[str]], None]) -> None:
        """Sets `values`; `on_done` gets the reasons for refused values."""


class ThrottledPublisher:
    """Sends one publisher its allowed share of the rate until it confirms."""

    def __init__(self, client: Setter, name: str, parameter: str) -> None:
        self.name = name
        self._parameter = parameter
        self._client = client
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
        """True if it is absent, or has confirmed or refused this share and no answer is pending."""
        return not self._is_there or (self._asked is None and (bool(self._refusal) or self._obeyed == share))

    def ask(self, share: float, now_ns: int) -> None:
        """Sends it the share unless confirmed; call it repeatedly."""
        self._is_there = self._client.server_is_ready()
        if not self._is_there:
            self._obeyed, self._asked, self._refusal, self._is_mute = None, None, "", False
            return
        is_waiting = self._asked is not None and now_ns - self._asked[1] < ANSWER_NS
        if self.is_settled(share) or is_waiting:
            return
        self._is_mute = self._asked is not None
        self._asked = (share, now_ns)
        self._client.set({self._parameter: share}, lambda refused: self._note_answer(share, refused))

    def _note_answer(self, share: float, refused: list[str]) -> None:
        self._is_mute = False
        self._refusal = refused[0] if refused else ""
        if not refused:
            self._obeyed = share
        if self._asked is not None and self._asked[0] == share:
            self._asked = None


_SHARED_CLOCK_NS: Final = 3600 * NS_PER_S  # stamps farther from the wall clock are a simulated one's, which begins at 0
REFERENCE_NS: Final = NS_PER_S // 2  # so long the least offset of a simulated clock is kept; it never catches up


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
        """Returns the late share of the messages since the last call: 1 in silence, ``None`` if none came otherwise."""
        received, late = self.received - self._before[0], self.late - self._before[1]
        self._before = (self.received, self.late)
        if now_ns - self._heard_ns >= self._silence_ns:
            self.silent_windows += 1
            return 1.0
        return late / received if received else None


DEPTH: Final = 100
_FAREWELL_NS: Final = 3 * NS_PER_S  # time limit for releasing the publishers at the end


class Guard:
    """Its node calls the functions without arguments, `end_window` and `report` periodically.

    `stamp_of` returns a message's stamp, ns, if any; `setter_of` a client of a node, whose name has no slash before it.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        *,
        stamp_of: Callable[[Any], int | None],
        setter_of: Callable[[str], Setter],
    ) -> None:
        self._stamp_of = stamp_of
        self._lateness = PathLateness(
            deadline_ns=round(parameters["deadline_ms"] * NS_PER_MS),
            silence_ns=round(parameters["silence_ms"] * NS_PER_MS),
            now_ns=time.monotonic_ns(),
        )
        limits = ("late_share", "least_share", "decrease", "calm_windows", "increase")
        self._is_ending = False
        self._law = ThrottleLaw(**{name: parameters[name] for name in limits})
        self._publishers = [
            ThrottledPublisher(setter_of(name.removeprefix("/")), name, parameters["parameter"])
            for name in parameters["publishers"]
        ]

    def on_message(self, message: Any) -> None:
        self._lateness.note(self._stamp_of(message), wall_ns=time.time_ns(), mono_ns=time.monotonic_ns())

    def end_window(self) -> None:
        if self._is_ending:
            return
        now_ns = time.monotonic_ns()
        if self._lateness.received:  # before its first message, the path may not be running
            self._law.judge(self._lateness.end_window(now_ns))
        self._tell(self._law.share, now_ns)

    def _tell(self, share: float, now_ns: int) -> None:
        for publisher in self._publishers:
            publisher.ask(share, now_ns)

    def report(self) -> None:
        report = {
            "mono_ns": time.monotonic_ns(),
            "share": self._law.share,
            "received": self._lateness.received,
            "late": self._lateness.late,
            "unstamped": self._lateness.unstamped,
            "silent_windows": self._lateness.silent_windows,
            "decreases": self._law.decreases,
            "increases": self._law.increases,
            "missing": [f"{each.name}: {each.trouble}" for each in self._publishers if each.trouble],
        }
        with contextlib.suppress(BrokenPipeError):  # the throttled publishers must still be released
            os.write(sys.stdout.fileno(), (json.dumps(report) + "\n").encode())

    def release(self, spin_once: Callable[[], None]) -> None:
        """Lets all publishers use their whole rate; waits for their confirmation, up to a limit."""
        self._is_ending, self._law.share = True, 1.0
        limit_ns = time.monotonic_ns() + _FAREWELL_NS
        while (now_ns := time.monotonic_ns()) < limit_ns:
            self._tell(1.0, now_ns)
            if all(each.is_settled(1.0) for each in self._publishers):
                return
            spin_once()


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    from pytest_ldos.robot.dds.action import ParameterClient  # noqa: PLC0415 - for the embedded stack only
    from pytest_ldos.robot.dds.endpoint import QosProfile  # noqa: PLC0415
    from pytest_ldos.robot.dds.node import Node  # noqa: PLC0415

    node = Node(context, parameters["name"])
    guard = Guard(
        parameters, stamp_of=stamp_reader(parameters["type"]), setter_of=lambda name: ParameterClient(node, name)
    )
    qos = QosProfile(depth=DEPTH, reliable=False)
    node.create_subscription(parameters["type"], parameters["topic"], guard.on_message, qos=qos)
    node.create_timer(round(parameters["window_ms"] * NS_PER_MS), guard.end_window)
    node.create_timer(round(parameters["report_period_s"] * NS_PER_S), guard.report)
    limit = threading.Timer(parameters["seconds"], context.executor.stop)
    limit.daemon = True
    limit.start()
    return lambda: guard.release(context.executor.spin_once)


if __name__ == "__main__":
    from pytest_ldos.robot.dds.node import run_node

    run_node("guard", build)
