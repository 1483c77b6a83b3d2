"""Perfetto's trace format: Protocol Buffers' wire format, field numbers, events as columns, tracks.

A field of many messages is two arrays, one row per message: the bytes that it may have, and a mask of
those that it has. Fields side by side make a message; the bytes kept by the masks, read row by row, are the
encoding of all messages. For single messages there are the plain functions at the end.

Reference: Protocol Buffers, encoding.

Reference: perfetto, ``protos/perfetto/trace/perfetto_trace.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2

_LONGEST_VARINT: Final = 10

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Fields:
    """Encoded fields of many messages: bytes they may have, and masks of those each has; ``(messages, width)``."""

    parts: Sequence[tuple[Bytes, Flags]]

    def lengths(self) -> npt.NDArray[np.int64]:
        total = np.zeros(len(self.parts[0][0]), dtype=np.int64)
        for _, kept in self.parts:
            total += kept.sum(axis=1)
        return total

    def only(self, present: Flags | None) -> Fields:
        """The fields of messages that are present; other messages become empty."""
        return self if present is None else Fields([(data, kept & present[:, np.newaxis]) for data, kept in self.parts])

    def encoded(self) -> bytes:
        """All messages, one after the other."""
        data, kept = (np.concatenate(part, axis=1) for part in zip(*self.parts, strict=True))
        joined: Bytes = data[kept]
        return joined.tobytes()


def join_fields(fields: Sequence[Fields]) -> Fields:
    """Joins fields of the same messages, in the given order."""
    return Fields([part for each in fields for part in each.parts])


def varint_field(number: int, values: npt.NDArray[Any], *, present: Flags | None = None) -> Fields:
    """An integer field; negative numbers take ten bytes, as in `int64`."""
    return join_fields([_tags(number, VARINT, len(values)), _varints(values)]).only(present)


def fixed64_fields(number: int, values: npt.NDArray[np.uint64], present: Flags) -> Fields:
    """A repeated field of 8 bytes each; both arrays have shape ``(messages, most of one message)``."""
    little = values.astype("<u8")[:, :, np.newaxis].view(np.uint8)
    (tags, _), *_ = _tags(number, FIXED64, values.size).parts
    data = np.concatenate([tags.reshape(*values.shape, tags.shape[1]), little], axis=2)
    kept = np.broadcast_to(present[:, :, np.newaxis], data.shape)
    width = data.shape[1] * data.shape[2]
    return Fields([(data.reshape(len(values), width), kept.reshape(len(values), width))])


def message_field(number: int, inner: Fields, *, present: Flags | None = None) -> Fields:
    """A field that holds a message."""
    lengths = inner.lengths()
    return join_fields([_tags(number, BYTES, len(lengths)), _varints(lengths), inner]).only(present)


def _tags(number: int, wire_type: int, messages: int) -> Fields:
    tag = np.frombuffer(varint(number << 3 | wire_type), dtype=np.uint8)
    tags = np.broadcast_to(tag, (messages, len(tag)))
    return Fields([(tags, np.ones(tags.shape, dtype=np.bool_))])


def _varints(values: npt.NDArray[Any]) -> Fields:
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    most = int(unsigned.max(initial=0))
    width = min(max(-(-most.bit_length() // 7), 1), _LONGEST_VARINT)
    shifted = unsigned[:, np.newaxis] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    kept = shifted > 0
    kept[:, 0] = True
    data = (shifted & np.uint64(0x7F)).astype(np.uint8)
    data[:, :-1] |= np.where(kept[:, 1:], np.uint8(0x80), np.uint8(0))
    return Fields([(data, kept)])


def varint(value: int) -> bytes:
    """One integer from 0 to 2^64 - 1."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
    """One integer field."""
    return varint(field << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def text(field: int, value: str) -> bytes:
    """One text field; characters that UTF-8 cannot encode become question marks."""
    return message(field, value.encode("utf-8", errors="replace"))


def message(field: int, *parts: bytes) -> bytes:
    """One field of bytes, or of a message made of its parts."""
    body = b"".join(parts)
    return varint(field << 3 | BYTES) + varint(len(body)) + body


TRACE_PACKET: Final = 1


class Packet(IntEnum):
    """Fields of ``TracePacket``."""

    CLOCK_SNAPSHOT = 6
    TIMESTAMP = 8
    SEQUENCE_ID = 10
    TRACK_EVENT = 11
    INTERNED_DATA = 12
    SEQUENCE_FLAGS = 13
    TRACK_DESCRIPTOR = 60


STATE_CLEARED: Final = 1
NEEDS_STATE: Final = 2


class TrackEvent(IntEnum):
    """Fields of ``TrackEvent``."""

    CATEGORY_IIDS = 3
    DEBUG_ANNOTATIONS = 4
    TYPE = 9
    NAME_IID = 10
    TRACK_UUID = 11
    COUNTER_VALUE = 30
    FLOW_IDS = 47


class EventType(IntEnum):
    """Values of ``TrackEvent.Type``."""

    SLICE_BEGIN = 1
    SLICE_END = 2
    INSTANT = 3
    COUNTER = 4


class Annotation(IntEnum):
    """Fields of ``DebugAnnotation``."""

    NAME_IID = 1
    STRING_VALUE_IID = 17


class Interned(IntEnum):
    """Fields of ``InternedData``; the entries of each are (1: number, 2: text)."""

    CATEGORIES = 1
    NAMES = 2
    ANNOTATION_NAMES = 3
    ANNOTATION_TEXTS = 29


class Track(IntEnum):
    """Fields of ``TrackDescriptor``."""

    UUID = 1
    NAME = 2
    PROCESS = 3
    THREAD = 4
    PARENT_UUID = 5
    COUNTER = 8


class Process(IntEnum):
    """Fields of ``ProcessDescriptor``."""

    PID = 1
    NAME = 6
    LABELS = 8


class Thread(IntEnum):
    """Fields of ``ThreadDescriptor``."""

    PID = 1
    TID = 2
    NAME = 5


class Counter(IntEnum):
    """Fields of ``CounterDescriptor``."""

    UNIT = 3
    UNIT_NAME = 6


UNIT_TIME_NS: Final = 1


class Clocks(IntEnum):
    """Fields of ``ClockSnapshot``, and of its ``Clock``."""

    CLOCKS = 1
    CLOCK_ID = 1
    TIMESTAMP = 2


REALTIME: Final = 1
BOOTTIME: Final = 6


Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

_NESTED_BITS: Final = 56

_TYPES: Final[Mapping[str, type[np.generic]]] = {
    "kind": np.uint8,
    "track": np.uint64,
    "name": np.uint32,
    "category": np.uint8,
    "value": np.int64,
    "argument": np.uint32,
    "text": np.uint32,
    "key": np.int64,
}


@dataclass(frozen=True)
class Events:
    """Track events; all arrays have the same length.

    Attributes:
        time_ns: nanoseconds since the epoch.
        order: breaks ties of time, so that slices nest and flows start at their origin.
        kind: one of `EventType`.
        track: the track's uuid.
        name, category: numbers of interned texts, 0 for none.
        value: of counters.
        argument, text: numbers of the interned name and text of an argument, 0 for none.
        key: referenced by flows; -1 for events without flows.
    """

    time_ns: Ints
    order: Ints
    kind: Numbers
    track: Numbers
    name: Numbers
    category: Numbers
    value: Numbers
    argument: Numbers
    text: Numbers
    key: Ints

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, rows: Numbers | slice) -> Events:
        return Events(*(getattr(self, field.name)[rows] for field in fields(self)))


class _Rank:
    """Order of simultaneous events."""

    SENT = 0
    RECEIVED = 1
    SLICE_END = 2
    EMPTY_SLICE = 3
    SLICE_BEGIN = 4
    COUNTED = 5


def slices(
    begin_ns: Numbers,
    end_ns: Numbers,
    *,
    track: Numbers | int,
    name: Numbers,
    category: int,
    argument: Numbers | int = 0,
    text: Numbers | int = 0,
    key: Numbers | int = -1,
) -> Events:
    """A begin and an end for each slice; slices of one track must nest."""
    outer_first = np.lexsort((-end_ns, begin_ns))
    depth = np.empty(len(begin_ns), dtype=np.int64)
    depth[outer_first] = np.arange(len(begin_ns))
    is_empty = begin_ns == end_ns
    in_order = np.where(is_empty, _ranked(_Rank.EMPTY_SLICE, 2 * depth), _ranked(_Rank.SLICE_BEGIN, depth))
    out_order = np.where(is_empty, _ranked(_Rank.EMPTY_SLICE, 2 * depth + 1), _ranked(_Rank.SLICE_END, -depth))
    argument = np.where(np.broadcast_to(text, begin_ns.shape), argument, 0)
    described: dict[str, Numbers | int] = {"name": name, "category": category, "argument": argument, "text": text}
    begins = _events(begin_ns, in_order, EventType.SLICE_BEGIN, track=track, key=key, **described)
    ends = _events(end_ns, out_order, EventType.SLICE_END, track=track)
    return join([begins, ends])


def instants(
    time_ns: Numbers, *, track: Numbers, name: Numbers, category: int, key: Numbers, is_reception: bool
) -> Events:
    """Instants on tracks; sent messages come before simultaneous received ones."""
    rank = np.full(len(time_ns), _ranked(_Rank.RECEIVED if is_reception else _Rank.SENT, np.int64(0)))
    return _events(time_ns, rank, EventType.INSTANT, track=track, name=name, category=category, key=key)


def counts(time_ns: Numbers, values: Numbers, *, track: int) -> Events:
    """Values of a counter track."""
    rank = np.full(len(time_ns), _ranked(_Rank.COUNTED, np.int64(0)))
    return _events(time_ns, rank, EventType.COUNTER, track=track, value=values)


def join(parts: Sequence[Events]) -> Events:
    return Events(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events)))


def in_order(events: Events) -> Events:
    """Ordered by time, and by `order` where times are equal."""
    return events.take(np.lexsort((events.order, events.time_ns)))


def _ranked(rank: int, nested: Any) -> Any:
    return (rank << _NESTED_BITS) + nested


def _events(time_ns: Numbers, order: Numbers, kind: EventType, **columns: Numbers | int) -> Events:
    """Events of one kind; missing columns are empty."""
    given = {"kind": kind, "name": 0, "category": 0, "value": 0, "argument": 0, "text": 0, "key": -1} | columns
    return Events(
        time_ns=time_ns.astype(np.int64),
        order=order.astype(np.int64),
        **{
            name: np.broadcast_to(np.asarray(given[name], dtype=dtype), time_ns.shape) for name, dtype in _TYPES.items()
        },
    )


_PIDS_PER_HOST: Final = 10_000_000
"""Offset of pids and tids of the second host and later, a multiple for each; above the kernel's limit (2^22)."""

Uuids = npt.NDArray[np.uint64]


class Tracks:
    """Numbers the tracks of a trace and keeps their descriptors, parents before children."""

    def __init__(self, model: ExecutionModel) -> None:
        self._descriptors: list[bytes] = []
        self._last = 0
        self._several_hosts = len(model.hosts) > 1
        self.process = [self._add_process(model, row) for row in model.processes.iter_rows(named=True)]
        self.thread = [self._add_thread(model, row) for row in model.threads.iter_rows(named=True)]

    def descriptors(self) -> Iterable[bytes]:
        """Encoded fields of each ``TrackDescriptor``."""
        return self._descriptors

    def add(self, name: str, *, parent: int | None = None) -> int:
        """Adds a track of slices."""
        return self._add(text(Track.NAME, name), parent=parent)

    def add_counter(self, name: str, *, unit: str | None = None, parent: int | None = None) -> int:
        """Adds a track of values, in nanoseconds unless a unit is given."""
        counted = number(Counter.UNIT, UNIT_TIME_NS) if unit is None else text(Counter.UNIT_NAME, unit)
        return self._add(text(Track.NAME, name), message(Track.COUNTER, counted), parent=parent)

    def below_threads(self, name: str, threads: pl.Series) -> Uuids:
        """Adds a track of that name below each thread in `threads`; returns its number by thread, 0 for others."""
        found = np.zeros(len(self.thread) + 1, dtype=np.uint64)
        for thread in threads.unique().drop_nulls().sort():
            found[thread] = self.add(name, parent=self.thread[thread])
        return found

    def of_threads(self) -> Uuids:
        """Track numbers by thread; the last, found by row -1, is for unknown threads."""
        return np.array([*self.thread, self.add("unknown thread")], dtype=np.uint64)

    def _add(self, *fields: bytes, parent: int | None = None) -> int:
        self._last += 1
        above = b"" if parent is None else number(Track.PARENT_UUID, parent)
        self._descriptors.append(b"".join((number(Track.UUID, self._last), above, *fields)))
        return self._last

    def _add_process(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        host, pid = int(row["host"] or 0), int(row["pid"] or 0)
        name = str(row["name"] or "unknown")
        if self._several_hosts:
            name = f"{name} @ {model.hosts['name'][host]}"
        if pid <= 0:
            return self._add(text(Track.NAME, name))
        nodes = model.nodes.filter(pl.col("process") == row["id"])["name"].drop_nulls().unique().sort()
        described = [number(Process.PID, _numbered(host, pid)), text(Process.NAME, name)]
        described += [text(Process.LABELS, node) for node in nodes]
        return self._add(message(Track.PROCESS, *described))

    def _add_thread(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        process = int(row["process"] or 0)
        host, pid = (int(model.processes[column][process]) for column in ("host", "pid"))
        tid, name = int(row["tid"] or 0), str(row["name"] or "unknown")
        parent = self.process[process]
        if pid <= 0 or tid <= 0:
            return self._add(text(Track.NAME, name), parent=parent)
        numbers = number(Thread.PID, _numbered(host, pid)), number(Thread.TID, _numbered(host, tid))
        return self._add(message(Track.THREAD, *numbers, text(Thread.NAME, name)), parent=parent)


def _numbered(host: int, pid: int) -> int:
    return host * _PIDS_PER_HOST + pid
