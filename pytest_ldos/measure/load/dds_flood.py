"""A flood of DDS messages alongside the stack: several publishers and a counting receiver.

The number of messages sent in time decides if the load was reached. Losses on the way to the readers are an effect of
the load: they are reported, but do not invalidate its trials. Only readers that received nothing prove that there
was no flood.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.flood_reports import (
    PACKAGE,
    Received,
    ReportStream,
    Sent,
    all_errors,
    embedded_programs,
    ros_programs,
)
from pytest_ldos.measure.load.protocol import NOT_READ, GroupedProof, GroupReading, Load, LoadSite, read_group
from pytest_ldos.measure.load.traffic_control import is_impaired
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.scenario.loads import DdsFloodSpec, FloodDomain, Reliability, SchedulerGroup
from pytest_ldos.scenario.words import StackKind

REACHED_FRACTION: Final = 0.99
"""Smallest accepted fraction of the requested rate."""

_LATE_S: Final = 0.1  # allowed lateness of a publisher at the last measurement
_LATE_SHARE: Final = 0.05  # allowed lateness as a fraction of the measured time, for short measurements
_UNREPORTED_NS: Final = 500 * NS_PER_MS  # time without a report after which a publisher counts as having sent nothing
_BYTES_A_MB: Final = 1e6
_NS_PER_US: Final = 1e3


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
        throttled = f", throttled to {self.allowed_hz:.0f}" if self.allowed_hz < self.requested_hz else ""
        received = ""
        if self.received_share == 1:
            received = ", all received"
        elif self.received_share is not None:
            lost = f", {self.lost} lost" if self.lost else ""
            received = f", {100 * self.received_share:.1f} % of them received{lost}"
        errors = (
            f"; inter-send error p50 {self.error_p50_us:.0f} µs, p99 {self.error_p99_us:.0f} µs, "
            f"max {self.error_max_us:.0f} µs"
        )
        return (
            f"DDS flood: {self.rate_hz:.0f} of {self.requested_hz:.0f} msg/s sent{throttled}{received} "
            f"({self.details}); {self.sent_mb_s:.1f} MB/s{errors if self.error_max_us else ''}"
        )


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
    spans = [(each.first, each.last) for each in publishers if each.first is not None and each.last is not None]
    sent = _sent(publishers, counter)
    allowed_hz = float(spec.total_hz)
    for first, last in spans:
        if last.mono_ns > first.mono_ns:
            allowed_hz -= (last.withheld - first.withheld) * NS_PER_S / (last.mono_ns - first.mono_ns)
    received = None if counter is None else _counted(counter)
    lost = 0
    if counter is not None and counter.first is not None and counter.last is not None:
        lost = sum(counter.last.lost.values()) - sum(counter.first.lost.values())

    def slack(seconds: float) -> float:
        """Allowed number of missing messages: each publisher's last burst may be pending or a little late."""
        return max(spec.publishers * spec.burst, allowed_hz * min(_LATE_S, _LATE_SHARE * seconds))

    shortfall, due = "", allowed_hz * sent.seconds
    if not due or due - sent.messages > max((1 - REACHED_FRACTION) * due, slack(sent.seconds)):
        reached = f"{sent.rate_hz:.0f} of {allowed_hz:.0f} msg/s"
        shortfall = f"the flood reached {reached}: its publishers sent no more in time"
    elif received is not None and not is_impaired and not received.messages and sent.messages > slack(sent.seconds):
        shortfall = f"the flood's matched readers received none of {sent.messages:.0f} messages"
    errors = all_errors(last.errors.since(first.errors) for first, last in spans)
    return FloodProof(
        kind=spec.KIND,
        seconds=sent.seconds if received is None else min(sent.seconds, received.seconds),
        shortfall=failure or group.shortfall or shortfall,
        group=spec.group,
        group_found=group.found,
        publishers=spec.publishers,
        size_bytes=spec.size_bytes,
        requested_hz=spec.total_hz,
        allowed_hz=allowed_hz,
        rate_hz=sent.rate_hz,
        sent_mb_s=sent.rate_hz * spec.size_bytes / _BYTES_A_MB,
        received_hz=None if received is None else received.rate_hz,
        received_share=None if received is None else _received_share(sent, received, lost, slack(received.seconds)),
        lost=lost,
        given_up=sum(last.given_up - first.given_up for first, last in spans),
        error_p50_us=errors.percentile_ns(50) / _NS_PER_US,
        error_p99_us=errors.percentile_ns(99) / _NS_PER_US,
        error_max_us=errors.percentile_ns(100) / _NS_PER_US,
        details=_describe(spec),
    )


@dataclass(frozen=True)
class Counted:
    """Number of messages in an interval of time."""

    messages: float = 0.0
    seconds: float = 0.0

    @property
    def rate_hz(self) -> float:
        return self.messages / self.seconds if self.seconds > 0 else 0.0


def _counted(stream: ReportStream[Received] | ReportStream[Sent], *, until_ns: int = 0) -> Counted:
    """Counts reported messages; none are assumed between the last report and a later `until_ns`."""
    first, last = stream.first, stream.last
    if first is None or last is None:
        return Counted()
    end_ns = max(last.mono_ns, until_ns)
    return Counted(last.messages - first.messages, (end_ns - first.mono_ns) / NS_PER_S)


def _sent(publishers: Sequence[ReportStream[Sent]], counter: ReportStream[Received] | None) -> Counted:
    """Counts all publishers' messages over the time covered by every publisher's reports."""
    streams: list[ReportStream[Received] | ReportStream[Sent]] = [*publishers, *([counter] if counter else [])]
    newest_ns = max((stream.last.mono_ns for stream in streams if stream.last is not None), default=0)
    parts = [_counted(stream, until_ns=newest_ns - _UNREPORTED_NS) for stream in publishers]
    seconds = min((part.seconds for part in parts), default=0.0)
    return Counted(sum(part.rate_hz for part in parts) * seconds, seconds)


def _received_share(sent: Counted, received: Counted, lost: int, in_transit: float) -> float:
    """Share received. Messages neither received nor in transit are missing, even without a later message."""
    missing = max(lost, sent.rate_hz * received.seconds - received.messages - in_transit)
    return received.messages / (received.messages + missing) if received.messages else 0.0


def _describe(spec: DdsFloodSpec) -> str:
    parts = [f"{spec.publishers} publishers, {spec.size_bytes} bytes"]
    parts += [f"in bursts of {spec.burst}"] if spec.burst > 1 else []
    parts += [f"from {spec.participants} participants"] if spec.participants else []
    parts += ["reliable"] if spec.reliability == Reliability.RELIABLE else []
    parts += ["on another domain"] if spec.domain == FloodDomain.OTHER else []
    parts += [] if spec.readers else ["no readers"]
    parts += ["each in a session of its own"] if spec.group == SchedulerGroup.OWN else []
    return ", ".join(parts)


_READY_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1


class RunningFlood:
    """See `RunningLoad`."""

    def __init__(
        self,
        spec: DdsFloodSpec,
        *,
        counter: ReportStream[Received] | None,
        publishers: Sequence[ReportStream[Sent]],
        group: ProcessGroup,
        site: LoadSite,
        changed: threading.Condition,
    ) -> None:
        self.spec = spec
        self._counter = counter
        self._publishers = publishers
        self._group = group
        self._site = site
        self._group_found = NOT_READ
        self._changed = changed
        self._failure = ""
        self._is_impaired = False
        self._final: FloodProof | None = None

    @property
    def _streams(self) -> Sequence[ReportStream[Received] | ReportStream[Sent]]:
        return [*self._publishers, *([self._counter] if self._counter else [])]

    @property
    def proof(self) -> FloodProof:
        return self._final or self._measured()

    def close(self) -> None:
        """Freezes the proof, so that the end of the processes is no failure."""
        self._note_impairment()
        self._final = self._measured()

    def _measured(self) -> FloodProof:
        with self._changed:
            ended = self._group.ended()
            if not self._failure and ended:
                self._failure = ended[0].describe_end()
            for stream in self._streams:
                self._failure = self._failure or stream.find_fault()
            return build_proof(
                self.spec,
                counter=self._counter,
                publishers=self._publishers,
                failure=self._failure,
                is_impaired=self._is_impaired,
                group=self._group_found,
            )

    def _note_impairment(self) -> None:
        if self.spec.domain == FloodDomain.SAME:
            self._is_impaired = self._is_impaired or is_impaired()

    def await_begin(self) -> None:
        """Begins the measurement when every topic is sent and received; raises `LoadFailed` if one remains silent."""
        self._note_impairment()
        deadline = time.monotonic() + _READY_TIMEOUT_S
        aim = "arrive at its receiver" if self._counter else "begin"
        with self._changed:
            while not all(stream.has_begun for stream in self._streams):
                left_s = deadline - time.monotonic()
                ended = self._group.describe_ended()
                if left_s <= 0 or ended:
                    raise LoadFailed(
                        ended or f"the flood did not {aim} within {_READY_TIMEOUT_S:.0f} s",
                        remedy="look at the logs of the flood's processes",
                        details=self._group.last_words(),
                    )
                self._changed.wait(min(left_s, _POLL_S))
            for stream in self._streams:
                stream.mark()
        pids = [child.pid for child in self._group.children]
        self._group_found = read_group(self.spec.group, pids, self._site) or NOT_READ


@contextmanager
def run_dds_flood(spec: DdsFloodSpec, site: LoadSite) -> Iterator[RunningFlood]:
    """Floods the domain inside the ``with`` block; see `run_load`."""
    with ExitStack() as resources:
        domain = resources.enter_context(claim_domain()) if spec.domain == FloodDomain.OTHER else site.domain
        is_ros = site.kind is StackKind.ROS2
        if is_ros:
            programs = ros_programs(spec, domain=domain, environment=site.environment)
        else:
            programs = embedded_programs(spec, domain=domain)
        group = ProcessGroup(
            log_directory=site.log_directory,
            prefix=site.recorder.prefix,
            environment={**programs.environment, **site.recorder.environment},
            death_signal=signal.SIGINT if is_ros else signal.SIGKILL,
            own_session=spec.group == SchedulerGroup.OWN,
        )
        resources.callback(group.stop)
        changed = threading.Condition()
        counter = None
        if spec.readers:
            counter = ReportStream(group.start("flood_counter", programs.counter, talk=True), Received.parse, changed)
        publishers = [
            ReportStream(group.start(name, command, talk=True), Sent.parse, changed)
            for name, command in programs.publishers.items()
        ]
        flood = RunningFlood(spec, counter=counter, publishers=publishers, group=group, site=site, changed=changed)
        resources.callback(flood.close)
        flood.await_begin()
        yield flood


LOADS: Final = {DdsFloodSpec.KIND: Load(run=run_dds_flood, package=PACKAGE, proof=FloodProof)}
