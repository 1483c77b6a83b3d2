"""Writes CTF 2 traces: metadata as a JSON text sequence, streams as for CTF 1.8.

Written from CTF2-SPEC-2.0, in the shape of what LTTng 2.15 writes; independent of the decoder.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from tests.builders.ctf import (
    METADATA_MAGIC,
    Array,
    BitWriter,
    Enum,
    Event,
    Field,
    Float,
    Int,
    Seq,
    Struct,
    Text,
    TraceBuilder,
    Variant,
)

Json = dict[str, Any]


@dataclass
class VarInt(Field):
    """LEB128."""

    signed: bool = False
    align: int = 8

    def write(self, out: BitWriter, value: int, scope: dict[str, Any]) -> None:
        out.align(8)
        while True:
            byte, value = value & 0x7F, value >> 7
            sign = byte & 0x40 if self.signed else 0
            is_last = value == (-1 if sign else 0)
            out.write(byte if is_last else byte | 0x80, 8)
            if is_last:
                return


@dataclass
class Bool(Field):
    size: int = 8
    align: int = 8

    def write(self, out: BitWriter, value: bool, scope: dict[str, Any]) -> None:
        out.align(self.align)
        out.write(int(value), self.size)


@dataclass
class Bytes(Field):
    """A string or BLOB of a length that is static, or held by a field before it."""

    kind: str
    length: int | str
    align: int = 8

    def write(self, out: BitWriter, value: bytes, scope: dict[str, Any]) -> None:
        out.align(8)
        for byte in value.ljust(self.length, b"\0") if isinstance(self.length, int) else value:
            out.write(byte, 8)


@dataclass
class Optional(Field):
    """There if its selector is: a boolean, or an integer in one of the ranges."""

    field: Field
    selector: Sequence[str]
    ranges: Sequence[tuple[int, int]] | None = None

    def write(self, out: BitWriter, value: Any, scope: dict[str, Any]) -> None:
        if value is not None:
            self.field.write(out, value, scope)


def location(path: str | Sequence[str]) -> Json:
    return {"origin": "event-record-payload", "path": [path] if isinstance(path, str) else list(path)}


@singledispatch
def field_class(field: Field, order: str) -> Json:
    raise NotImplementedError(type(field))


@field_class.register
def _(field: Int, order: str) -> Json:
    kind = "fixed-length-signed-integer" if field.signed else "fixed-length-unsigned-integer"
    return {"type": kind, "length": field.size, "alignment": field.align, "byte-order": order}


@field_class.register
def _(field: Float, order: str) -> Json:
    kind = "fixed-length-floating-point-number"
    return {"type": kind, "length": field.size, "alignment": field.align, "byte-order": order}


@field_class.register
def _(field: Bool, order: str) -> Json:
    return {"type": "fixed-length-boolean", "length": field.size, "alignment": field.align, "byte-order": order}


@field_class.register
def _(field: VarInt, order: str) -> Json:
    return {"type": "variable-length-signed-integer" if field.signed else "variable-length-unsigned-integer"}


@field_class.register
def _(field: Text, order: str) -> Json:
    return {"type": "null-terminated-string"}


@field_class.register
def _(field: Bytes, order: str) -> Json:
    if isinstance(field.length, int):
        return {"type": f"static-length-{field.kind}", "length": field.length}
    return {"type": f"dynamic-length-{field.kind}", "length-field-location": location(field.length)}


@field_class.register
def _(field: Enum, order: str) -> Json:
    return {**field_class(field.container, order), "mappings": {name: [list(r)] for name, r in field.labels.items()}}


@field_class.register
def _(field: Array, order: str) -> Json:
    element = field_class(field.element, order)
    return {"type": "static-length-array", "length": field.length, "element-field-class": element}


@field_class.register
def _(field: Seq, order: str) -> Json:
    element = field_class(field.element, order)
    length = location(field.length_field)
    return {"type": "dynamic-length-array", "length-field-location": length, "element-field-class": element}


@field_class.register
def _(field: Struct, order: str) -> Json:
    members = [{"name": name, "field-class": field_class(member, order)} for name, member in field.members.items()]
    return {"type": "structure", "minimum-alignment": field.own_align, "member-classes": members}


@field_class.register
def _(field: Variant, order: str) -> Json:
    options: list[Json] = [
        {
            "name": name,
            "selector-field-ranges": [list(field.labels[name])],
            "field-class": field_class(option, order),
        }
        for name, option in field.options.items()
    ]
    return {"type": "variant", "selector-field-location": location(field.tag), "options": options}


@field_class.register
def _(field: Optional, order: str) -> Json:
    found: Json = {
        "type": "optional",
        "selector-field-location": location(field.selector),
        "field-class": field_class(field.field, order),
    }
    if field.ranges is not None:
        found["selector-field-ranges"] = [list(each) for each in field.ranges]
    return found


class Ctf2Builder(TraceBuilder):
    """A trace as `TraceBuilder` writes it, declared in JSON, with the aliases that LTTng uses."""

    @property
    def order(self) -> str:
        return "big-endian" if self.big_endian else "little-endian"

    def fragments(self) -> list[Json]:
        preamble = {"type": "preamble", "version": 2, "uuid": list(self.uuid.bytes)}
        return [
            preamble,
            *self._aliases(),
            self._trace(),
            self._clock(),
            self._stream(),
            *map(self._event_class, self.events),
        ]

    def tsdl(self) -> str:
        return "".join(f"\x1e{json.dumps(fragment)}\n" for fragment in self.fragments())

    def metadata(self) -> bytes:
        text = self.tsdl().encode()
        if not self.packetized:
            return text
        order = ">" if self.big_endian else "<"
        size = -(-(37 + len(text)) // 4096) * 4096
        sizes = ((37 + len(text)) * 8, size * 8)
        head = struct.pack(f"{order}I16sIIIBBBBB", METADATA_MAGIC, self.uuid.bytes, 0, *sizes, 0, 0, 0, 2, 0)
        return (head + text).ljust(size, b"\0")

    def _unsigned(self, size: int, *roles: str, align: int = 8, **more: Any) -> Json:
        found = {"type": "fixed-length-unsigned-integer", "length": size, "byte-order": self.order, "alignment": align}
        return {**found, **({"roles": list(roles)} if roles else {}), **more}

    def _structure(self, members: Mapping[str, Any], alignment: int = 1) -> Json:
        classes = [{"name": name, "field-class": member} for name, member in members.items()]
        return {"type": "structure", "minimum-alignment": alignment, "member-classes": classes}

    def _aliases(self) -> list[Json]:
        aliases = {
            "u32-erc-id": self._unsigned(32, "event-record-class-id"),
            "u64-ts": self._unsigned(64, "default-clock-timestamp"),
            "pkt-header": self._packet_header(),
            "er-header": self._event_header_class(),
        }
        return [{"type": "field-class-alias", "name": name, "field-class": found} for name, found in aliases.items()]

    def _packet_header(self) -> Json:
        members = {
            "magic": self._unsigned(32, "packet-magic-number"),
            "uuid": {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]},
            "stream_id": self._unsigned(32, "data-stream-class-id"),
        }
        if self.instances:
            members["stream_instance_id"] = self._unsigned(64, "data-stream-id")
        return self._structure(members)

    def _packet_context(self) -> Json:
        discarded = "discarded-event-record-counter-snapshot"
        return self._structure(
            {
                "timestamp_begin": "u64-ts",
                "the end": self._unsigned(64, "packet-end-default-clock-timestamp"),
                "content_size": self._unsigned(64, "packet-content-length"),
                "packet_size": self._unsigned(64, "packet-total-length"),
                "the number": self._unsigned(64, "packet-sequence-number"),
                "events_discarded": self._unsigned(self.counter_bits, discarded),
                "cpu_id": self._unsigned(32),
            }
        )

    def _event_header_class(self) -> Json:
        if self.header == "none":
            return self._structure({"id": "u32-erc-id", "timestamp": "u64-ts"}, 8)
        id_size, time_size = (5, 27) if self.header == "compact" else (16, 32)
        align = 1 if self.header == "compact" else 8
        last = (1 << id_size) - 1
        mappings = {"compact": [[0, last - 1]], "extended": [[last, last]]}
        short = self._structure({"timestamp": self._unsigned(time_size, "default-clock-timestamp", align=align)})
        long = self._structure({"id": "u32-erc-id", "timestamp": "u64-ts"})
        options = [
            {"name": name, "selector-field-ranges": mappings[name], "field-class": option}
            for name, option in (("compact", short), ("extended", long))
        ]
        variant = {"type": "variant", "selector-field-location": {"path": ["id"]}, "options": options}
        kind = self._unsigned(id_size, "event-record-class-id", align=align, mappings=mappings)
        return self._structure({"id": kind, "v": variant}, 8)

    def _trace(self) -> Json:
        return {
            "type": "trace-class",
            "namespace": "lttng.org,2009",
            "name": "built",
            "uid": str(self.uuid),
            "environment": self.environment,
            "packet-header-field-class": "pkt-header",
        }

    def _clock(self) -> Json:
        seconds, cycles = divmod(self.clock_offset, self.frequency)
        return {
            "type": "clock-class",
            "id": "monotonic",
            "name": "monotonic",
            "frequency": self.frequency,
            "origin": "unix-epoch",
            "offset-from-origin": {"seconds": seconds, "cycles": cycles},
        }

    def _stream(self) -> Json:
        stream = {
            "type": "data-stream-class",
            "id": 0,
            "default-clock-class-id": "monotonic",
            "packet-context-field-class": self._packet_context(),
            "event-record-header-field-class": "er-header",
        }
        if self.context is not None:
            stream["event-record-common-context-field-class"] = field_class(self.context, self.order)
        return stream

    def _event_class(self, event: Event) -> Json:
        return {
            "type": "event-record-class",
            "id": event.id,
            "data-stream-class-id": 0,
            "name": event.name,
            "payload-field-class": field_class(Struct(event.members), self.order),
        }
