"""Messages of a flood, their schedule, and reports of its processes: one JSON object per line.

Bins are 1 ns wide up to 32 ns, then a 32nd to a 16th of their lower end: 16 for each power of two.
`ldos_load`'s `ErrorBins` has the same bins.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import NS_PER_S, one_line
from pytest_ldos.host.processes import Child
from pytest_ldos.robot.dds.messages import default, encode
from pytest_ldos.scenario.loads.flood import SEQUENCE_BYTES

if TYPE_CHECKING:
    from pytest_ldos.robot.dds.messages import Message


_BITS: Final = 5
_BINS_AN_OCTAVE: Final = 1 << (_BITS - 1)


def bin_of(error_ns: int) -> int:
    """Returns the bin of an error of either sign."""
    size_ns = abs(error_ns)
    shift = max(0, size_ns.bit_length() - _BITS)
    return shift * _BINS_AN_OCTAVE + (size_ns >> shift)


def top_of(number: int) -> int:
    """Returns the largest error that a bin holds, ns."""
    shift = max(0, number // _BINS_AN_OCTAVE - 1)
    return ((number - shift * _BINS_AN_OCTAVE + 1) << shift) - 1


@dataclass(frozen=True)
class SendErrors:
    """Sizes of inter-send errors: deviations of the interval between two sends of one publisher from the schedule.

    Attributes:
        bins: number of errors in each bin.
    """

    bins: Mapping[int, int]

    @property
    def count(self) -> int:
        return sum(self.bins.values())

    def percentile_ns(self, percent: float) -> int:
        """Returns an upper bound of a percentile of the error sizes, to a bin's width; 0 without errors."""
        wanted, seen = percent / 100 * self.count, 0
        for number in sorted(self.bins):
            seen += self.bins[number]
            if seen >= wanted:
                return top_of(number)
        return 0

    def since(self, earlier: SendErrors) -> SendErrors:
        """Returns the errors that came after `earlier`."""
        more = {number: count - earlier.bins.get(number, 0) for number, count in self.bins.items()}
        return SendErrors({number: count for number, count in more.items() if count})


def all_errors(parts: Iterable[SendErrors]) -> SendErrors:
    """Combines the errors of several publishers."""
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part.bins)
    return SendErrors(total)


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
        given_up: messages that were dropped because the process was too late.
        withheld: messages that were due but held back by a throttle.
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
    """Counts of a guard so far.

    Attributes:
        share: share that publishers may use now.
        received, late: messages with a stamp at the end of its path.
        silent_windows: windows with too long a silence.
        missing: ``NAME: REASON`` for each publisher that does not obey.
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
        """Returns the fault of its reports: an invalid line, or too long a silence; empty if there is none.

        Must be called with the condition held. Reports that arrived while this process was stopped are read first.
        """
        longest_ns = _LONGEST_SILENCE_S * NS_PER_S
        if self.misunderstood or self._changed.wait_for(lambda: self.silence_ns() <= longest_ns, _READING_S):
            return self.misunderstood
        return f"{self.child.name} has printed nothing for {self.silence_ns() / NS_PER_S:.0f} s"

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
                self.misunderstood = self.misunderstood or f"{self.child.name} printed {one_line(line.strip())[:200]!r}"
            self._heard_ns = time.monotonic_ns()
            self._changed.notify_all()


@dataclass(frozen=True, kw_only=True)
class FloodSchedule:
    """Bursts at equal intervals from a fixed start, so that a late burst does not delay later ones.

    Several publishers are interleaved: each sends at its own rate, evenly between the others' bursts.

    Attributes:
        rate_hz: messages per second of each publisher.
        burst: messages that one publisher sends at once.
        publishers: number of interleaved publishers.
    """

    rate_hz: float
    burst: int
    publishers: int
    begin_ns: int

    @property
    def between_bursts_ns(self) -> float:
        return NS_PER_S * self.burst / (self.rate_hz * self.publishers)

    def due_ns(self, slot: int) -> int:
        """Returns the time at which a message is due; slots count the messages of all publishers."""
        return self.begin_ns + math.ceil(slot // self.burst * self.between_bursts_ns)

    def publisher_of(self, slot: int) -> int:
        return slot // self.burst % self.publishers

    def due_by(self, now_ns: int) -> int:
        """Returns the number of messages due at or before a time."""
        if now_ns < self.begin_ns:
            return 0
        bursts = int((now_ns - self.begin_ns) / self.between_bursts_ns) + 1
        # The division is rounded; `due_ns` decides.
        while self.due_ns(bursts * self.burst) <= now_ns:
            bursts += 1
        while bursts > 1 and self.due_ns((bursts - 1) * self.burst) > now_ns:
            bursts -= 1
        return bursts * self.burst


_TEXT_AT: Final = 8
"""Offset of the text, after CDR's header and the length of the text."""

_END: Final = _TEXT_AT + SEQUENCE_BYTES


class NumberedText:
    """Encoded messages of one size."""

    def __init__(self, size_bytes: int) -> None:
        data = encode(default("std_msgs/msg/String", data="X" * size_bytes))
        self._head, self._tail = data[:_TEXT_AT], data[_END:]

    def message(self, number: int) -> bytes:
        return b"%b%016x%b" % (self._head, number, self._tail)


def number_of(data: bytes) -> int:
    """Returns the number of an encoded message.

    Raises:
        ValueError: it has none, because another program writes to this topic.
    """
    return int(data[_TEXT_AT:_END], 16)


_TRANSFORMS: Final = "tf2_msgs/msg/TFMessage"
_HEADER: Final = "std_msgs/msg/Header"


def stamp_reader(ros_type: str) -> Callable[[Message], int | None]:
    """Returns a reader of a type's stamp, ns: the header's or the first transform's; a stamp of 0 gives ``None``.

    Raises:
        ConfigurationError: the type is not known here, or its messages have no stamp.
    """
    if ros_type == _TRANSFORMS:
        return _first_transform_ns
    from pytest_ldos.robot.dds.messages import fields_of  # noqa: PLC0415 - its library comes with the extra `embedded`

    try:
        fields = fields_of(ros_type)
    except KeyError:
        raise ConfigurationError(
            f"messages of type {ros_type} are not known here", remedy="name a topic whose type ROS 2 itself defines"
        ) from None
    if not any(name == "header" and detail[1] == _HEADER for name, detail in fields):
        raise ConfigurationError(
            f"messages of type {ros_type} carry no header.stamp, which tells when a path began",
            remedy="guard a path that ends at a topic with a header, such as /tf or /joint_states",
        )
    return _header_ns


def _header_ns(message: Message) -> int | None:
    return _ns(message.header.stamp)


def _first_transform_ns(message: Message) -> int | None:
    return _ns(message.transforms[0].header.stamp) if message.transforms else None


def _ns(stamp: Message) -> int | None:
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec) or None
