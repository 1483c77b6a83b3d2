"""Commands of the processes of floods and guards, and their reports, one JSON object per line.

Bins of inter-send errors are 1 ns wide up to 32 ns, then a 32nd to a 16th of their lower end: 16 for each power of two.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import NS_PER_S, one_line
from pytest_ldos.host.processes import Child
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.robot.stack.messages import find_type
from pytest_ldos.scenario.loads import DdsFloodSpec, Reliability

if TYPE_CHECKING:
    from pytest_ldos.robot.dds.endpoint import Message

LONGEST_S: Final = 1800.0  # time limit of a load's processes, in case their owner disappears
_BITS: Final = 5
_BINS_AN_OCTAVE: Final = 1 << (_BITS - 1)


def bin_of(error_ns: int) -> int:
    size_ns = abs(error_ns)
    shift = max(0, size_ns.bit_length() - _BITS)
    return shift * _BINS_AN_OCTAVE + (size_ns >> shift)


def top_of(number: int) -> int:
    """Largest error that a bin holds, ns."""
    shift = max(0, number // _BINS_AN_OCTAVE - 1)
    return ((number - shift * _BINS_AN_OCTAVE + 1) << shift) - 1


def percentile_ns(bins: Counter[int], percent: float) -> int:
    """Upper bound of a percentile of the errors in these bins, to a bin's width; 0 without errors."""
    wanted, seen = percent / 100 * bins.total(), 0
    for number in sorted(bins):
        seen += bins[number]
        if seen >= wanted:
            return top_of(number)
    return 0


_REAP_S: Final = 5.0
_LONGEST_SILENCE_S: Final = 5.0
_READING_S: Final = 1.0


@dataclass(frozen=True)
class Counts:
    """Messages sent or received so far, by topic."""

    mono_ns: int
    by_topic: Mapping[str, int]

    @property
    def has_begun(self) -> bool:
        return all(self.by_topic.values())

    @property
    def messages(self) -> int:
        return sum(self.by_topic.values())


@dataclass(frozen=True)
class Received(Counts):
    """Counts of a counter; `lost` messages are missing between those received, by topic."""

    lost: Mapping[str, int]

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        return cls(report["mono_ns"], report["received"], report["lost"])


@dataclass(frozen=True)
class Sent(Counts):
    """Counts of a process with publishers."""

    given_up: int  # messages that were dropped because the process was too late
    # numbers of inter-send errors, by bin: deviations of the interval between two sends of one publisher from the
    # schedule
    errors: Counter[int]
    withheld: int = 0  # messages that were due but held back by a throttle

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        # An older version of the workspace, as in a base, only counts messages.
        errors = Counter({int(number): count for number, count in report.get("error_bins", {}).items()})
        withheld = report["requested"] - report["allowed"] if "allowed" in report else 0
        return cls(report["mono_ns"], report["published"], report.get("given_up", 0), errors, withheld)


@dataclass(frozen=True)
class Guarded:
    """Counts of a guard so far."""

    mono_ns: int
    share: float  # share of their rate that publishers may use now
    # received, late: messages with a stamp at the end of its path
    received: int
    late: int
    silent_windows: int  # windows with too long a silence
    decreases: int
    increases: int
    missing: tuple[str, ...]  # ``NAME: REASON`` for each publisher that does not obey

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        names = ("mono_ns", "share", "received", "late", "silent_windows", "decreases", "increases")
        return cls(**{name: report[name] for name in names}, missing=tuple(report["missing"]))

    @property
    def has_begun(self) -> bool:
        return self.received > 0


Report = TypeVar("Report", Received, Sent, Guarded)


class ReportStream(Generic[Report]):
    """The reports of one process.

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
        return time.monotonic_ns() - self._heard_ns

    def find_fault(self) -> str:
        """Returns the fault of its reports: an invalid line, or too long a silence; empty if there is none.

        Call it with the condition held. Reports that arrived while this process was stopped are read first.
        """
        longest_ns = _LONGEST_SILENCE_S * NS_PER_S
        if self.misunderstood or self._changed.wait_for(lambda: self.silence_ns() <= longest_ns, _READING_S):
            return self.misunderstood
        return f"{self.child.name} has printed nothing for {self.silence_ns() / NS_PER_S:.0f} s"

    def _follow(self) -> None:
        assert self.child.process.stdout is not None
        for line in self.child.process.stdout:
            with self._changed:
                try:
                    self.last = self._parse(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError):
                    printed = one_line(line.strip())[:200]
                    self.misunderstood = self.misunderstood or f"{self.child.name} printed {printed!r}"
                self._heard_ns = time.monotonic_ns()
                self._changed.notify_all()
        self.child.process.wait(_REAP_S)
        with self._changed:
            self._changed.notify_all()


_TRANSFORMS: Final = "tf2_msgs/msg/TFMessage"
_HEADER: Final = "std_msgs/msg/Header"


def stamp_reader(ros_type: str) -> Callable[[Message], int | None]:
    """Returns a reader of a type's stamp, ns: the header's or the first transform's; a stamp of 0 gives ``None``.

    Raises `ConfigurationError` for a type that is not known here, or has no stamp.
    """

    def ns(stamp: Message) -> int | None:
        return int(stamp.sec) * NS_PER_S + int(stamp.nanosec) or None

    if ros_type == _TRANSFORMS:
        return lambda message: ns(message.transforms[0].header.stamp) if message.transforms else None
    from pytest_ldos.robot.dds.endpoint import fields_of  # noqa: PLC0415 - its library comes with the extra `embedded`

    try:
        fields = fields_of(ros_type)
    except KeyError:
        raise ConfigurationError(
            f"messages of type {ros_type} are not known here", remedy="name a topic whose type ROS 2 itself defines"
        ) from None
    if not any(name == "header" and detail[1] == _HEADER for name, detail in fields):
        raise _without_stamp(ros_type)
    return lambda message: ns(message.header.stamp)


def _without_stamp(ros_type: str) -> ConfigurationError:
    return ConfigurationError(
        f"messages of type {ros_type} carry no header.stamp, which tells when a path began",
        remedy="guard a path that ends at a topic with a header, such as /tf or /joint_states",
    )


_LIST: Final = re.compile(r"sequence<(\w+)/(\w+)(, \d+)?>")
_ENCAPSULATION: Final = 4  # bytes before an encoded message
_COUNT: Final = 4  # bytes of the length of a list


def stamp_place(ros_type: str) -> int:
    """Returns the place of the first stamp in an encoded message that begins with a header, or a list of such messages.

    Raises `ConfigurationError` if ROS 2 as it is sourced does not have the type, or it has no such stamp.
    """
    first = _first_field(ros_type)
    nested = _LIST.fullmatch(first)
    if first == "std_msgs/Header":
        return _ENCAPSULATION
    if nested is not None and _first_field(f"{nested[1]}/msg/{nested[2]}") == "std_msgs/Header":
        return _ENCAPSULATION + _COUNT
    raise _without_stamp(ros_type)


def _first_field(ros_type: str) -> str:
    return str(next(iter(find_type(ros_type, "msg").get_fields_and_field_types().values()), ""))


def read_stamp(place: int, data: bytes) -> int | None:
    """Returns the stamp at a place, ns; ``None`` if it is 0, or if the list before it is empty."""
    if len(data) < place + 8 or (place > _ENCAPSULATION and not any(data[_ENCAPSULATION:place])):
        return None
    seconds, nanoseconds = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, place)
    return int(seconds) * NS_PER_S + int(nanoseconds) or None


_MODULE: Final = "pytest_ldos.measure.load.flood_node"
ROS_MODULE: Final = "pytest_ldos.measure.load.ros_node"
_TOPIC: Final = "/flood_topic_"
_PUBLISHER: Final = "flood_publisher_"


@dataclass(frozen=True)
class FloodPrograms:
    """Commands of the receiver and of the publishers by name, and variables for all of them."""

    counter: Sequence[str]
    publishers: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


def shares(spec: DdsFloodSpec) -> Iterator[range]:
    """Yields the topic numbers of each process, from 1; the processes' shares differ by at most one topic."""
    begin = 1
    for process in range(spec.processes):
        count = spec.publishers // spec.processes + (process < spec.publishers % spec.processes)
        yield range(begin, begin + count)
        begin += count


def flood_nodes(spec: DdsFloodSpec) -> tuple[str, ...]:
    """Full names of the nodes that publish."""
    return tuple(f"/{_PUBLISHER}{process}" for process in range(1, spec.processes + 1))


def flood_programs(spec: DdsFloodSpec, *, domain: int, environment: Mapping[str, str] | None) -> FloodPrograms:
    """Commands of Python processes over Cyclone DDS or, with the environment of ROS 2 nodes, over rclpy."""
    module = _MODULE if environment is None else ROS_MODULE
    common = {"domain": domain, "reliable": spec.reliability == Reliability.RELIABLE}
    sending = {
        "rate_hz": float(spec.rate_hz),
        "burst": spec.burst,
        "size_bytes": spec.size_bytes,
        "depth": spec.depth,
        "awaits_readers": spec.readers,
        "seconds": LONGEST_S,
    }

    def command(program: str, name: str, numbers: range, **parameters: object) -> list[str]:
        topics = [f"{_TOPIC}{number}" for number in numbers]
        return node_command(module, program=program, name=name, topics=topics, **common, **parameters)

    return FloodPrograms(
        environment=bound_to_loopback() if environment is None else {**environment, "ROS_DOMAIN_ID": str(domain)},
        counter=command("flood_counter", "flood_counter", range(1, spec.publishers + 1)),
        publishers={
            (name := f"{_PUBLISHER}{index}"): command("flood_publisher", name, share, **sending)
            for index, share in enumerate(shares(spec), start=1)
        },
    )


def node_command(module: str, **parameters: object) -> list[str]:
    return [sys.executable, "-m", module, json.dumps(parameters)]
