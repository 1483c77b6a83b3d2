"""A flood of DDS messages alongside the stack: several publishers and a counting receiver.

The number of messages sent in time decides if the load was reached. Losses on the way to the readers are an effect of
the load: they are reported, but do not invalidate its trials. Only readers that received nothing prove that there
was no flood.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.base.errors import LoadFailed
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S, NS_PER_US, percent
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load.flood_reports import (
    FloodPrograms,
    Received,
    Report,
    ReportStream,
    Sent,
    flood_programs,
    percentile_ns,
)
from pytest_ldos.measure.load.protocol import (
    NOT_READ,
    GroupedProof,
    GroupReading,
    Load,
    LoadSite,
    MeasuredLoad,
    load_processes,
    read_group,
)
from pytest_ldos.measure.load.traffic_control import is_impaired
from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.scenario.loads import DdsFloodSpec, FloodDomain, Reliability, SchedulerGroup
from pytest_ldos.scenario.words import StackKind

REACHED_FRACTION: Final = 0.99  # smallest accepted fraction of the requested rate
_LATE_S: Final = 0.1  # allowed lateness of a publisher at the last measurement
_LATE_SHARE: Final = 0.05  # allowed lateness as a fraction of the measured time, for short measurements
_UNREPORTED_NS: Final = 500 * NS_PER_MS  # time without a report after which a publisher counts as having sent nothing
_BYTES_A_MB: Final = 1e6


@dataclass(frozen=True, kw_only=True)
class FloodProof(GroupedProof):
    """Proof of a flood.

    Attributes:
        requested_hz: messages per second of all publishers together.
        rate_hz: messages per second that the publishers sent, by their own count; compared with `requested_hz`, it
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
        received = ""
        if self.received_share == 1:
            received = ", all received"
        elif self.received_share is not None:
            lost = f", {self.lost} lost" if self.lost else ""
            received = f", {percent(self.received_share)} of them received{lost}"
        errors = (
            f"; inter-send error p50 {self.error_p50_us:.0f} µs, p99 {self.error_p99_us:.0f} µs, "
            f"max {self.error_max_us:.0f} µs"
        )
        return (
            f"DDS flood: {self.rate_hz:.0f} of {self.requested_hz:.0f} msg/s sent{received} "
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
    """Builds the proof from the reports since the measurement began; without readers, there is no `counter`.

    If it `is_impaired`, its messages cross a network that deliberately loses messages.
    """
    spans = [(each.first, each.last) for each in publishers if each.first is not None and each.last is not None]
    sent = _sent(publishers, counter)
    received = None if counter is None else _counted(counter)
    lost = 0
    if counter is not None and counter.first is not None and counter.last is not None:
        lost = sum(counter.last.lost.values()) - sum(counter.first.lost.values())

    def slack(seconds: float) -> float:  # each publisher's last burst may be pending or a little late
        return max(spec.publishers * spec.burst, spec.total_hz * min(_LATE_S, _LATE_SHARE * seconds))

    shortfall, due = "", spec.total_hz * sent.seconds
    if not due or due - sent.messages > max((1 - REACHED_FRACTION) * due, slack(sent.seconds)):
        reached = f"{sent.rate_hz:.0f} of {spec.total_hz:.0f} msg/s"
        shortfall = f"the flood reached {reached}: its publishers sent no more in time"
    elif received is not None and not is_impaired and not received.messages and sent.messages > slack(sent.seconds):
        shortfall = f"the flood's matched readers received none of {sent.messages:.0f} messages"
    errors = sum((last.errors - first.errors for first, last in spans), Counter[int]())
    return FloodProof(
        kind=spec.KIND,
        seconds=sent.seconds if received is None else min(sent.seconds, received.seconds),
        shortfall=failure or group.shortfall or shortfall,
        group=spec.group,
        group_found=group.found,
        publishers=spec.publishers,
        size_bytes=spec.size_bytes,
        requested_hz=spec.total_hz,
        rate_hz=sent.rate_hz,
        sent_mb_s=sent.rate_hz * spec.size_bytes / _BYTES_A_MB,
        received_hz=None if received is None else received.rate_hz,
        received_share=None if received is None else _received_share(sent, received, lost, slack(received.seconds)),
        lost=lost,
        given_up=sum(last.given_up - first.given_up for first, last in spans),
        error_p50_us=percentile_ns(errors, 50) / NS_PER_US,
        error_p99_us=percentile_ns(errors, 99) / NS_PER_US,
        error_max_us=percentile_ns(errors, 100) / NS_PER_US,
        details=_describe(spec),
    )


@dataclass(frozen=True)
class Counted:
    messages: float = 0.0
    seconds: float = 0.0

    @property
    def rate_hz(self) -> float:
        return self.messages / self.seconds if self.seconds > 0 else 0.0


def _counted(stream: ReportStream[Received] | ReportStream[Sent], *, until_ns: int = 0) -> Counted:
    """Counts reported messages; assumes none between the last report and a later `until_ns`."""
    first, last = stream.first, stream.last
    if first is None or last is None:
        return Counted()
    return Counted(last.messages - first.messages, (max(last.mono_ns, until_ns) - first.mono_ns) / NS_PER_S)


def _sent(publishers: Sequence[ReportStream[Sent]], counter: ReportStream[Received] | None) -> Counted:
    """Counts the messages of all publishers over the time covered by every publisher's reports."""
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


class RunningFlood(MeasuredLoad[DdsFloodSpec, FloodProof]):
    """A load whose processes print reports."""

    def __init__(self, spec: DdsFloodSpec, site: LoadSite, group: ProcessGroup, programs: FloodPrograms) -> None:
        super().__init__(spec, self._measured)
        self._site = site
        self._group = group
        self._changed = threading.Condition()
        self._streams: list[ReportStream[Any]] = []
        self._group_found = NOT_READ
        self._failure = ""
        self._is_impaired = False
        self._counter = self._follow("flood_counter", programs.counter, Received.parse) if spec.readers else None
        self._publishers = [self._follow(name, command, Sent.parse) for name, command in programs.publishers.items()]

    def _follow(
        self, name: str, command: Sequence[str], parse: Callable[[Mapping[str, Any]], Report]
    ) -> ReportStream[Report]:
        stream = ReportStream(self._group.start(name, command, talk=True), parse, self._changed)
        self._streams.append(stream)
        return stream

    def _await(self, is_done: Callable[[], bool], limit_s: float) -> bool:
        """Waits for reports, with the condition held; returns False if a process ended or the time is over."""
        deadline = time.monotonic() + limit_s
        while not is_done() and time.monotonic() < deadline and not self._group.ended():
            self._changed.wait(_POLL_S)
        return is_done()

    def _begin(self) -> None:
        """Begins the measurement with the last reports, with the condition held."""
        for stream in self._streams:
            stream.first = stream.last
        pids = [child.pid for child in self._group.children]
        self._group_found = read_group(self.spec.group, pids, self._site) or NOT_READ

    def _find_failure(self) -> str:
        """Returns the first failure of a process or its reports, with the condition held; empty if there is none."""
        ended = self._group.ended()
        if not self._failure and ended:
            self._failure = ended[0].describe_end()
        for stream in self._streams:
            self._failure = self._failure or stream.find_fault()
        return self._failure

    def close(self) -> None:
        self._note_impairment()
        super().close()

    def _measured(self) -> FloodProof:
        with self._changed:
            return build_proof(
                self.spec,
                counter=self._counter,
                publishers=self._publishers,
                failure=self._find_failure(),
                is_impaired=self._is_impaired,
                group=self._group_found,
            )

    def _note_impairment(self) -> None:
        if self.spec.domain == FloodDomain.SAME:
            self._is_impaired = self._is_impaired or is_impaired()

    def await_begin(self) -> None:
        """Begins the measurement when every topic is sent and received; raises `LoadFailed` if one remains silent."""
        self._note_impairment()
        aim = "arrive at its receiver" if self._counter else "begin"
        with self._changed:
            if not self._await(lambda: all(stream.has_begun for stream in self._streams), _READY_TIMEOUT_S):
                raise LoadFailed(
                    self._group.describe_ended() or f"the flood did not {aim} within {_READY_TIMEOUT_S:.0f} s",
                    remedy="look at the logs of the flood's processes",
                    details=self._group.last_words(),
                )
            self._begin()


@contextmanager
def run_dds_flood(spec: DdsFloodSpec, site: LoadSite) -> Iterator[RunningFlood]:
    with ExitStack() as resources:
        domain = resources.enter_context(claim_domain()) if spec.domain == FloodDomain.OTHER else site.domain
        is_ros = site.kind is StackKind.ROS2
        programs = flood_programs(spec, domain=domain, environment=site.environment if is_ros else None)
        death_signal = signal.SIGINT if is_ros else signal.SIGKILL
        group = resources.enter_context(
            load_processes(spec.group, site, environment=programs.environment, death_signal=death_signal)
        )
        flood = resources.enter_context(closing(RunningFlood(spec, site, group, programs)))
        flood.await_begin()
        yield flood


LOADS: Final = {DdsFloodSpec.KIND: Load(run=run_dds_flood, has_nodes=True, proof=FloodProof)}
