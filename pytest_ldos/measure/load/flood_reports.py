"""Commands of the processes of floods, and their reports, one JSON object per line.

Bins of inter-send errors are 1 ns wide up to 32 ns, then a 32nd to a 16th of their lower end: 16 for each power of two.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Self, TypeVar

from pytest_ldos.base.text import NS_PER_S, one_line
from pytest_ldos.host.processes import Child
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.scenario.loads import DdsFloodSpec, Reliability

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

    @classmethod
    def parse(cls, report: Mapping[str, Any]) -> Self:
        # An older version of the workspace, as in a base, only counts messages.
        errors = Counter({int(number): count for number, count in report.get("error_bins", {}).items()})
        return cls(report["mono_ns"], report["published"], report.get("given_up", 0), errors)


Report = TypeVar("Report", Received, Sent)


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
