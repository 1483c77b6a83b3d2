"""Traces of many megabytes, made of one packet that is written once."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.builders.ctf import Array, Event, Int, Packet, Record, Seq, Text, TraceBuilder

BEGIN_AT, END_AT, NUMBER_AT = 24, 32, 56
"""Bytes of a packet at which `TraceBuilder` writes its two timestamps and its number."""
PERIOD_NS = 1 << 32
"""Interval between packets: the low half of the clock, which events have, is that of the first."""

START = Event("app:start", 1, {"_handle": Int(64), "_flag": Int(32, signed=True)})
SAID = Event("app:said", 2, {"_text": Text(), "__n": Int(8), "_list": Seq(Int(16), "__n")})
CONTEXT = {"_vtid": Int(32, signed=True), "_procname": Array(Int(8, text=True), 17)}


def write_long_trace(directory: Path, *, packets: int, streams: int = 2, records: int = 400) -> Path:
    """`streams` files of `packets` packets of `records` events, which alternate between streams.

    Every tenth event is of variable size. Times of different streams coincide now and then.
    """
    builder = TraceBuilder([START, SAID], context=CONTEXT)
    builder.write(directory, {})
    for stream in range(streams):
        packet = builder.packet(Packet([_record(stream, i) for i in range(records)], cpu=stream))
        begin, end = struct.unpack_from("<QQ", packet, BEGIN_AT)
        with (directory / f"s_{stream}").open("wb") as file:
            for number in range(packets):
                shifted = bytearray(packet)
                struct.pack_into("<QQ", shifted, BEGIN_AT, begin + number * PERIOD_NS, end + number * PERIOD_NS)
                struct.pack_into("<Q", shifted, NUMBER_AT, number)
                file.write(shifted)
    return directory


def _record(stream: int, i: int) -> Record:
    name = f"thread_{(stream + i // 7) % 5}".encode().ljust(17, b"\0")
    context = {"_vtid": 100 + i % 3, "_procname": list(name)}
    time = 1000 * (i + 1) + 250 * stream * (i % 3)
    if i % 10 == 9:
        numbers = list(range(i % 4))
        return Record(SAID, time, {"_text": f"line {i % 30}", "__n": len(numbers), "_list": numbers}, context)
    return Record(START, time, {"_handle": 1 << 40 | i, "_flag": stream - i}, context)
