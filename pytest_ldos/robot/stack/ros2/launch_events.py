"""Events of the launcher, and the state of the stack they imply: processes running, ended and failed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from pytest_ldos.host.ends import describe_end
from pytest_ldos.host.logs import quoted


@dataclass(frozen=True)
class ProcessBegan:
    """A launched process has started."""

    name: str
    pid: int


@dataclass(frozen=True)
class ProcessEnded:
    """A launched process has ended; `code` is its exit code, or minus the signal that killed it."""

    name: str
    pid: int
    code: int

    def describe(self) -> str:
        return describe_end(self.name, self.code)


@dataclass(frozen=True)
class LaunchFailed:
    """The launch file could not be run to its end."""

    reason: str


_NUMBER: Final = re.compile(r"-\d+$")

LaunchEvent = ProcessBegan | ProcessEnded | LaunchFailed

_KINDS: dict[str, Callable[..., LaunchEvent]] = {
    kind.__name__: kind for kind in (ProcessBegan, ProcessEnded, LaunchFailed)
}


def to_line(event: LaunchEvent) -> str:
    return json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n"


def parse_event(line: str) -> LaunchEvent:
    """Parses an event of the launcher.

    Raises:
        ValueError: the line is not an event.
    """
    values: dict[str, Any] = json.loads(line)
    kind = _KINDS.get(values.pop("event", ""))
    if kind is None:
        raise ValueError(f"unknown event: {line.strip()}")
    return kind(**values)


class LaunchWatch:
    """The state of a launch so far. May be queried from another thread while it follows events.

    Attributes:
        started: every process that was ever started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.started: list[ProcessBegan] = []
        self._ended: list[ProcessEnded] = []
        self._failures: list[str] = []
        self._is_over = False

    def follow(self, lines: Iterable[str]) -> None:
        """Processes events until the launcher's output ends."""
        for line in lines:
            try:
                event = parse_event(line)
            except (ValueError, TypeError):
                event = LaunchFailed(f"the launcher said what is no event: {quoted(line)}")
            self.take(event)
        with self._lock:
            self._is_over = True

    def take(self, event: LaunchEvent) -> None:
        with self._lock:
            match event:
                case ProcessBegan():
                    self.started.append(event)
                case ProcessEnded():
                    self._ended.append(event)
                case LaunchFailed():
                    self._failures.append(event.reason)

    def what_failed(self) -> str:
        """Returns why the stack can no longer be complete; empty while it can.

        A process that ends with exit code 0 has done its work, as spawners do. Of several failed
        processes, the first is the reason: a launch file may end all others after it.
        """
        with self._lock:
            reasons = [*self._failures, *(each.describe() for each in self._ended if each.code != 0)]
            if self._is_over:
                reasons.append("the launch file ended, and with it its processes")
            return next(iter(reasons), "")

    def pids(self) -> set[int]:
        with self._lock:
            return {each.pid for each in self.started}

    def named(self) -> dict[int, str]:
        """Names of all processes by pid, without the number that launch adds to each."""
        with self._lock:
            return {each.pid: _NUMBER.sub("", each.name) for each in self.started}

    def running(self) -> dict[int, str]:
        """Names of the processes that run, by pid."""
        with self._lock:
            ended = {each.pid for each in self._ended}
        return {pid: name for pid, name in self.named().items() if pid not in ended}
