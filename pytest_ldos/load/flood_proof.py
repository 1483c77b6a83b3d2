"""What a flood really was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.load.flood_reports import Received, ReportStream, Sent
from pytest_ldos.load.scheduler_group import NOT_READ, GroupedProof, GroupReading
from pytest_ldos.load.send_errors import SendErrors, all_errors
from pytest_ldos.scenario.loads import DdsFloodSpec, FloodDomain, Reliability, SchedulerGroup
from pytest_ldos.units import NS_PER_S

REACHED_FRACTION: Final = 0.99
"""Of the requested rate; a flood below it is not the load that was asked for."""

_LATE_S: Final = 0.1
"""A publisher that keeps its rate may be that late at the moment when it was measured last."""

_LATE_SHARE: Final = 0.05
"""Of the measured time; for short ones."""

_BYTES_A_MB: Final = 1e6
_NS_PER_US: Final = 1e3


@dataclass(frozen=True, kw_only=True)
class FloodProof(GroupedProof):
    """See `GroupedProof`.

    Attributes:
        requested_hz: messages a second of all publishers together.
        rate_hz: messages a second that were achieved, as `counted_by` has it.
        counted_by: ``receiver``; without matched readers ``publishers``, by their own count.
        sent_hz: messages a second that the publishers sent, by their own count.
        sent_mb_s: likewise, million bytes of text a second.
        lost: messages that were missing at the receiver, by their numbers.
        given_up: messages that publishers did not send because they were too far behind.
        error_p50_us, error_p99_us, error_max_us: by how much two sends of one publisher were nearer or
            farther than due (to a sixteenth, rounded up).
    """

    publishers: int
    size_bytes: int
    requested_hz: float
    rate_hz: float
    counted_by: str
    sent_hz: float
    sent_mb_s: float
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
        counted = "received" if self.counted_by == "receiver" else "sent (counted by their publishers)"
        lost = f", {self.lost} lost" if self.lost else ""
        told = (
            f"DDS flood: {self.rate_hz:.0f} of {self.requested_hz:.0f} msg/s {counted}{lost} ({self.details}); "
            f"{self.sent_mb_s:.1f} MB/s"
        )
        if not self.error_max_us:
            return told
        return (
            f"{told}; inter-send error p50 {self.error_p50_us:.0f} µs, p99 {self.error_p99_us:.0f} µs, "
            f"max {self.error_max_us:.0f} µs"
        )


@dataclass(frozen=True)
class Counted:
    """Messages in a stretch of time."""

    messages: int = 0
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
    """The proof of what was reported since the measuring began.

    Args:
        counter: of a flood with matched readers.
        failure: why the flood is not whole, if it is not.
        is_impaired: its messages cross a network that loses some because it was asked to.
    """
    sent_parts = [_counted(stream) for stream in publishers]
    sent_hz = sum(part.rate_hz for part in sent_parts)
    errors = all_errors(_errors(stream) for stream in publishers)
    if counter is None:
        seconds = min((part.seconds for part in sent_parts), default=0.0)
        rate_hz, lost = sent_hz, 0
    else:
        received = _counted(counter)
        seconds, rate_hz, lost = received.seconds, received.rate_hz, _lost(counter)
    arrived = Counted(round(rate_hz * seconds), seconds)
    excused = lost if is_impaired else 0
    return FloodProof(
        kind=spec.KIND,
        seconds=seconds,
        shortfall=failure or group.shortfall or _shortfall(spec, arrived, lost, sent_hz, excused=excused),
        group=spec.group,
        group_found=group.found,
        publishers=spec.publishers,
        size_bytes=spec.size_bytes,
        requested_hz=spec.total_hz,
        rate_hz=rate_hz,
        counted_by="publishers" if counter is None else "receiver",
        sent_hz=sent_hz,
        sent_mb_s=sent_hz * spec.size_bytes / _BYTES_A_MB,
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


def _shortfall(spec: DdsFloodSpec, arrived: Counted, lost: int, sent_hz: float, *, excused: int) -> str:
    """Why the achieved rate is too low; each publisher may have its last burst still before it, or be a little late.

    Args:
        excused: of the lost messages, those that nobody wonders about.
    """
    due = spec.total_hz * arrived.seconds
    missing = due - arrived.messages - excused
    late = max(spec.publishers * spec.burst, spec.total_hz * min(_LATE_S, _LATE_SHARE * arrived.seconds))
    if due and missing <= max((1 - REACHED_FRACTION) * due, late):
        return ""
    reached = f"the flood reached {arrived.rate_hz:.0f} of {spec.total_hz:.0f} msg/s"
    if lost > due - sent_hz * arrived.seconds:
        return f"{reached}: {lost} messages were lost on their way"
    return f"{reached}: its publishers sent {sent_hz:.0f}"


def _counted(stream: ReportStream[Received] | ReportStream[Sent]) -> Counted:
    first, last = stream.first, stream.last
    if first is None or last is None:
        return Counted()
    return Counted(last.messages - first.messages, (last.mono_ns - first.mono_ns) / NS_PER_S)


def _lost(stream: ReportStream[Received]) -> int:
    if stream.first is None or stream.last is None:
        return 0
    return sum(stream.last.lost.values()) - sum(stream.first.lost.values())


def _given_up(stream: ReportStream[Sent]) -> int:
    return 0 if stream.first is None or stream.last is None else stream.last.given_up - stream.first.given_up


def _errors(stream: ReportStream[Sent]) -> SendErrors:
    if stream.first is None or stream.last is None:
        return SendErrors({})
    return stream.last.errors.since(stream.first.errors)
