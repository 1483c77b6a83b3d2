"""What a trace does not hold although it happened: counted, never silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gap:
    """A span of one stream in which the tracer threw events or whole packets away.

    Attributes:
        from_ns: end of the last packet before it, nanoseconds since the epoch.
        to_ns: end of the packet that reports the loss.
        events: how many events were discarded.
        packets: how many packets are missing (their events are not counted).
    """

    from_ns: int
    to_ns: int
    events: int
    packets: int

    def touches(self, from_ns: int, to_ns: int) -> bool:
        """Whether the gap and the closed span share a moment."""
        return self.from_ns <= to_ns and from_ns <= self.to_ns


@dataclass(frozen=True)
class StreamStats:
    """How one stream file was read.

    Attributes:
        truncated_bytes: bytes behind the last whole event of a packet the file ends in.
    """

    path: Path
    trace: int
    packets: int
    events: int
    truncated_bytes: int
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class ReadStats:
    """The streams of a trace, and what was lost in them."""

    streams: tuple[StreamStats, ...]

    @property
    def events(self) -> int:
        return sum(stream.events for stream in self.streams)

    @property
    def discarded_events(self) -> int:
        return sum(gap.events for gap in self.gaps)

    @property
    def lost_packets(self) -> int:
        return sum(gap.packets for gap in self.gaps)

    @property
    def truncated_bytes(self) -> int:
        return sum(stream.truncated_bytes for stream in self.streams)

    @property
    def gaps(self) -> list[Gap]:
        return [gap for stream in self.streams for gap in stream.gaps]

    def gaps_within(self, from_ns: int, to_ns: int) -> list[Gap]:
        """Gaps of any stream that touch the span."""
        return [gap for gap in self.gaps if gap.touches(from_ns, to_ns)]


def describe_losses(gaps: Iterable[Gap]) -> str:
    """``"51 events and 1 packet lost"``, or ``""`` where there is no gap."""
    found = list(gaps)
    events = sum(gap.events for gap in found)
    packets = sum(gap.packets for gap in found)
    parts = [
        f"{count} {word}{'s' if count != 1 else ''}"
        for count, word in ((events, "event"), (packets, "packet"))
        if count
    ]
    return f"{' and '.join(parts)} lost" if parts else ""
