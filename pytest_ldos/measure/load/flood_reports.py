"""Reports of the processes of a flood and of a guard while they run: one JSON object per line."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import NS_PER_S
from pytest_ldos.host.processes import Child
from pytest_ldos.measure.load.send_errors import SendErrors

_REAP_S: Final = 5.0
_LONGEST_SILENCE_S: Final = 5.0
_READING_S: Final = 1.0


@dataclass(frozen=True)
class Received:
    """Counts of a counter so far.

    Attributes:
        received: messages by topic.
        lost: messages missing between those received, by topic.
    """

    mono_ns: int
    received: Mapping[str, int]
    lost: Mapping[str, int]

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        return cls(report["mono_ns"], report["received"], report["lost"])

    @property
    def has_begun(self) -> bool:
        return all(self.received.values())

    @property
    def messages(self) -> int:
        """Number of messages on all topics."""
        return sum(self.received.values())


@dataclass(frozen=True)
class Sent:
    """Counts of a process with publishers so far.

    Attributes:
        published: messages by topic.
        given_up: messages that were due but not sent, because the process was too far behind.
        withheld: messages that were due but not let through by a throttle.
    """

    mono_ns: int
    published: Mapping[str, int]
    given_up: int
    errors: SendErrors
    withheld: int = 0

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        # An older version of the workspace, as in a base, only counts messages.
        bins = {int(number): count for number, count in report.get("error_bins", {}).items()}
        withheld = report["requested"] - report["allowed"] if "allowed" in report else 0
        return cls(report["mono_ns"], report["published"], report.get("given_up", 0), SendErrors(bins), withheld)

    @property
    def has_begun(self) -> bool:
        return all(self.published.values())

    @property
    def messages(self) -> int:
        """Number of messages on all topics."""
        return sum(self.published.values())


@dataclass(frozen=True)
class Guarded:
    """Observations and actions of a guard so far.

    Attributes:
        share: share that publishers may use now.
        received, late: messages with a stamp at the end of its path.
        silent_windows: windows in which it heard nothing for too long.
        missing: a text, ``NAME: REASON``, for each publisher that does not obey.
    """

    mono_ns: int
    share: float
    received: int
    late: int
    silent_windows: int
    decreases: int
    increases: int
    missing: tuple[str, ...]

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        names = ("mono_ns", "share", "received", "late", "silent_windows", "decreases", "increases")
        return cls(**{name: report[name] for name in names}, missing=tuple(report["missing"]))

    @property
    def has_begun(self) -> bool:
        return self.received > 0


Report = TypeVar("Report", Received, Sent, Guarded)


class ReportStream(Generic[Report]):
    """The reports of one process; measurement begins when `mark` is called.

    Attributes:
        first, last: first and last report of the measured time; ``None`` until there is one.
        misunderstood: a line that is not a report.
    """

    def __init__(
        self, child: Child, parse: Callable[[Mapping[str, Any]], Report], changed: threading.Condition
    ) -> None:
        self.child = child
        self.first: Report | None = None
        self.last: Report | None = None
        self._heard_ns = time.monotonic_ns()
        self.misunderstood = ""
        self._parse: Callable[[Mapping[str, Any]], Report] = parse
        self._changed = changed
        threading.Thread(target=self._follow, name=f"reports of {child.name}", daemon=True).start()

    @property
    def has_begun(self) -> bool:
        return self.last is not None and self.last.has_begun

    def silence_ns(self) -> int:
        """Returns the time since the last report."""
        return time.monotonic_ns() - self._heard_ns

    def find_fault(self) -> str:
        """Returns what is wrong with its reports: an invalid one, or too long a silence; empty if nothing is.

        Must be called with the condition held. Reports that came while this process itself was stopped are read first.
        """
        longest_ns = _LONGEST_SILENCE_S * NS_PER_S
        if self.misunderstood or self._changed.wait_for(lambda: self.silence_ns() <= longest_ns, _READING_S):
            return self.misunderstood
        return f"{self.child.name} has said nothing for {self.silence_ns() / NS_PER_S:.0f} s"

    def mark(self) -> None:
        """Begins the measurement with the last report."""
        self.first = self.last

    def _follow(self) -> None:
        assert self.child.process.stdout is not None
        for line in self.child.process.stdout:
            self._take(line)
        self.child.process.wait(_REAP_S)
        with self._changed:
            self._changed.notify_all()

    def _take(self, line: str) -> None:
        with self._changed:
            try:
                self.last = self._parse(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                self.misunderstood = self.misunderstood or f"{self.child.name} said {one_line(line.strip())[:200]!r}"
            self._heard_ns = time.monotonic_ns()
            self._changed.notify_all()
