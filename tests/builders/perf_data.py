"""Data files as ``perf record --switch-events -a -k mono`` writes them, one call a record."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

HEADER_SIZE = 104
ATTRIBUTE_SIZE = 128 + 16
USUAL_TYPE = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8
USUAL_FLAGS = 1 << 18 | 1 << 25
OUT, PREEMPTED = 1 << 13, 1 << 14


@dataclass
class PerfData:
    """Times are nanoseconds of ``CLOCK_MONOTONIC``."""

    sample_type: int = USUAL_TYPE
    flags: int = USUAL_FLAGS
    clock: int = 1
    records: list[bytes] = field(default_factory=list)

    def switch(self, time: int, cpu: int, before: int, after: int, *, preempted: bool = False) -> None:
        """A thread leaves a CPU to another one; the idle thread (0) has no records of its own, an ended one is -1."""
        if before:
            self.add(15, struct.pack("<ii", after, after), before, time, cpu, OUT | (PREEMPTED if preempted else 0))
        if after:
            self.add(15, struct.pack("<ii", before, before), after, time + 1, cpu)

    def name(self, tid: int, name: str) -> None:
        self.add(3, struct.pack("<ii", tid, tid) + name.encode().ljust(16, b"\0"), tid, 0, 0)

    def fork(self, time: int, tid: int, parent: int) -> None:
        self.add(7, struct.pack("<iiiiQ", tid, parent, tid, parent, time), parent, time, 0)

    def lose(self, time: int, cpu: int, count: int) -> None:
        self.add(2, struct.pack("<QQ", 7, count), 0, time, cpu)

    def add(self, kind: int, body: bytes, tid: int, time: int, cpu: int, misc: int = 0) -> None:
        trailer = struct.pack("<iiQ", tid, tid, time)
        trailer += struct.pack("<Q", 5) if self.sample_type & 1 << 6 else b""
        trailer += struct.pack("<iI", cpu, 0)
        trailer += struct.pack("<Q", 5) if self.sample_type & 1 << 16 else b""
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body) + len(trailer)) + body + trailer)

    def write(self, path: Path, *, killed: bool = False) -> Path:
        """Writes the file; of a killed perf, the header does not know how much there is."""
        attribute = bytearray(ATTRIBUTE_SIZE)
        struct.pack_into("<Q", attribute, 24, self.sample_type)
        struct.pack_into("<Q", attribute, 40, self.flags)
        struct.pack_into("<i", attribute, 92, self.clock)
        data = b"".join(self.records)
        size = 0 if killed else len(data)
        begin = HEADER_SIZE + ATTRIBUTE_SIZE
        header = struct.pack(
            "<8sQQQQQQ", b"PERFILE2", HEADER_SIZE, ATTRIBUTE_SIZE, HEADER_SIZE, ATTRIBUTE_SIZE, begin, size
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(header.ljust(HEADER_SIZE, b"\0") + attribute + data)
        return path
