"""A Perfetto trace as Perfetto's own message definitions read it, and as its trace processor does."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROCESSOR = "trace_processor_shell"


@dataclass(frozen=True)
class Slice:
    """`end_ns` equals `begin_ns` for an instant."""

    track: int
    begin_ns: int
    end_ns: int
    name: str
    category: str
    depth: int
    arguments: tuple[tuple[str, str], ...] = ()
    flows: tuple[int, ...] = ()


@dataclass
class Read:
    """Content of a trace."""

    packets: list[Any]
    tracks: dict[int, Any] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counters: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def track_named(self, name: str) -> list[int]:
        return [uuid for uuid, track in self.tracks.items() if track.name == name]

    def of(self, category: str) -> list[Slice]:
        return [each for each in (*self.slices, *self.instants) if each.category == category]


def parse(data: bytes) -> Read:
    """Reads packet after packet as Perfetto does: interned texts, a stack of slices a track."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

    trace = pb.Trace()
    trace.ParseFromString(data)
    found = Read(list(trace.packet))
    texts: dict[str, dict[int, str]] = {}
    stacks: dict[int, list[tuple[int, Any]]] = defaultdict(list)
    for packet in found.packets:
        if packet.HasField("interned_data"):
            texts = _texts(packet.interned_data)
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in found.tracks
            assert not descriptor.parent_uuid or descriptor.parent_uuid in found.tracks
            found.tracks[descriptor.uuid] = descriptor
        if packet.HasField("track_event"):
            _follow(packet, found, texts, stacks[packet.track_event.track_uuid])
    assert not any(stacks.values()), "a slice has no end"
    return found


def _texts(interned: Any) -> dict[str, dict[int, str]]:
    return {
        "category": {each.iid: each.name for each in interned.event_categories},
        "name": {each.iid: each.name for each in interned.event_names},
        "argument": {each.iid: each.name for each in interned.debug_annotation_names},
        "value": {each.iid: each.str.decode() for each in interned.debug_annotation_string_values},
    }


def _follow(packet: Any, found: Read, texts: dict[str, dict[int, str]], stack: list[tuple[int, Any]]) -> None:
    event = packet.track_event
    assert event.track_uuid in found.tracks
    kinds = type(event)
    if event.type == kinds.TYPE_SLICE_BEGIN:
        stack.append((packet.timestamp, event))
    elif event.type == kinds.TYPE_SLICE_END:
        begin, opened = stack.pop()
        found.slices.append(_slice(opened, begin, packet.timestamp, texts, len(stack)))
    elif event.type == kinds.TYPE_INSTANT:
        found.instants.append(_slice(event, packet.timestamp, packet.timestamp, texts, len(stack)))
    else:
        assert event.type == kinds.TYPE_COUNTER
        found.counters[event.track_uuid].append((packet.timestamp, event.counter_value))


def _slice(event: Any, begin: int, end: int, texts: dict[str, dict[int, str]], depth: int) -> Slice:
    return Slice(
        event.track_uuid,
        begin,
        end,
        texts["name"][event.name_iid],
        texts["category"][event.category_iids[0]],
        depth,
        tuple((texts["argument"][a.name_iid], texts["value"][a.string_value_iid]) for a in event.debug_annotations),
        tuple(event.flow_ids),
    )


def why_no_processor() -> str:
    """The reason why Perfetto's trace processor is unavailable, or ``""``."""
    return "" if shutil.which(PROCESSOR) else f"{PROCESSOR} of Perfetto is not on the path"


def ask_processor(file: Path, query: str) -> list[dict[str, str]]:
    """Rows of an SQL query."""
    script = file.with_suffix(".sql")
    script.write_text(query)
    done = subprocess.run(
        [PROCESSOR, "--query-file", str(script), str(file)], capture_output=True, text=True, check=True, timeout=300
    )
    return list(csv.DictReader(done.stdout.splitlines()))
