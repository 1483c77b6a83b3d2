"""Perfetto's trace format: Protocol Buffers' wire format, field numbers, tables of events, tracks.

Many messages are encoded at once: an array with a row per message holds the bytes of their fields, and -1 where a
message has fewer. Fields side by side make a message; all bytes, row by row, are the encoding of all messages. For
single messages there are `number`, `text` and `message`.

Reference: Protocol Buffers, encoding; perfetto, ``protos/perfetto/trace/perfetto_trace.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.model import ExecutionModel

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2

_ABSENT: Final = -1

Fields = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]


def varint_field(number: int, values: npt.NDArray[Any], *, present: Flags | None = None) -> Fields:
    """An integer field; negative numbers take ten bytes, as in `int64`."""
    return _field(number, VARINT, [_varints(values)], present)


def fixed64_fields(number: int, values: npt.NDArray[np.uint64]) -> Fields:
    """A repeated field of 8 bytes each, of shape ``(messages, most of one message)``; 0 is an absent value."""
    flat = values.ravel()
    content = flat.astype("<u8")[:, np.newaxis].view(np.uint8)
    return _field(number, FIXED64, [content], flat > 0).reshape(len(values), -1 if values.size else 0)


def message_field(number: int, *fields: Fields, present: Flags | None = None) -> Fields:
    lengths = sum((each >= 0).sum(axis=1) for each in fields)
    return _field(number, BYTES, [_varints(np.asarray(lengths)), *fields], present)


def encoded(fields: Fields) -> bytes:
    """All messages, one after the other."""
    return fields[fields >= 0].astype(np.uint8).tobytes()


def _field(number: int, wire_type: int, content: list[npt.NDArray[Any]], present: Flags | None) -> Fields:
    tag = np.frombuffer(varint(number << 3 | wire_type), dtype=np.uint8)
    rows = len(content[0])
    whole: Fields = np.hstack([np.broadcast_to(tag, (rows, len(tag))), *content], dtype=np.int16)
    if present is not None:
        whole[~present] = _ABSENT
    return whole


def _varints(values: npt.NDArray[Any]) -> Fields:
    unsigned = values.astype(np.int64).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)
    width = max(-(-int(unsigned.max(initial=0)).bit_length() // 7), 1)
    shifted = unsigned[:, np.newaxis] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
    data: Fields = (shifted & np.uint64(0x7F)).astype(np.int16)
    goes_on = shifted[:, 1:] > 0
    data[:, :-1][goes_on] |= 0x80
    data[:, 1:][~goes_on] = _ABSENT
    return data


def varint(value: int) -> bytes:
    """One integer from 0 to 2^64 - 1."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def number(field: int, value: int) -> bytes:
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
    CATEGORY_IIDS = 3
    DEBUG_ANNOTATIONS = 4
    TYPE = 9
    NAME_IID = 10
    TRACK_UUID = 11
    COUNTER_VALUE = 30
    FLOW_IDS = 47


# Values of ``TrackEvent.Type``.
EventType = IntEnum("EventType", {"SLICE_BEGIN": 1, "SLICE_END": 2, "INSTANT": 3, "COUNTER": 4})

# Fields of ``DebugAnnotation`` and of ``InternedData``, whose entries are (1: number, 2: text).
Annotation = IntEnum("Annotation", {"NAME_IID": 1, "STRING_VALUE_IID": 17})
Interned = IntEnum("Interned", {"CATEGORIES": 1, "NAMES": 2, "ANNOTATION_NAMES": 3, "ANNOTATION_TEXTS": 29})

# Fields of ``TrackDescriptor``, those of its parts, ``ClockSnapshot`` and its ``Clock``.
Track = IntEnum("Track", {"UUID": 1, "NAME": 2, "PROCESS": 3, "THREAD": 4, "PARENT_UUID": 5, "COUNTER": 8})
Process = IntEnum("Process", {"PID": 1, "NAME": 6, "LABELS": 8})
Thread = IntEnum("Thread", {"PID": 1, "TID": 2, "NAME": 5})
Counter = IntEnum("Counter", {"UNIT": 3, "UNIT_NAME": 6})
ClockSnapshot = IntEnum("ClockSnapshot", {"CLOCKS": 1})
Clock = IntEnum("Clock", {"CLOCK_ID": 1, "TIMESTAMP": 2})

UNIT_TIME_NS: Final = 1
REALTIME: Final = 1
BOOTTIME: Final = 6


Numbers = npt.NDArray[Any]

# Columns of a table of track events, with the number that stands for none.
_EVENTS: Final[Mapping[str, tuple[type[np.generic], int]]] = {
    "time_ns": (np.int64, 0),  # since the epoch
    "order": (np.int64, 0),  # breaks ties of time, so that slices nest and flows start at their origin
    "kind": (np.uint8, 0),  # one of `EventType`
    "track": (np.uint64, 0),  # its uuid
    "name": (np.uint32, 0),  # number of the interned text, as the next
    "category": (np.uint8, 0),
    "value": (np.int64, 0),  # of counters
    "argument": (np.uint32, 0),  # number of its interned name
    "text": (np.uint32, 0),  # number of its interned text
    "key": (np.int64, -1),  # referenced by flows
}

# Ranks of simultaneous events.
_SENT, _RECEIVED, _SLICE_END, _EMPTY_SLICE, _SLICE_BEGIN, _COUNTED = range(6)
_NESTED_BITS: Final = 56


def slices(
    begin_ns: Numbers,
    end_ns: Numbers,
    *,
    track: Numbers | int,
    name: Numbers,
    category: int,
    argument: int,
    text: Numbers | int = 0,
    key: Numbers | int = -1,
) -> pl.DataFrame:
    """A begin and an end for each slice; slices of one track must nest."""
    outer_first = np.lexsort((-end_ns, begin_ns))
    depth = np.empty(len(begin_ns), dtype=np.int64)
    depth[outer_first] = np.arange(len(begin_ns))
    is_empty = begin_ns == end_ns
    in_order = np.where(is_empty, _ranked(_EMPTY_SLICE, 2 * depth), _ranked(_SLICE_BEGIN, depth))
    out_order = np.where(is_empty, _ranked(_EMPTY_SLICE, 2 * depth + 1), _ranked(_SLICE_END, -depth))
    words: dict[str, Numbers | int] = {"argument": np.where(text, argument, 0), "text": text}
    begins = _events(
        begin_ns, in_order, EventType.SLICE_BEGIN, track=track, name=name, category=category, key=key, **words
    )
    return pl.concat([begins, _events(end_ns, out_order, EventType.SLICE_END, track=track)])


def instants(
    time_ns: Numbers, *, track: Numbers, name: Numbers, category: int, key: Numbers, is_reception: bool
) -> pl.DataFrame:
    """Instants on tracks; sent messages come before simultaneous received ones."""
    order = _ranked(_RECEIVED if is_reception else _SENT)
    return _events(time_ns, order, EventType.INSTANT, track=track, name=name, category=category, key=key)


def counts(time_ns: Numbers, values: Numbers, *, track: int) -> pl.DataFrame:
    return _events(time_ns, _ranked(_COUNTED), EventType.COUNTER, track=track, value=values)


def _ranked(rank: int, nested: Any = 0) -> Any:
    return (rank << _NESTED_BITS) + nested


def _events(time_ns: Numbers, order: Numbers | int, kind: EventType, **columns: Numbers | int) -> pl.DataFrame:
    given = {"time_ns": time_ns, "order": order, "kind": kind, **columns}
    return pl.DataFrame(
        {
            name: np.broadcast_to(np.asarray(given.get(name, none), dtype=dtype), time_ns.shape)
            for name, (dtype, none) in _EVENTS.items()
        }
    )


_PIDS_PER_HOST: Final = 10_000_000
"""Offset of pids and tids of the second host and later, a multiple for each; above the kernel's limit (2^22)."""

Uuids = npt.NDArray[np.uint64]


class Tracks:
    """Numbers the tracks of a trace and keeps their encoded descriptors, parents before children."""

    def __init__(self, model: ExecutionModel) -> None:
        self.descriptors: list[bytes] = []
        self._several_hosts = len(model.hosts) > 1
        self.process = [self._add_process(model, row) for row in model.processes.iter_rows(named=True)]
        self.thread = [self._add_thread(model, row) for row in model.threads.iter_rows(named=True)]

    def add(self, name: str, *, parent: int | None = None) -> int:
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
        uuid = len(self.descriptors) + 1
        above = b"" if parent is None else number(Track.PARENT_UUID, parent)
        self.descriptors.append(b"".join((number(Track.UUID, uuid), above, *fields)))
        return uuid

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
