"""Facts about a trace: its origin, its streams, and counts of the events and bytes that it lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from pytest_ldos.base.text import counted

FIRST_NS: Final = -(1 << 63) + 1  # smallest and largest time, for gaps that are open at one end
LAST_NS: Final = (1 << 63) - 1

_PER_UID = re.compile(r"(?:^|/)uid/(\d+)(?:/|$)")
_PER_PID = re.compile(r"(?:^|/)pid/(.+)-(\d+)-\d{8}-\d{6}(?:/|$)")


@dataclass(frozen=True)
class TraceInfo:
    """One trace of a session directory: a domain, or a buffer owner (uid, pid).

    Facts missing in the metadata are taken from the path that LTTng gave the trace.
    """

    directory: Path  # folder of its metadata
    environment: Mapping[str, str | int]  # the ``env`` block (``hostname``, ``domain``, ``tracer_name``, …)
    clock: str  # name of the clock that stamps events; ``""`` where they have no time: their `timestamp_ns` is 0
    clock_offset_ns: int  # nanoseconds from that clock's zero to the epoch
    uuid: str = ""  # of the trace, 32 hexadecimal digits, or ``""``. Rotated chunks of one trace share it
    # events and fields that no column can hold (text inside arrays of structs); they are skipped
    unread: tuple[tuple[str, str], ...] = ()
    # names of the events that each channel (stream class) declares, by its number
    channels: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def domain(self) -> str:
        """``ust``, ``kernel``, …; ``""`` where unknown."""
        if "domain" in self.environment:
            return str(self.environment["domain"])
        return next((part for part in reversed(self.directory.parts) if part in ("kernel", "ust")), "")

    @property
    def host(self) -> str:
        return str(self.environment.get("hostname", ""))

    @property
    def uid(self) -> int | None:
        """The user of per-user buffers."""
        if self._scheme == "uid":
            return self._number("tracer_buffering_id")
        found = _PER_UID.search(self.directory.as_posix())
        return int(found[1]) if found and not self._scheme else None

    @property
    def pid(self) -> int | None:
        """The process of per-process buffers."""
        if self._scheme == "pid":
            known = self._number("vpid")
            return self._number("tracer_buffering_id") if known is None else known
        found = _PER_PID.search(self.directory.as_posix())
        return int(found[2]) if found and not self._scheme else None

    @property
    def process_name(self) -> str:
        """Name of that process, cut to 15 characters by Linux."""
        if "procname" in self.environment:
            return str(self.environment["procname"])
        found = _PER_PID.search(self.directory.as_posix())
        return found[1] if found else ""

    @property
    def tracer(self) -> str:
        """``lttng-ust 2.13``."""
        version = ".".join(
            str(self.environment[part]) for part in ("tracer_major", "tracer_minor") if part in self.environment
        )
        return " ".join(part for part in (str(self.environment.get("tracer_name", "")), version) if part)

    @property
    def _scheme(self) -> str:
        return str(self.environment.get("tracer_buffering_scheme", ""))

    def _number(self, name: str) -> int | None:
        value = self.environment.get(name)
        return value if isinstance(value, int) else None


class Grade(StrEnum):
    INFO = "info"
    DATA_LOSS = "data_loss"
    ERROR = "error"


@dataclass(frozen=True)
class Counter:
    """Number of occurrences of one kind of loss or note, with its meaning; 0 without any."""

    name: str
    grade: Grade
    count: int
    meaning: str


@dataclass(frozen=True)
class LinkedFile:
    """A second name of a stream file; the file is read once."""

    path: Path
    same_as: Path


@dataclass(frozen=True)
class Gap:
    """A span of one stream in which the tracer discarded events or whole packets."""

    from_ns: int  # end of the last packet before it, nanoseconds since the epoch
    to_ns: int  # end of the packet that reports the loss
    events: int  # number of discarded events; those of missing packets are not counted
    packets: int

    def touches(self, from_ns: int, to_ns: int) -> bool:
        return self.from_ns <= to_ns and from_ns <= self.to_ns


@dataclass(frozen=True)
class Corruption:
    """Bytes that were skipped because they are corrupt, up to the next good packet; `offset` is in the file."""

    path: Path
    offset: int
    size: int
    reason: str


@dataclass(frozen=True)
class StreamStats:
    """Counts from reading one stream file.

    Rotation cuts a stream into several files; its counters are followed through all of
    them, and the later file reports losses between two files.
    """

    path: Path
    trace: int  # index into `DecodedTrace.traces`
    # packets, events: numbers that were read; other packets are outside the time window
    packets: int
    events: int
    truncated_bytes: int  # bytes after the last whole event of a packet that the end of the file cuts
    gaps: tuple[Gap, ...]
    corruptions: tuple[Corruption, ...] = ()
    earlier_events: int = 0  # events lost before the first packet of the stream that is present
    repeated_packets: int = 0  # packets left out, because another file of the trace has them
    missing_bytes: int = 0  # bytes of such a packet beyond the end of the file
    missing_padding: int = 0  # bytes of padding after a packet's content that the file lacks
    foreign_packets: int = 0  # packets with another trace's uuid; they were read by this one's metadata
    backward_steps: int = 0  # number of times that are earlier than the one before; the events are sorted
    channel: int = 0  # number of its stream class in the metadata
    # events before this time are or may be missing: they were overwritten, or are in another part of the recording.
    # ``None`` if none are
    missing_before_ns: int | None = None
    earlier_packets: int = 0  # number of packets before the first one that is present; 0 where packets have no numbers
    # events after this time are or may be missing: the stream is cut, or LTTng ended it while others of its channel
    # continued. ``None`` if none are
    missing_after_ns: int | None = None

    @property
    def is_cut(self) -> bool:
        return bool(self.truncated_bytes or self.missing_bytes)

    @property
    def losses(self) -> tuple[Gap, ...]:
        """Time spans with possibly missing events: gaps, and the time before and after the stream."""
        before, after = self.missing_before_ns, self.missing_after_ns
        return (
            *(() if before is None else (Gap(FIRST_NS, before - 1, 0, self.earlier_packets),)),
            *self.gaps,
            *(() if after is None else (Gap(after + 1, LAST_NS, 0, 0),)),
        )


@dataclass(frozen=True)
class ReadStats:
    """The streams of a trace, and the losses in them."""

    streams: tuple[StreamStats, ...]
    linked_files: tuple[LinkedFile, ...] = ()

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Counters of lost, omitted and doubtful data, by severity."""
        names = ("earlier_events", "repeated_packets", "missing_bytes", "missing_padding", "foreign_packets")
        earlier, repeated, missing, padding, foreign = map(self._total, names)
        backward, before = self._total("backward_steps"), self._total("earlier_packets")
        empty = sum(stream.packets == 0 and not stream.corruptions for stream in self.streams)
        late = sum(each.missing_before_ns is not None and not each.earlier_packets for each in self.streams)
        early = sum(each.missing_after_ns is not None and not each.is_cut for each in self.streams)
        skipped = sum(corruption.size for corruption in self.corruptions)
        return (
            Counter("discarded_events", Grade.DATA_LOSS, self.discarded_events, "the tracer's buffers were full"),
            Counter("lost_packets", Grade.DATA_LOSS, self.lost_packets, "their numbers are missing in the sequence"),
            Counter("truncated_bytes", Grade.DATA_LOSS, self.truncated_bytes, "the file ends inside an event"),
            Counter("missing_bytes", Grade.DATA_LOSS, missing, "packets should go on behind the end of their file"),
            Counter("corrupt_regions", Grade.ERROR, len(self.corruptions), "passed over up to the next good packet"),
            Counter("corrupt_bytes", Grade.ERROR, skipped, "in these regions"),
            Counter("repeated_packets", Grade.ERROR, repeated, "a stream is there twice; counted once"),
            Counter("backward_steps", Grade.ERROR, backward, "times before the one before; their events were sorted"),
            Counter("foreign_packets", Grade.ERROR, foreign, "of another trace by their uuid; read by this metadata"),
            Counter("earlier_events", Grade.INFO, earlier, "lost before the part of the trace that is here"),
            Counter("earlier_packets", Grade.INFO, before, "overwritten, or in another part of the recording"),
            Counter("late_streams", Grade.INFO, late, "they begin later than others: the begin may be overwritten"),
            Counter("early_streams", Grade.INFO, early, "they end while others of their channel go on"),
            Counter("linked_files", Grade.INFO, len(self.linked_files), "second names of a file; read once"),
            Counter("missing_padding", Grade.INFO, padding, "bytes of unused space at the end of cut files"),
            Counter("empty_streams", Grade.INFO, empty, "stream files without a packet"),
        )

    @property
    def corruptions(self) -> list[Corruption]:
        return [corruption for stream in self.streams for corruption in stream.corruptions]

    @property
    def events(self) -> int:
        return self._total("events")

    @property
    def discarded_events(self) -> int:
        return sum(gap.events for gap in self.gaps)

    @property
    def lost_packets(self) -> int:
        return sum(gap.packets for gap in self.gaps)

    @property
    def truncated_bytes(self) -> int:
        return self._total("truncated_bytes")

    def _total(self, name: str) -> int:
        return sum(getattr(stream, name) for stream in self.streams)

    @property
    def gaps(self) -> list[Gap]:
        return [gap for stream in self.streams for gap in stream.gaps]

    @property
    def losses(self) -> list[Gap]:
        return [loss for stream in self.streams for loss in stream.losses]

    def gaps_within(self, from_ns: int, to_ns: int) -> list[Gap]:
        """Losses of any stream that touch the span; not only gaps."""
        return [loss for loss in self.losses if loss.touches(from_ns, to_ns)]


def describe_damage(stats: ReadStats) -> str:
    """Missing and corrupt data in words, ``"1039 discarded events, 43116 missing bytes"``, or ``""``."""
    bad = [each for each in stats.counters if each.count and each.grade is not Grade.INFO]
    return ", ".join(f"{each.count} {each.name.replace('_', ' ')}" for each in bad)


def describe_incomplete(stats: ReadStats) -> str:
    """The damage and the events missing at the ends of streams, or ``""``."""
    counts = {each.name: each.count for each in stats.counters}
    late, early = counts["late_streams"], counts["early_streams"]
    edges = {
        f"{counts['earlier_packets']} packets before the first one of a stream": counts["earlier_packets"],
        f"the begin of {counted(late, 'stream')}": late,
        f"the end of {counted(early, 'stream')}": early,
    }
    found = [text for text, count in edges.items() if count]
    missing = f"missing: {', '.join(found)}" if found else ""
    return "; ".join(filter(None, (describe_damage(stats), missing)))


def describe_losses(gaps: Iterable[Gap]) -> str:
    """``"51 events and 1 packet lost"``, or ``""`` where there is no gap."""
    found = list(gaps)
    counts = ((sum(gap.events for gap in found), "event"), (sum(gap.packets for gap in found), "packet"))
    parts = [counted(count, word) for count, word in counts if count]
    if found and not parts:
        return "part of a stream is missing"
    return f"{' and '.join(parts)} lost" if parts else ""
