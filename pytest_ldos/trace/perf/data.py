"""Records of perf's data file: context switches, names of threads, losses.

Reads what ``perf record --switch-events -a`` writes. Records of other types are passed over.

Reference: Linux, ``tools/perf/Documentation/perf.data-file-format.txt``; ``perf_event_open(2)``
(``PERF_RECORD_SWITCH_CPU_WIDE``, ``sample_id_all``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.errors import TraceUnreadable

_MAGIC: Final = b"PERFILE2"
_HEADER: Final = struct.Struct("<8sQQQQQQ")
"""Magic, sizes of header and attribute, and places (offset, size) of attributes and data."""

_RECORD: Final = struct.Struct("<IHH")
_SAMPLE_TYPE, _FLAGS, _CLOCK = 24, 40, 92
"""Offsets in an attribute (``struct perf_event_attr``)."""

_SAMPLE_ID_ALL: Final = 1 << 18
_USE_CLOCKID: Final = 1 << 25
_CLOCK_MONOTONIC: Final = 1
_TID, _TIME, _CPU = 1 << 1, 1 << 2, 1 << 7
_IDS: Final = {1 << 6: "id", 1 << 9: "stream_id", 1 << 16: "identifier"}

_LOST, _COMM, _FORK, _SWITCH = 2, 3, 7, 15
_OUT, _PREEMPTED = 1 << 13, 1 << 14
_REMEDY: Final = "record it again with `perf record -e dummy:u --switch-events -k mono -a`"

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass
class PerfRecords:
    """Records of one file; times are nanoseconds of ``CLOCK_MONOTONIC``, in no order over CPUs.

    Attributes:
        switches: columns ``time``, ``cpu``, ``tid``, ``other`` (who ran before or runs next), ``misc``;
            a thread that leaves its CPU for the last time has no number any more, but -1.
        names: of threads, by tid: the last one of each.
        losses: time, CPU and number of records that perf lost up to then.
    """

    switches: npt.NDArray[Any]
    names: dict[int, str] = field(default_factory=dict)
    losses: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def is_out(self) -> Flags:
        """True for a thread that leaves its CPU, False for one that gets it."""
        found: Flags = (self.switches["misc"] & _OUT) != 0
        return found

    @property
    def is_preempted(self) -> Flags:
        """True for a thread that leaves its CPU while it could run on."""
        found: Flags = (self.switches["misc"] & _PREEMPTED) != 0
        return found


def read_perf_records(path: Path) -> PerfRecords:
    """Reads a data file; one whose writer was killed is read up to its last whole record.

    Raises:
        TraceUnreadable: it is no such file, or its records lack thread, time or CPU.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceUnreadable(path, None, f"cannot be read: {error.strerror}") from None
    if len(content) < _HEADER.size or not content.startswith(_MAGIC):
        raise TraceUnreadable(path, 0, "is no data file of perf", remedy=_REMEDY)
    _, _, _, attributes, attributes_size, begin, size = _HEADER.unpack_from(content)
    trailer = _trailer_of(path, content, attributes, attributes_size)
    end = min(begin + size, len(content)) if size else len(content)
    return _Reader(content, trailer).read(begin, end)


def _trailer_of(path: Path, content: bytes, place: int, size: int) -> list[tuple[str, str]]:
    """Fields behind each record, which are those of the first attribute."""
    if size < _CLOCK + 4 or place + size > len(content):
        raise TraceUnreadable(path, place, "its attributes are damaged", remedy=_REMEDY)
    (kinds,), (flags,) = (struct.unpack_from("<Q", content, place + offset) for offset in (_SAMPLE_TYPE, _FLAGS))
    (clock,) = struct.unpack_from("<i", content, place + _CLOCK)
    if not flags & _SAMPLE_ID_ALL or ~kinds & (_TID | _TIME | _CPU):
        raise TraceUnreadable(path, place, "its records lack thread, time or CPU", remedy=_REMEDY)
    if not flags & _USE_CLOCKID or clock != _CLOCK_MONOTONIC:
        raise TraceUnreadable(path, place, "its clock is not CLOCK_MONOTONIC", remedy=_REMEDY)
    before = [(name, "<u8") for bit, name in _IDS.items() if kinds & bit and name != "identifier"]
    behind = [("identifier", "<u8")] if kinds & 1 << 16 else []
    return [("pid", "<i4"), ("tid", "<i4"), ("time", "<u8"), *before, ("cpu", "<i4"), ("reserved", "<u4"), *behind]


class _Reader:
    def __init__(self, content: bytes, trailer: list[tuple[str, str]]) -> None:
        self._content = content
        self._trailer = np.dtype(trailer)
        head = [("type", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("other_pid", "<i4"), ("other", "<i4")]
        self._switch = np.dtype([*head, *trailer])
        self._found = PerfRecords(np.empty(0, dtype=self._switch))

    def read(self, begin: int, end: int) -> PerfRecords:
        parts = list(self._switches(begin, end))
        if parts:
            self._found.switches = np.concatenate(parts)
        return self._found

    def _switches(self, place: int, end: int) -> Iterator[npt.NDArray[Any]]:
        """Runs of switches that lie together; other records are taken on the way."""
        while place + _RECORD.size <= end:
            kind, _, size = _RECORD.unpack_from(self._content, place)
            if size < _RECORD.size or place + size > end:
                return
            if kind == _SWITCH and size == self._switch.itemsize:
                found = self._run(place, end)
                yield found
                place += found.nbytes
            else:
                self._take(kind, place, size)
                place += size

    def _run(self, place: int, end: int, most: int = 1 << 14) -> npt.NDArray[Any]:
        """Switches from a place up to the first other record."""
        count = min((end - place) // self._switch.itemsize, most)
        found = np.frombuffer(self._content, self._switch, count, place)
        others = np.flatnonzero((found["type"] != _SWITCH) | (found["size"] != self._switch.itemsize))
        return found[: others[0]] if others.size else found

    def _take(self, kind: int, place: int, size: int) -> None:
        """Takes a name, of a thread or of its parent, or a loss."""
        body, behind = place + _RECORD.size, place + size - self._trailer.itemsize
        if kind not in (_COMM, _FORK, _LOST) or behind < body + 8:
            return
        stamp = np.frombuffer(self._content, self._trailer, 1, behind)[0]
        if kind == _COMM:
            tid, name = struct.unpack_from("<4xi", self._content, body)[0], self._content[body + 8 : behind]
            self._found.names[tid] = name.partition(b"\0")[0].decode("utf-8", "replace")
        elif kind == _LOST:
            lost = struct.unpack_from("<8xQ", self._content, body)[0]
            self._found.losses.append((int(stamp["time"]), int(stamp["cpu"]), lost))
        else:
            tid, parent = struct.unpack_from("<8xii", self._content, body)
            self._found.names[tid] = self._found.names.get(parent, "")
