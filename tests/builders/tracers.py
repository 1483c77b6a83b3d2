"""Writes traces whose metadata looks as the tracers of LTTng write it, each in its own way.

Written from what these programs print: lttng-modules (`lttng-events.c`, 2.0 to 2.13), lttng-ust 2.0 and 2.1
(`ltt-events.c`), lttng-tools since 2.2 for user space (`lttng-sessiond/ust-metadata.c`). Only lttng-tools 2.7
and later begin with a comment that says the version; everybody puts the text into packets that say it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import singledispatch

from tests.builders.ctf import (
    METADATA_MAGIC,
    Array,
    Enum,
    Event,
    Field,
    Float,
    Int,
    Seq,
    Text,
    TraceBuilder,
    Variant,
)

PAGE = 4096
HEAD = 37
"""Bytes of a metadata packet's header."""


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def integer(field: Int) -> str:
    encoding = "UTF8" if field.text else "none"
    return (
        f"integer {{ size = {field.size}; align = {field.align}; signed = {int(field.signed)};"
        f" encoding = {encoding}; base = 10; }}"
    )


@singledispatch
def declared(field: Field, name: str) -> str:
    raise NotImplementedError(type(field))


@declared.register
def _(field: Int, name: str) -> str:
    return f"{integer(field)} {name};"


@declared.register
def _(field: Float, name: str) -> str:
    exponent, mantissa = (11, 53) if field.size == 64 else (8, 24)
    return f"floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {field.align}; }} {name};"


@declared.register
def _(field: Text, name: str) -> str:
    return f"string {name};"


@declared.register
def _(field: Array, name: str) -> str:
    assert isinstance(field.element, Int)
    return f"{integer(field.element)} {name}[{field.length}];"


@declared.register
def _(field: Seq, name: str) -> str:
    assert isinstance(field.element, Int)
    return f"{integer(field.element)} {name}[ {field.length_field} ];"


@declared.register
def _(field: Enum, name: str) -> str:
    """Labels between quotes, in which a new line stays as it is, and a comma behind the last one."""
    labels = (
        '\t\t\t"{}" = {}{},\n'.format(
            label.replace("\\", "\\\\").replace('"', '\\"'), first, f" ... {last}" if last != first else ""
        )
        for label, (first, last) in field.labels.items()
    )
    return f"enum : {integer(field.container)} {{\n{''.join(labels)}\t\t}} {name};"


@declared.register
def _(field: Variant, name: str) -> str:
    options = "".join(f"\t\t\t{declared(option, label)}\n" for label, option in field.options.items())
    return f"variant <{field.tag}> {{\n{options}\t\t}} {name};"


class TracerBuilder(TraceBuilder):
    """Common metadata of the tracers: packets of at most a page, types by name, one blank line after a block."""

    comment = ""
    clock_name = '"monotonic"'
    has_loglevel = True

    def tsdl(self) -> str:
        return "".join(
            [
                self.comment,
                self._types(),
                self._trace_block(),
                f"env {{\n{''.join(f'	{line};{chr(10)}' for line in self._environment())}}};\n\n",
                self._clock_block(),
                self._clock_types(),
                self._packet_context_block(),
                self._headers(),
                self._stream_block(),
                *map(self._event_block, self.events),
            ]
        )

    def metadata(self) -> bytes:
        text, size = self.tsdl().encode(), PAGE - HEAD
        return b"".join(self._metadata_packet(text[at : at + size]) for at in range(0, len(text), size))

    def _metadata_packet(self, text: bytes) -> bytes:
        sizes = ((HEAD + len(text)) * 8, PAGE * 8)
        order = ">" if self.big_endian else "<"
        head = struct.pack(f"{order}I16sIIIBBBBB", METADATA_MAGIC, self.uuid.bytes, 0, *sizes, 0, 0, 0, 1, 8)
        return (head + text).ljust(PAGE, b"\0")

    @staticmethod
    def _types() -> str:
        sizes = [(8, 8, "uint8_t"), (16, 8, "uint16_t"), (32, 8, "uint32_t"), (64, 8, "uint64_t")]
        sizes += [(64, 8, "unsigned long"), (5, 1, "uint5_t"), (27, 1, "uint27_t")]
        lines = (
            f"typealias integer {{ size = {size}; align = {align}; signed = false; }} := {name};\n"
            for size, align, name in sizes
        )
        return "".join(lines) + "\n"

    def _trace_block(self) -> str:
        instance = "\t\tuint64_t stream_instance_id;\n" if self.instances else ""
        return (
            f'trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = "{self.uuid}";\n'
            f"\tbyte_order = {'be' if self.big_endian else 'le'};\n"
            f"\tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\t\tuint32_t stream_id;\n{instance}"
            "\t};\n};\n\n"
        )

    def _environment(self) -> Iterator[str]:
        for name, value in self.environment.items():
            yield f'{name} = "{escaped(value)}"' if isinstance(value, str) else f"{name} = {value}"

    def _clock_block(self) -> str:
        return (
            f"clock {{\n\tname = {self.clock_name};\n"
            '\tuuid = "57ae0a3d-7a67-4a5f-8d8b-4d9d5e0a1c11";\n\tdescription = "Monotonic Clock";\n'
            f"\tfreq = {self.frequency}; /* Frequency, in Hz */\n"
            "\t/* clock value offset from Epoch is: offset * (1/freq) */\n"
            f"\toffset = {self.clock_offset};\n}};\n\n"
        )

    @staticmethod
    def _clock_types() -> str:
        return "".join(
            f"typealias integer {{\n\tsize = {size}; align = {align}; signed = false;\n"
            f"\tmap = clock.monotonic.value;\n}} := uint{size}_clock_monotonic_t;\n\n"
            for size, align in ((27, 1), (32, 8), (64, 8))
        )

    def _packet_context_block(self) -> str:
        number = "\tuint64_t packet_seq_num;\n" if self.numbered else ""
        return (
            "struct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n"
            "\tuint64_clock_monotonic_t timestamp_end;\n\tuint64_t content_size;\n\tuint64_t packet_size;\n"
            f"{number}\tunsigned long events_discarded;\n\tuint32_t cpu_id;\n}};\n\n"
        )

    @staticmethod
    def _headers() -> str:
        return "".join(
            f"struct event_header_{name} {{\n"
            f"\tenum : uint{bits}_t {{ compact = 0 ... {(1 << bits) - 2}, extended = {(1 << bits) - 1} }} id;\n"
            f"\tvariant <id> {{\n\t\tstruct {{\n\t\t\tuint{time}_clock_monotonic_t timestamp;\n\t\t}} compact;\n"
            "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n"
            "\t} v;\n} align(8);\n\n"
            for name, bits, time in (("compact", 5, 27), ("large", 16, 32))
        )

    def _stream_block(self) -> str:
        context = self._members("event.context", self.context.members) if self.context else ""
        return (
            f"stream {{\n\tid = 0;\n\tevent.header := struct event_header_{self.header};\n"
            f"\tpacket.context := struct packet_context;\n{context}}};\n\n"
        )

    def _event_block(self, event: Event) -> str:
        level = "\tloglevel = 13;\n" if self.has_loglevel else ""
        fields = self._members("fields", event.members)
        return f'event {{\n\tname = "{event.name}";\n\tid = {event.id};\n\tstream_id = 0;\n{level}{fields}}};\n\n'

    @staticmethod
    def _members(scope: str, members: Mapping[str, Field]) -> str:
        lines = "".join(f"\t\t{declared(field, name)}\n" for name, field in members.items())
        return f"\t{scope} := struct {{\n{lines}\t}};\n"


class ModulesBuilder(TracerBuilder):
    """lttng-modules."""

    has_loglevel = False


class OldUstBuilder(TracerBuilder):
    """User space with lttng-ust 2.0 to 2.6: packets say neither their instance nor their number."""

    numbered = False
    clock_name = "monotonic"


class UstBuilder(TracerBuilder):
    """User space with lttng-tools 2.7 and later, whose text can stand without packets after a crash."""

    comment = "/* CTF 1.8 */\n\n"
