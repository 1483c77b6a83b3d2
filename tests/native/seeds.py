"""Inputs the fuzz target starts from: built traces of every shape, and the heads of recorded ones."""

from __future__ import annotations

import struct
import tarfile
import tempfile
from pathlib import Path

from tests.builders.ctf import (
    Array,
    Enum,
    Event,
    Field,
    Float,
    Int,
    Packet,
    Record,
    Seq,
    Struct,
    Text,
    TraceBuilder,
    Variant,
)
from tests.builders.ctf2 import Bool, Bytes, Ctf2Builder, Optional, VarInt
from tests.builders.shapes import SHAPES
from tests.builders.tracers import ModulesBuilder, OldUstBuilder, UstBuilder

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = ("talker_listener", "truncated_cut")
STREAM_BYTES = 8192
SKIP, SPLIT = 1, 4
"""Options of the fuzz target: corrupt packets are skipped; the work is also split between threads."""


def pack(metadata: bytes, *streams: bytes, options: int = 0) -> bytes:
    """A trace as one input (see ``fuzz_decoder.cpp``)."""
    parts = b"".join(struct.pack("<I", len(part)) + part for part in (metadata, *streams))
    return bytes([options]) + parts


def pack_directory(directory: Path, *, options: int = 0, limit: int | None = None) -> bytes:
    streams = [path.read_bytes()[:limit] for path in sorted(directory.iterdir()) if path.is_file()]
    names = [path.name for path in sorted(directory.iterdir()) if path.is_file()]
    contents = dict(zip(names, streams, strict=True))
    metadata = (directory / "metadata").read_bytes()
    return pack(metadata, *(content for name, content in contents.items() if name != "metadata"), options=options)


def rich_event() -> tuple[Event, dict]:
    labels = {"number": (0, 3), "text": (4, 4), "none": (5, 9)}
    options = {"number": Int(32), "text": Text(), "none": Struct({})}
    members = {
        "_bits": Int(5, align=1),
        "_signed": Int(11, signed=True, align=1),
        "_name": Array(Int(8, text=True), 6),
        "_text": Text(),
        "__n": Int(8),
        "_list": Seq(Int(16), "__n"),
        "_ratio": Float(64),
        "_half": Float(32),
        "kind": Enum(labels),
        "_what": Variant("kind", options, labels),
        "_in": Struct({"_x": Int(16, align=16), "_y": Float(64)}),
    }
    values = {
        "_bits": 3,
        "_signed": -4,
        "_name": list(b"talker"),
        "_text": "hello",
        "__n": 2,
        "_list": [1, 2],
        "_ratio": 0.5,
        "_half": 0.25,
        "kind": 4,
        "_what": "seven",
        "_in": {"_x": 7, "_y": 1.5},
    }
    return Event("app:rich", 1, members), values


def built() -> dict[str, bytes]:
    """Traces by the builder: each header, both byte orders, plain and packetised metadata."""
    seeds = {}
    rich, values = rich_event()
    tick = Event("app:tick", 2, {"_value": Int(32)})
    for header in ("compact", "large", "none"):
        for big_endian in (False, True):
            builder = TraceBuilder(
                [rich, tick], header=header, big_endian=big_endian, packetized=big_endian, context={"_vpid": Int(32)}
            )
            packets = []
            for sequence in range(3):
                records = [Record(tick, 100 * sequence + 1, {"_value": sequence}, {"_vpid": 7})]
                records.append(Record(rich, 100 * sequence + 2, values, {"_vpid": 7}))
                packets.append(Packet(records, sequence=sequence, padding=8))
            with tempfile.TemporaryDirectory() as folder:
                directory = builder.write(Path(folder), {"s_0": packets, "s_1": packets[:1]})
                name = f"{header}-{'be' if big_endian else 'le'}"
                seeds[name] = pack_directory(directory)
                seeds[f"{name}-skip"] = pack_directory(directory, options=SKIP | SPLIT)
    return seeds


def built_in_json() -> dict[str, bytes]:
    """The same with metadata of CTF 2, and fields that only it has."""
    fields: dict[str, Field] = {
        "size": VarInt(),
        "blob": Bytes("blob", "size"),
        "config": Struct({"has": Bool()}),
        "debug": Optional(Text(), ("config", "has")),
        "number": VarInt(signed=True),
    }
    only = Event("app:only", 3, fields)
    rich, values = rich_event()
    seeds = {}
    for header in ("compact", "large", "none"):
        for big_endian in (False, True):
            builder = Ctf2Builder([rich, only], header=header, big_endian=big_endian, packetized=big_endian)
            some = {"size": 2, "blob": b"ab", "config": {"has": True}, "debug": "yes", "number": -300}
            records = [Record(rich, 1, values), Record(only, 2, some)]
            with tempfile.TemporaryDirectory() as folder:
                directory = builder.write(Path(folder), {"s_0": [Packet(records)]})
                seeds[f"json-{header}-{'be' if big_endian else 'le'}"] = pack_directory(directory)
    return seeds


def built_by_tracers() -> dict[str, bytes]:
    """Metadata as each tracer writes it, and what other writers leave out."""
    seeds = {f"shape-{name}": pack(shape.metadata.encode(), *shape.streams.values()) for name, shape in SHAPES.items()}
    text = Event("app:text", 1, {"_text": Text(), "_state": Enum({'"a"\n': (0, 0)})})
    for tracer in (ModulesBuilder, OldUstBuilder, UstBuilder):
        builder = tracer([text], header="compact", instances=tracer.numbered)
        packet = builder.packet(Packet([Record(text, 3, {"_text": "t", "_state": 0})]))
        seeds[tracer.__name__] = pack(builder.metadata(), packet)
    return {name.replace(" ", "-").replace("'", ""): seed for name, seed in seeds.items()}


def recorded() -> dict[str, bytes]:
    """The first packets of recorded traces, cut."""
    seeds = {}
    for name in RECORDED:
        with tempfile.TemporaryDirectory() as folder, tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            archive.extractall(folder)
            metadata = next(Path(folder).rglob("metadata"))
            streams = [path for path in sorted(metadata.parent.iterdir()) if path.is_file() and path != metadata]
            seeds[name] = pack(metadata.read_bytes(), *(path.read_bytes()[:STREAM_BYTES] for path in streams))
    return seeds


def write_seeds(directory: Path) -> int:
    """Writes all seeds; returns how many."""
    directory.mkdir(parents=True, exist_ok=True)
    seeds = {**built(), **built_in_json(), **built_by_tracers(), **recorded()}
    for name, content in seeds.items():
        (directory / name).write_bytes(content)
    return len(seeds)
