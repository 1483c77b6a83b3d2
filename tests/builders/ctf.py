"""Writes CTF 1.8 traces of any shape: metadata as text, streams bit by bit.

Written from the specification (CTF 1.8.3) and independent of the decoder, so that what
one writes and the other reads can disagree.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

PACKET_MAGIC = 0xC1FC1FC1
METADATA_MAGIC = 0x75D11D57


class BitWriter:
    """A packet in the making. In little endian, bits fill a byte from its least significant
    end; in big endian, from its most significant one."""

    def __init__(self, big_endian: bool = False) -> None:
        self.data = bytearray()
        self.length = 0
        self.order: Literal["big", "little"] = "big" if big_endian else "little"

    def align(self, bits: int) -> None:
        missing = -self.length % bits
        if missing:
            self.write(0, missing)

    def write(self, value: int, size: int) -> None:
        value &= (1 << size) - 1
        if self.length % 8 == 0 and size % 8 == 0:
            self.data += value.to_bytes(size // 8, self.order)
            self.length += size
            return
        positions = range(size) if self.order == "little" else range(size - 1, -1, -1)
        for position in positions:
            self._write_bit(value >> position & 1)

    def _write_bit(self, bit: int) -> None:
        at = self.length % 8
        if at == 0:
            self.data.append(0)
        self.data[-1] |= bit << (at if self.order == "little" else 7 - at)
        self.length += 1


class Field:
    """A CTF type: how it is declared, and how a value is written."""

    align = 1

    def declare(self, name: str) -> str:
        raise NotImplementedError

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        raise NotImplementedError


@dataclass
class Int(Field):
    size: int
    signed: bool = False
    align: int = 8
    text: bool = False
    clock: str = ""

    def type(self) -> str:
        mapped = f" map = clock.{self.clock}.value;" if self.clock else ""
        encoding = " encoding = UTF8;" if self.text else ""
        return (
            f"integer {{ size = {self.size}; align = {self.align}; signed = {str(self.signed).lower()};"
            f"{encoding}{mapped} }}"
        )

    def declare(self, name: str) -> str:
        return f"{self.type()} {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        out.align(self.align)
        out.write(value, self.size)


@dataclass
class Float(Field):
    size: int = 64
    align: int = 8

    def declare(self, name: str) -> str:
        exponent, mantissa = (11, 53) if self.size == 64 else (8, 24)
        return f"floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {self.align}; }} {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        out.align(self.align)
        packed = struct.pack(">d" if self.size == 64 else ">f", value)
        out.write(int.from_bytes(packed, "big"), self.size)


@dataclass
class Text(Field):
    align: int = 8

    def declare(self, name: str) -> str:
        return f"string {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        out.align(8)
        data = value if isinstance(value, bytes) else value.encode()
        out.data += data + b"\0"
        out.length += 8 * (len(data) + 1)


@dataclass
class Enum(Field):
    labels: Mapping[str, tuple[int, int]]
    container: Int = field(default_factory=lambda: Int(8))

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.container.align

    def declare(self, name: str) -> str:
        mappings = ", ".join(f"{label} = {first} ... {last}" for label, (first, last) in self.labels.items())
        return f"enum : {self.container.type()} {{ {mappings} }} {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        self.container.write(out, value, scope)


@dataclass
class Array(Field):
    element: Field
    length: int

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.element.align

    def declare(self, name: str) -> str:
        return self.element.declare(f"{name}[{self.length}]")

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        out.align(self.align)
        for each in value:
            self.element.write(out, each, scope)


@dataclass
class Seq(Field):
    element: Field
    length_field: str

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.element.align

    def declare(self, name: str) -> str:
        return self.element.declare(f"{name}[{self.length_field}]")

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        assert scope[self.length_field] == len(value)
        out.align(self.align)
        for each in value:
            self.element.write(out, each, scope)


@dataclass
class Struct(Field):
    members: Mapping[str, Field]
    own_align: int = 1

    @property
    def align(self) -> int:  # type: ignore[override]
        return max([self.own_align, *(member.align for member in self.members.values())])

    def type(self) -> str:
        body = " ".join(member.declare(name) for name, member in self.members.items())
        return f"struct {{ {body} }} align({self.own_align})"

    def declare(self, name: str) -> str:
        return f"{self.type()} {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        out.align(self.align)
        for name, member in self.members.items():
            scope[name] = value[name]
            member.write(out, value[name], scope)


@dataclass
class Variant(Field):
    tag: str
    options: Mapping[str, Field]
    labels: Mapping[str, tuple[int, int]]

    def declare(self, name: str) -> str:
        body = " ".join(option.declare(label) for label, option in self.options.items())
        return f"variant <{self.tag}> {{ {body} }} {name};"

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        chosen = next(label for label, (first, last) in self.labels.items() if first <= scope[self.tag] <= last)
        self.options[chosen].write(out, value, scope)


@dataclass
class Event:
    """An event class: payload members by raw name."""

    name: str
    id: int
    members: Mapping[str, Field] = field(default_factory=dict)


@dataclass
class Record:
    """An event to be written."""

    event: Event
    time: int
    values: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Packet:
    records: Sequence[Record]
    discarded: int = 0
    sequence: int = 0
    cpu: int = 0
    begin: int | None = None
    end: int | None = None
    padding: int = 0
    instance: int = 0
    sizes: tuple[int, int] | None = None
    """Content and packet size in bits, where they are not to be true."""


class TraceBuilder:
    """A trace with one stream class, in LTTng's form by default.

    Args:
        header: ``compact``, ``large``, or ``none`` (a plain struct of id and 64-bit time).
        clock_offset: nanoseconds from the clock's zero to the epoch.
        instances: whether packet headers tell the stream's instance, as LTTng's do.
        identity: of the trace, its uuid as a number.
        environment: more entries of the ``env`` block.

    Attributes:
        numbered: whether packets have a sequence number.
    """

    numbered = True

    def __init__(
        self,
        events: Sequence[Event],
        *,
        header: str = "large",
        context: Mapping[str, Field] | None = None,
        big_endian: bool = False,
        clock_offset: int = 0,
        frequency: int = 1_000_000_000,
        packetized: bool = True,
        counter_bits: int = 64,
        instances: bool = False,
        identity: int = 0x1234567890ABCDEF1234567890ABCDEF,
        environment: Mapping[str, str | int] | None = None,
    ) -> None:
        self.events = events
        self.header = header
        self.context = Struct(context) if context else None
        self.big_endian = big_endian
        self.clock_offset = clock_offset
        self.frequency = frequency
        self.packetized = packetized
        self.counter_bits = counter_bits
        self.instances = instances
        self.uuid = uuid.UUID(int=identity)
        self.environment = {"hostname": "builder", "domain": "ust", "tracer_major": 2, **(environment or {})}

    # --- metadata -----------------------------------------------------------------------

    def tsdl(self) -> str:
        order = "be" if self.big_endian else "le"
        context = f"event.context := {self.context.type()};" if self.context else ""
        parts = [
            "/* CTF 1.8 */",
            "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;",
            "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;",
            "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;",
            f'trace {{ major = 1; minor = 8; uuid = "{self.uuid}"; byte_order = {order};'
            " packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id;"
            f"{' uint64_t stream_instance_id;' if self.instances else ''} }}; }};",
            self._environment_declaration(),
            f"clock {{ name = monotonic; freq = {self.frequency}; offset = {self.clock_offset}; }};",
            "typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := u27_t;",
            "typealias integer { size = 32; align = 8; map = clock.monotonic.value; } := u32_t;",
            "typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := u64_t;",
            "struct packet_context { u64_t timestamp_begin; u64_t timestamp_end; uint64_t content_size;"
            f" uint64_t packet_size;{' uint64_t packet_seq_num;' if self.numbered else ''} uint{self.counter_bits}_t events_discarded;"
            " uint32_t cpu_id; };",
            self._header_declaration(),
            f"stream {{ id = 0; event.header := struct event_header; packet.context := struct packet_context; {context} }};",
            *(self._event_declaration(event) for event in self.events),
        ]
        return "\n".join(parts) + "\n"

    def _environment_declaration(self) -> str:
        entries = (
            f'{name} = "{value}";' if isinstance(value, str) else f"{name} = {value};"
            for name, value in self.environment.items()
        )
        return f"env {{ {' '.join(entries)} }};"

    def _header_declaration(self) -> str:
        if self.header == "none":
            return "struct event_header { uint32_t id; u64_t timestamp; } align(8);"
        id_size, compact_last, time = (5, 30, "u27_t") if self.header == "compact" else (16, 65534, "u32_t")
        align = 1 if self.header == "compact" else 8
        return (
            f"struct event_header {{ enum : integer {{ size = {id_size}; align = {align}; }}"
            f" {{ compact = 0 ... {compact_last}, extended = {compact_last + 1} }} id;"
            f" variant <id> {{ struct {{ {time} timestamp; }} compact;"
            " struct { uint32_t id; u64_t timestamp; } extended; } v; } align(8);"
        )

    @staticmethod
    def _event_declaration(event: Event) -> str:
        fields = Struct(event.members).type()
        return f'event {{ name = "{event.name}"; id = {event.id}; stream_id = 0; fields := {fields}; }};'

    def metadata(self) -> bytes:
        text = self.tsdl().encode()
        if not self.packetized:
            return text
        order = ">" if self.big_endian else "<"
        content = (37 + len(text)) * 8
        size = -(-(37 + len(text)) // 4096) * 4096
        head = struct.pack(f"{order}I16sIIIBBBBB", METADATA_MAGIC, self.uuid.bytes, 0, content, size * 8, 0, 0, 0, 1, 8)
        return (head + text).ljust(size, b"\0")

    # --- streams ------------------------------------------------------------------------

    def packet(self, packet: Packet) -> bytes:
        """One packet; its sizes are put in after its events are written."""
        first = packet.records[0].time if packet.records else 0
        last = packet.records[-1].time if packet.records else 0
        begin = first if packet.begin is None else packet.begin
        end = last if packet.end is None else packet.end
        out = BitWriter(self.big_endian)
        out.write(PACKET_MAGIC, 32)
        for byte in self.uuid.bytes:
            out.write(byte, 8)
        out.write(0, 32)
        if self.instances:
            out.write(packet.instance, 64)
        for value in (begin, end):
            out.write(value, 64)
        sizes_at = len(out.data)
        out.write(0, 128)
        if self.numbered:
            out.write(packet.sequence, 64)
        out.write(packet.discarded, self.counter_bits)
        out.write(packet.cpu, 32)
        clock = begin
        for record in packet.records:
            clock = self._event(out, record, clock)
        size = -(-out.length // 8) * 8 + packet.padding * 8
        for place, value in enumerate((out.length, size) if packet.sizes is None else packet.sizes):
            at = sizes_at + 8 * place
            out.data[at : at + 8] = value.to_bytes(8, out.order)
        return bytes(out.data).ljust(size // 8, b"\0")

    def _event(self, out: BitWriter, record: Record, clock: int) -> int:
        out.align(8)
        self._event_header(out, record, clock)
        scope: dict[str, Any] = {}
        if self.context:
            self.context.write(out, record.context, scope)
        Struct(record.event.members).write(out, record.values, scope)
        return record.time

    def _event_header(self, out: BitWriter, record: Record, clock: int) -> None:
        if self.header == "none":
            out.write(record.event.id, 32)
            out.write(record.time, 64)
            return
        id_size, time_size = (5, 27) if self.header == "compact" else (16, 32)
        extended = (1 << id_size) - 1
        if record.event.id < extended and record.time - clock < 1 << time_size:
            out.write(record.event.id, id_size)
            out.write(record.time, time_size)
            return
        out.write(extended, id_size)
        out.align(8)
        out.write(record.event.id, 32)
        out.write(record.time, 64)

    def write(self, directory: Path, streams: Mapping[str, Sequence[Packet]]) -> Path:
        """Writes metadata and one file a stream; returns the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "metadata").write_bytes(self.metadata())
        for name, packets in streams.items():
            (directory / name).write_bytes(b"".join(self.packet(packet) for packet in packets))
        return directory
