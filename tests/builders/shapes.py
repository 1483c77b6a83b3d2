"""Small traces of CTF 1.8, byte by byte: what metadata may leave out, or write in its own way."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

HEAD = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; %s };\n"
U8 = "integer { size = 8; }"
U32 = "integer { size = 32; align = 8; }"
U64 = "integer { size = 64; align = 8; }"
TICK = f"event {{ name = tick; fields := struct {{ {U8} v; }}; }};\n"
UUID = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"
SIZES = f"{U32} content_size; {U32} packet_size;"
Rows = list[tuple[int, dict[str, Any]]]


@dataclass(frozen=True)
class Shape:
    """A trace, what is in it by event, and its clock (``""`` where it has none)."""

    metadata: str
    streams: dict[str, bytes]
    rows: dict[str, Rows]
    clock: str = ""
    environment: dict[str, str | int] = field(default_factory=dict)


def ticks(*times_and_values: tuple[int, int]) -> dict[str, Rows]:
    return {"tick": [(time, {"v": value}) for time, value in times_and_values]}


def packet(context: bytes, events: bytes, *, size: int) -> bytes:
    """A packet whose context begins with both sizes."""
    content = (8 + len(context) + len(events)) * 8
    return struct.pack("<II", content, size * 8) + (context + events).ljust(size - 8, b"\0")


TIMED = f"stream {{ event.header := struct {{ {U32} timestamp; }}; }};\n"
MAPPED = "integer { size = 32; align = 8; map = clock.c.value; }"
NARROW = "integer { size = %d; align = 8; map = clock.c.value; }"
NUMBERED = f"packet.header := struct {{ {U8} stream_id; }};"
WITH_UUID = f'uuid = "{UUID}"; packet.header := struct {{ {U32} magic; {U8} uuid[16]; }};'
PARTS = (
    HEAD % ""
    + "clock { name = c; freq = 1000000000; };\n"
    + f"stream {{ packet.context := struct {{ {SIZES} {NARROW % 32} timestamp_begin; {NARROW % 32} timestamp_end; }};"
    + f" event.header := struct {{ {NARROW % 16} timestamp; }}; }};\n"
    + TICK
)


def parts(begin: int, end: int, *times: int) -> bytes:
    """A packet with 32 bits of its times, and 16 of its events' times."""
    events = b"".join(struct.pack("<HB", time, value) for value, time in enumerate(times))
    return packet(struct.pack("<II", begin, end), events, size=40)


MAGIC = struct.pack("<I", 0xC1FC1FC1)
TIMES = struct.pack("<IBIBIB", 100, 1, 200, 2, 4_000_000_000, 3)

AROUND = (
    f"stream {{ packet.context := struct {{ {SIZES} {U8} _m; }}; event.header := struct {{ {U8} len;"
    f" enum : {U8} {{ NONE, SOME }} kind; }}; event.context := struct {{ {U8} k; }}; }};\n"
    f"event {{ name = e; fields := struct {{ {U8} a[trace.packet.header.n]; {U8} b[stream.packet.context._m];"
    f" {U8} c[stream.event.header.len]; {U8} d[stream.event.context.k];"
)
SHAPES = {
    "no stream, no clock": Shape(HEAD % "" + TICK, {"s": b"\1\2\3"}, ticks((0, 1), (0, 2), (0, 3))),
    "stream without an id": Shape(
        HEAD % "" + f"stream {{ packet.context := struct {{ {SIZES} }}; }};\n" + TICK,
        {"s": packet(b"", b"\1\2", size=16) + packet(b"", b"\3", size=12)},
        ticks((0, 1), (0, 2), (0, 3)),
    ),
    "the only stream is number 5": Shape(
        HEAD % NUMBERED
        + f"stream {{ id = 5; event.header := struct {{ {U8} id; }}; }};\n"
        + TICK.replace("{", "{ id = 9;", 1),
        {"s": b"\5" + b"\x09\1" + b"\x09\2"},
        ticks((0, 1), (0, 2)),
    ),
    "time of no clock": Shape(
        HEAD % "" + TIMED + TICK, {"s": TIMES}, ticks((100, 1), (200, 2), (4_000_000_000, 3)), "default"
    ),
    "time of the only clock": Shape(
        HEAD % "" + "clock { name = c; freq = 1000000000; offset_s = 7; offset = 5; };\n" + TIMED + TICK,
        {"s": TIMES},
        ticks((7_000_000_105, 1), (7_000_000_205, 2), (11_000_000_005, 3)),
        "c",
    ),
    "an unused clock": Shape(
        HEAD % "" + "clock { name = c; freq = 1000000000; };\n" + TICK, {"s": b"\1"}, ticks((0, 1))
    ),
    "before the epoch": Shape(
        HEAD % "" + "clock { name = c; freq = 1000000000; offset_s = -3; offset = 1; };\n" + TIMED + TICK,
        {"s": TIMES},
        ticks((-2_999_999_899, 1), (-2_999_999_799, 2), (1_000_000_001, 3)),
        "c",
    ),
    "escapes": Shape(
        HEAD % r"test = '\n'; other = '\'';"
        + 'env { a = "?\\x20\\040?"; b = "\\a\\b\\f\\v\\r\\t\\"\\?\\\\"; c = "two\nlines"; d = "\\101\\x41\\61x"; e = -5; };\n'
        + TICK.replace("name = tick", r'name = "\x74\151ck"'),
        {"s": b"\1"},
        ticks((0, 1)),
        environment={"a": "?  ?", "b": '\a\b\f\v\r\t"?\\', "c": "two\nlines", "d": "AA1x", "e": -5},
    ),
    "another trace's uuid": Shape(
        HEAD % WITH_UUID + f"stream {{ packet.context := struct {{ {SIZES} }}; }};\n" + TICK,
        {"s": b"".join(MAGIC + bytes(range(16)) + struct.pack("<IIB3x", 232, 256, value) for value in (1, 2))},
        ticks((0, 1), (0, 2)),
    ),
    "types with pointers": Shape(
        HEAD % ""
        + "typealias integer { size = 16; align = 8; } := unsigned long * const *;\n"
        + f"typealias {U8} := void *;\ntypedef {U8} byte;\n"
        + "event { name = p; fields := struct { void *from; unsigned long *const *to; byte b; void *both[2]; }; };\n",
        {"s": b"\1\2\3\4\5\6"},
        {"p": [(0, {"from": 1, "to": 0x302, "b": 4, "both": [5, 6]})]},
    ),
    "parts of a clock": Shape(
        PARTS,
        {"s": parts(0x10000, 0x40000, 10, 9, 8) + parts(0x50000, 0x50010, 5)},
        ticks((0x1000A, 0), (0x20009, 1), (0x30008, 2), (0x50005, 0)),
        "c",
    ),
    "a clock that goes on in the next packet": Shape(
        HEAD % ""
        + "clock { name = c; freq = 1000000000; };\n"
        + f"stream {{ packet.context := struct {{ {SIZES} }}; event.header := struct {{ {NARROW % 8} timestamp; }}; }};\n"
        + TICK,
        {"s": packet(b"", b"\xf0\1\x10\2", size=16) + packet(b"", b"\x05\3", size=12)},
        ticks((0xF0, 1), (0x110, 2), (0x205, 3)),
        "c",
    ),
    "the time in a packet's context alone": Shape(
        HEAD % ""
        + "clock { name = c; freq = 1000000000; };\n"
        + f"stream {{ packet.context := struct {{ {SIZES} {U64} timestamp_begin; }}; }};\n"
        + TICK,
        {"s": packet(struct.pack("<Q", 77), b"\1\2", size=24) + packet(struct.pack("<Q", 99), b"\3", size=20)},
        ticks((77, 1), (77, 2), (99, 3)),
        "c",
    ),
    "streams of two clocks that count from the epoch": Shape(
        HEAD % NUMBERED
        + "clock { name = a; freq = 1000000000; offset = 40; absolute = true; };\n"
        + "clock { name = b; freq = 500000000; offset_s = 1; absolute = TRUE; };\n"
        + "".join(
            f"stream {{ id = {number}; event.header := struct {{"
            f" integer {{ size = 64; align = 8; map = clock.{clock}.value; }} timestamp; }}; }};\n"
            + TICK.replace("{", f"{{ stream_id = {number};", 1)
            for number, clock in enumerate("ab")
        ),
        {"s": b"\0" + struct.pack("<QBQB", 60, 1, 2_000_000_000, 2), "t": b"\1" + struct.pack("<QB", 7, 3)},
        ticks((100, 1), (1_000_000_014, 3), (2_000_000_040, 2)),
        "a",
    ),
    "a clock that fields of events move": Shape(
        HEAD % ""
        + "clock { name = c; freq = 1000000000; };\n"
        + f"stream {{ event.header := struct {{ {NARROW % 8} timestamp; }}; }};\n"
        + f"event {{ name = e; fields := struct {{ {NARROW % 32} at; {U8} v; }}; }};\n",
        {"s": struct.pack("<BIBBIBBIB", 7, 1000, 1, 0xF0, 0x10000, 2, 5, 0x10020, 3)},
        {"e": [(7, {"at": 1000, "v": 1}), (0x3F0, {"at": 0x10000, "v": 2}), (0x10005, {"at": 0x10020, "v": 3})]},
        "c",
    ),
    "a length by its whole path": Shape(
        HEAD % ""
        + f"stream {{ packet.context := struct {{ {SIZES} {U8} n; {U8} a[stream.packet.context.n]; }}; }};\n"
        + TICK,
        {"s": packet(b"\2\7\7", b"\1\2", size=16)},
        ticks((0, 1), (0, 2)),
    ),
    "lengths around an event": Shape(
        HEAD % f"packet.header := struct {{ {U8} n; }};" + AROUND + f" {U8} k; {U8} f[event.fields.k]; }}; }};\n",
        {
            "s": b"\2"
            + struct.pack("<IIB", 31 * 8, 32 * 8, 1)
            + b"\1\1\1\xa1\xa2\xb1\xc1\xd1\0"
            + b"\3\0\0\xa3\xa4\xb2\1\2\3\2\x08\x09\0"
        },
        {
            "e": [
                (0, {"k": 1, "a": [0xA1, 0xA2], "b": [0xB1], "c": [0xC1], "d": [0xD1], "f": []}),
                (0, {"k": 0, "a": [0xA3, 0xA4], "b": [0xB2], "c": [1, 2, 3], "d": [], "f": [8, 9]}),
            ]
        },
    ),
    "alignment of arrays without elements": Shape(
        HEAD % ""
        + f"event {{ name = e; fields := struct {{ {U8} a; integer {{ size = 8; align = 16; }} b[0]; {U8} c; }}; }};\n",
        {"s": b"\1\0\2"},
        {"e": [(0, {"a": 1, "b": [], "c": 2})]},
    ),
}
for name, order in (("little", "<"), ("big", ">")):
    head = HEAD.replace("byte_order = le", f"byte_order = {'le' if name == 'little' else 'be'}")
    SHAPES[f"words of C, {name} endian"] = Shape(
        head % ""
        + "typealias integer { size = 16; align = 8; signed = true; } := signed short int;\n"
        + "enum kind : integer { size = 8; } { NONE, SOME = 3 ... 5, REST };\n"
        + "struct inner { signed short int x; };\n"
        + "variant choice { string NONE; struct inner SOME; };\n"
        + "event { name = e; fields := struct { enum kind k; variant choice <k> what; struct inner last; }; };\n",
        {"s": struct.pack(f"{order}Bhh", 4, -2, 7)},
        {"e": [(0, {"k": 4, "what.SOME.x": -2, "last.x": 7})]},
    )
