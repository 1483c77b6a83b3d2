"""Inputs for the fuzz target that are written to fill memory, to hang, or to run out of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.builders.ctf import Array, Event, Int, Packet, Record, Seq, Struct, TraceBuilder
from tests.native.seeds import SKIP, pack

TICK = Event("app:tick", 1, {"_value": Int(32)})


def builder(*events: Event) -> TraceBuilder:
    return TraceBuilder(events or [TICK], packetized=False, header="compact")


def packet(of: TraceBuilder, records: Sequence[Record], **options) -> bytes:
    return of.packet(Packet(records, **options))


def ticks(count: int) -> list[Record]:
    return [Record(TICK, time, {"_value": time}) for time in range(count)]


def with_types(declarations: str, field_type: str) -> bytes:
    """A good trace whose metadata also declares types, and an event of one of them."""
    event = f'event {{ name = "h"; id = 9; stream_id = 0; fields := struct {{ {field_type} all; }}; }};'
    text = builder().tsdl() + declarations + event
    return pack(text.encode(), packet(builder(), ticks(3)))


def with_members(members: str) -> bytes:
    text = builder().tsdl().replace("fields := struct {", f"fields := struct {{ {members}", 1)
    return pack(text.encode(), packet(builder(), ticks(3)))


def bare(stream: str, content: bytes, *, options: int = 0, clock: str = "", header: str = "") -> bytes:
    """A trace with nothing that LTTng would write: no magic number, no uuid, no sizes but those given."""
    parts = [
        f"/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; {header} }};",
        f"clock {{ name = c; {clock} }};",
        f"stream {{ id = 0; {stream} }};",
        "event { name = e; id = 0; stream_id = 0; };",
    ]
    return pack("\n".join(parts).encode(), content, options=options)


def hostile_types() -> Iterator[tuple[str, bytes]]:
    """Metadata of a few lines that declares more than there is memory for."""
    for name, first in (("doubled_types", "struct { uint8_t x; }"), ("doubled_empty_types", "struct { }")):
        doubled = "".join(f"typealias struct {{ t{n} a; t{n} b; }} := t{n + 1};" for n in range(60))
        yield name, with_types(f"typealias {first} := t0;{doubled}", "t60")
    chain = "".join(f"typealias struct {{ t{n} a; }} := t{n + 1};" for n in range(2000))
    yield "chained_types", with_types(f"typealias struct {{ uint8_t x; }} := t0;{chain}", "t2000")
    long = "n" * 4000
    named = "".join(f"typealias struct {{ t{n} {long}a; t{n} {long}b; }} := t{n + 1};" for n in range(13))
    yield "long_names", with_types(f"typealias struct {{ uint8_t x; }} := t0;{named}", "t13")
    labels = ", ".join(f"l{n}" for n in range(6000))
    many = " ".join(f"e f{n};" for n in range(1000))
    yield "shared_labels", with_types(f"typealias enum : uint8_t {{ {labels} }} := e;", f"struct {{ {many} }}")
    yield "chained_arrays", with_members("uint8_t a" + "[1]" * 5000 + ";")
    yield "nested_arrays", with_members("uint8_t a" + "[4000000000]" * 20 + ";")
    yield "wrapping_labels", with_members("enum : uint64_t { a = 18446744073709551615, b, c = -1 ... 5 } k;")


def hostile_tables() -> Iterator[tuple[str, bytes]]:
    """Small streams that ask for large columns."""
    zero = Event("app:zero", 3, {f"_z{n}": Array(Int(8), 0) for n in range(500)})
    of = builder(zero)
    nothing: dict[str, list[int]] = {name: [] for name in zero.members}
    yield "empty_lists", pack(of.tsdl().encode(), packet(of, [Record(zero, time, nothing) for time in range(3000)]))
    tiny, huge = Event("app:same", 1), Event("app:same", 2, {f"_f{n}": Int(64) for n in range(800)})
    of = builder(tiny, huge)
    records = [Record(tiny, time) for time in range(12_000)]
    records.append(Record(huge, 12_001, dict.fromkeys(huge.members, 0)))
    yield "disjoint_layouts", pack(of.tsdl().encode(), packet(of, records))
    wide = Event("app:same", 2, {"_f": Array(Int(8), 30_000)})
    of = builder(tiny, wide)
    records[-1] = Record(wide, 12_001, {"_f": [1] * 30_000})
    yield "wide_list", pack(of.tsdl().encode(), packet(of, records))
    endless = Event("app:seq", 1, {"__n": Int(64), "_l": Seq(Struct({"_x": Int(1, align=1)}), "__n")})
    of = builder(endless)
    content = packet(of, [Record(endless, 1, {"__n": 1, "_l": [{"_x": 1}]})])
    content = content[:80] + b"\xff" * 8 + content[88:]
    yield "endless_sequence", pack(of.tsdl().encode(), content)


def hostile_packets() -> Iterator[tuple[str, bytes]]:
    """Streams in which looking for the next packet could take quadratic time."""
    of = builder()
    metadata = of.tsdl().encode()
    one = packet(of, ticks(3))
    yield "magic_everywhere", pack(metadata, one[:4] * 10_000, options=SKIP)
    yield "heads_everywhere", pack(metadata, one[:20] * 2500, options=SKIP)
    yield "endless_packets", pack(metadata, packet(of, [], sizes=(0, 1 << 62)) * 600, options=SKIP)
    yield "unfinished_packets", pack(metadata, packet(of, ticks(1), sizes=(0, 0)) * 600, options=SKIP)
    yield "same_packet_often", pack(metadata, one * 500, options=SKIP)
    size = "packet.context := struct { integer { size = %d; } packet_size; };"
    time = "event.header := struct { integer { size = %d; map = clock.c.value; } t; };"
    foreign = one[:4] + bytes(16) + one[20:]
    yield "foreign_packets", pack(metadata, foreign * 500, options=SKIP)
    yield "foreign_heads_everywhere", pack(metadata, foreign[:20] * 2500, options=SKIP)
    for name, clock in (
        ("latest", "freq = 1; offset_s = 9223372036;"),
        ("offset", "freq = 1; offset_s = 9223372036854775807; offset = 18446744073709551615;"),
        ("behind", "freq = 3; offset_s = -9223372036854775808; offset = -18446744073709551615;"),
        ("fast", "freq = 18446744073709551615; offset = 18446744073709551614;"),
    ):
        yield f"times_{name}", bare(time % 64, b"\xfe\xff\xff\xff" * 2000, clock=clock, options=SKIP)
    begin = size % 8 + " integer { size = 8; map = clock.c.value; } timestamp_begin; };"
    yield "clock_in_parts", bare(begin.replace("; };", ";", 1) + time % 4, b"\x18\xf0\x0f" * 15_000, options=SKIP)
    yield "packets_of_one_byte", bare(size % 8 + time % 1, b"\x08" * 50_000)
    yield "blanks_without_magic", bare(size % 16 + time % 8, bytes(60_000), options=SKIP)
    least = "freq = 1; offset = -9223372036854775808; offset_s = -9223372036854775808;"
    yield "events_of_one_bit", bare(time % 1, b"\x5a" * 20_000, clock=least)
    yield "events_of_no_bit", bare("", b"\x5a" * 20_000)


def write_hostile_inputs(directory: Path) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in (*hostile_types(), *hostile_tables(), *hostile_packets()):
        written.append(directory / f"{name}.trace")
        written[-1].write_bytes(content)
    return written
