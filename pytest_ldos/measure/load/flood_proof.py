"""Programs of a flood, and its proof.

The number of messages sent in time decides if the load was reached. Losses on the way to the readers are an effect of
the load: they are reported, but do not invalidate its trials. Only readers that received nothing prove that there
was no flood.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.measure.load.flood_reports import Received, ReportStream, SendErrors, Sent, all_errors
from pytest_ldos.measure.load.protocol import NOT_READ, GroupedProof, GroupReading
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.scenario.loads.flood import DdsFloodSpec, FloodDomain, Reliability
from pytest_ldos.scenario.loads.spec import SchedulerGroup

REACHED_FRACTION: Final = 0.99
"""Smallest accepted fraction of the requested rate."""

_LATE_S: Final = 0.1
"""Allowed lateness of a publisher at the last measurement."""

_LATE_SHARE: Final = 0.05
"""Allowed lateness as a fraction of the measured time, for short measurements."""

_UNREPORTED_NS: Final = 500 * NS_PER_MS
"""Time without a report after which a publisher counts as having sent nothing."""

_BYTES_A_MB: Final = 1e6
_NS_PER_US: Final = 1e3

Slack = Callable[[float], float]
"""Number of messages that may be missing, by seconds."""


@dataclass(frozen=True, kw_only=True)
class FloodProof(GroupedProof):
    """See `GroupedProof`.

    Attributes:
        requested_hz: messages per second of all publishers together.
        allowed_hz: the part of `requested_hz` that a guard let through; equal to it without throttling.
        rate_hz: messages per second that the publishers sent, by their own count; compared with `allowed_hz`, it
            decides `shortfall`.
        sent_mb_s: million bytes of text per second that the publishers sent.
        received_hz: messages per second that the matched readers received; ``None`` without readers.
        received_share: share of the messages sent in that time, 0 to 1; ``None`` without matched readers.
        lost: messages missing at the receiver, by their numbers.
        given_up: messages that publishers did not send because they were too far behind.
        error_p50_us, error_p99_us, error_max_us: deviation of the interval between two sends of one publisher from
            the schedule (to a sixteenth, rounded up).
        details: text for people.
    """

    publishers: int
    size_bytes: int
    requested_hz: float
    allowed_hz: float
    rate_hz: float
    sent_mb_s: float
    received_hz: float | None
    received_share: float | None
    lost: int
    given_up: int
    error_p50_us: float
    error_p99_us: float
    error_max_us: float
    details: str

    @property
    def applied(self) -> float:
        return self.rate_hz

    def describe(self) -> str:
        text = (
            f"DDS flood: {self.rate_hz:.0f} of {self.requested_hz:.0f} msg/s sent{self._throttled_words}"
            f"{self._received_words} "
            f"({self.details}); {self.sent_mb_s:.1f} MB/s"
        )
        if not self.error_max_us:
            return text
        return (
            f"{text}; inter-send error p50 {self.error_p50_us:.0f} µs, p99 {self.error_p99_us:.0f} µs, "
            f"max {self.error_max_us:.0f} µs"
        )

    @property
    def _throttled_words(self) -> str:
        return f", throttled to {self.allowed_hz:.0f}" if self.allowed_hz < self.requested_hz else ""

    @property
    def _received_words(self) -> str:
        if self.received_share is None:
            return ""
        if self.received_share == 1:
            return ", all received"
        return f", {100 * self.received_share:.1f} % of them received{f', {self.lost} lost' if self.lost else ''}"


@dataclass(frozen=True)
class Counted:
    """Number of messages in an interval of time."""

    messages: float = 0.0
    seconds: float = 0.0

    @property
    def rate_hz(self) -> float:
        return self.messages / self.seconds if self.seconds > 0 else 0.0


def build_proof(
    spec: DdsFloodSpec,
    *,
    counter: ReportStream[Received] | None,
    publishers: Sequence[ReportStream[Sent]],
    failure: str,
    is_impaired: bool = False,
    group: GroupReading = NOT_READ,
) -> FloodProof:
    """Builds the proof from the reports since the measurement began.

    Args:
        counter: reports of the receiver, for a flood with matched readers.
        failure: reason why the flood is incomplete; empty if it is complete.
        is_impaired: True if its messages cross a network that deliberately loses messages.
    """
    sent = _sent(publishers, until_ns=_newest_ns([*publishers, *([counter] if counter else [])]))
    allowed_hz = spec.total_hz - sum(_withheld_hz(stream) for stream in publishers)
    received = None if counter is None else _counted(counter)
    lost = 0 if counter is None else _lost(counter)
    slack = partial(_slack, spec, allowed_hz)
    share = None if received is None else _received_share(slack, sent, received, lost)
    errors = all_errors(_errors(stream) for stream in publishers)
    nothing_came = "" if received is None or is_impaired else _silence(slack, sent, received)
    return FloodProof(
        kind=spec.KIND,
        seconds=sent.seconds if received is None else min(sent.seconds, received.seconds),
        shortfall=failure or group.shortfall or _shortfall(allowed_hz, slack, sent) or nothing_came,
        group=spec.group,
        group_found=group.found,
        publishers=spec.publishers,
        size_bytes=spec.size_bytes,
        requested_hz=spec.total_hz,
        allowed_hz=allowed_hz,
        rate_hz=sent.rate_hz,
        sent_mb_s=sent.rate_hz * spec.size_bytes / _BYTES_A_MB,
        received_hz=None if received is None else received.rate_hz,
        received_share=share,
        lost=lost,
        given_up=sum(_given_up(stream) for stream in publishers),
        error_p50_us=errors.percentile_ns(50) / _NS_PER_US,
        error_p99_us=errors.percentile_ns(99) / _NS_PER_US,
        error_max_us=errors.percentile_ns(100) / _NS_PER_US,
        details=_describe(spec),
    )


def _describe(spec: DdsFloodSpec) -> str:
    parts = [f"{spec.publishers} publishers, {spec.size_bytes} bytes"]
    parts += [f"in bursts of {spec.burst}"] if spec.burst > 1 else []
    parts += [f"from {spec.participants} participants"] if spec.participants else []
    parts += ["reliable"] if spec.reliability == Reliability.RELIABLE else []
    parts += ["on another domain"] if spec.domain == FloodDomain.OTHER else []
    parts += [] if spec.readers else ["no readers"]
    parts += ["each in a session of its own"] if spec.group == SchedulerGroup.OWN else []
    return ", ".join(parts)


def _shortfall(allowed_hz: float, slack: Slack, sent: Counted) -> str:
    """Returns the reason why too little was sent; empty if it was enough."""
    due = allowed_hz * sent.seconds
    if due and due - sent.messages <= max((1 - REACHED_FRACTION) * due, slack(sent.seconds)):
        return ""
    return f"the flood reached {sent.rate_hz:.0f} of {allowed_hz:.0f} msg/s: its publishers sent no more in time"


def _slack(spec: DdsFloodSpec, allowed_hz: float, seconds: float) -> float:
    """Allowed number of missing messages: each publisher's last burst may be pending or a little late."""
    return max(spec.publishers * spec.burst, allowed_hz * min(_LATE_S, _LATE_SHARE * seconds))


def _silence(slack: Slack, sent: Counted, received: Counted) -> str:
    """Returns the failure if readers received nothing although more was sent than can be in transit."""
    if received.messages or sent.messages <= slack(sent.seconds):
        return ""
    return f"the flood's matched readers received none of {sent.messages:.0f} messages"


def _received_share(slack: Slack, sent: Counted, received: Counted, lost: int) -> float:
    """Share received. Messages neither received nor in transit are missing, even without a later message."""
    on_its_way = slack(received.seconds)
    missing = max(lost, sent.rate_hz * received.seconds - received.messages - on_its_way)
    return received.messages / (received.messages + missing) if received.messages else 0.0


def _newest_ns(streams: Sequence[ReportStream[Received] | ReportStream[Sent]]) -> int:
    return max((stream.last.mono_ns for stream in streams if stream.last is not None), default=0)


def _sent(publishers: Sequence[ReportStream[Sent]], *, until_ns: int) -> Counted:
    """Counts all publishers' messages over the time covered by every publisher's reports."""
    parts = [_counted(stream, until_ns=until_ns - _UNREPORTED_NS) for stream in publishers]
    seconds = min((part.seconds for part in parts), default=0.0)
    return Counted(sum(part.rate_hz for part in parts) * seconds, seconds)


def _counted(stream: ReportStream[Received] | ReportStream[Sent], *, until_ns: int = 0) -> Counted:
    """Counts reported messages; none are assumed between the last report and a later `until_ns`."""
    first, last = stream.first, stream.last
    if first is None or last is None:
        return Counted()
    end_ns = max(last.mono_ns, until_ns)
    return Counted(last.messages - first.messages, (end_ns - first.mono_ns) / NS_PER_S)


def _lost(stream: ReportStream[Received]) -> int:
    if stream.first is None or stream.last is None:
        return 0
    return sum(stream.last.lost.values()) - sum(stream.first.lost.values())


def _withheld_hz(stream: ReportStream[Sent]) -> float:
    """Messages per second withheld by a throttle, up to the last report."""
    if stream.first is None or stream.last is None or stream.last.mono_ns <= stream.first.mono_ns:
        return 0.0
    return (stream.last.withheld - stream.first.withheld) * NS_PER_S / (stream.last.mono_ns - stream.first.mono_ns)


def _given_up(stream: ReportStream[Sent]) -> int:
    return 0 if stream.first is None or stream.last is None else stream.last.given_up - stream.first.given_up


def _errors(stream: ReportStream[Sent]) -> SendErrors:
    if stream.first is None or stream.last is None:
        return SendErrors({})
    return stream.last.errors.since(stream.first.errors)


LONGEST_S: Final = 1800.0
"""Time limit of a flood's processes, in case their owner disappears."""

PACKAGE: Final = "ldos_load"
"""Package of the ROS workspace."""

_REPORT_PERIOD_S: Final = 0.1
_ROOM: Final = "pytest_ldos.measure.load"
_TOPIC: Final = "/flood_topic_"
_PUBLISHER: Final = "flood_publisher_"


@dataclass(frozen=True)
class FloodPrograms:
    """Commands by name of the process.

    Attributes:
        counter: command of the receiver, for a flood with matched readers.
        environment: variables for all of them.
    """

    counter: Sequence[str]
    publishers: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


def shares(spec: DdsFloodSpec) -> Iterator[range]:
    """Yields each process's topic numbers (from 1); the numbers of topics differ by at most one."""
    begin = 1
    for process in range(spec.processes):
        count = spec.publishers // spec.processes + (process < spec.publishers % spec.processes)
        yield range(begin, begin + count)
        begin += count


def flood_nodes(spec: DdsFloodSpec) -> tuple[str, ...]:
    """Returns the full names of the nodes that publish."""
    return tuple(f"/{_PUBLISHER}{process}" for process in range(1, spec.processes + 1))


def embedded_programs(spec: DdsFloodSpec, *, domain: int) -> FloodPrograms:
    """Returns Python processes over Cyclone DDS."""
    reliable = spec.reliability == Reliability.RELIABLE
    every_topic = _topics(range(1, spec.publishers + 1))
    return FloodPrograms(
        environment=bound_to_loopback(),
        counter=_command("flood_counter", domain=domain, topics=every_topic, reliable=reliable),
        publishers={
            f"{_PUBLISHER}{index}": _command(
                "flood_publisher",
                domain=domain,
                index=index,
                topics=_topics(share),
                rate_hz=spec.rate_hz,
                burst=spec.burst,
                size_bytes=spec.size_bytes,
                reliable=reliable,
                depth=spec.depth,
                awaits_readers=spec.readers,
                seconds=LONGEST_S,
            )
            for index, share in enumerate(shares(spec), start=1)
        },
    )


def _topics(numbers: range) -> list[str]:
    return [f"{_TOPIC}{number}" for number in numbers]


def _command(module: str, **parameters: object) -> list[str]:
    return [sys.executable, "-m", f"{_ROOM}.{module}", json.dumps(parameters)]


def ros_programs(spec: DdsFloodSpec, *, domain: int, environment: Mapping[str, str]) -> FloodPrograms:
    """Returns `ldos_load`'s programs over the stack's middleware.

    Args:
        environment: variables of the stack's processes, in addition to this process's.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    sourced = {**os.environ, **environment}
    find_ros_packages([PACKAGE], environment=sourced).demand()
    prefix = find_ros_package(PACKAGE, sourced)
    assert prefix is not None
    programs = prefix / "lib" / PACKAGE
    shared = {"reliability": spec.reliability, "report_period_s": _REPORT_PERIOD_S}
    sending = {
        "rate_hz": float(spec.rate_hz),
        "burst": spec.burst,
        "size_bytes": spec.size_bytes,
        "depth": spec.depth,
        "awaits_readers": spec.readers,
        "seconds": LONGEST_S,
    }
    return FloodPrograms(
        environment={**environment, "ROS_DOMAIN_ID": str(domain)},
        counter=ros_command(programs / "flood_counter", "flood_counter", publishers=spec.publishers, **shared),
        publishers={
            (name := f"{_PUBLISHER}{index}"): ros_command(
                programs / "flood_publisher",
                name,
                publishers=len(share),
                first_number=share.start,
                **sending,
                **shared,
            )
            for index, share in enumerate(shares(spec), start=1)
        },
    )


def ros_command(program: Path, node: str, **parameters: object) -> list[str]:
    """Returns a command with parameters; their values are YAML, of which JSON is a subset."""
    settings = [word for name, value in parameters.items() for word in ("-p", f"{name}:={json.dumps(value)}")]
    return [str(program), "--ros-args", "-r", f"__node:={node}", *settings]
