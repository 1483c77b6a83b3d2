"""Writes an execution model as a Perfetto trace, for its UI and its trace processor.

All packets belong to one sequence, in time order, in nanoseconds since the epoch. Perfetto
uses the time since boot and needs the relation of other clocks to it. Traces of ROS 2 do
not contain the boot time, so the first packet equates boot time with the realtime clock.

Processes and threads appear as such, with callback runs as slices, publications and
receptions as instants, and an arrow for each message. Below a thread are the states of its executor and, if the kernel
was recorded, of the thread. Trials with their phases, and counters, have tracks outside the processes.

Reference: perfetto, ``TracePacket``, ``TrackEvent``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

import numpy as np
import polars as pl

from pytest_ldos.show.export.perfetto import wire
from pytest_ldos.show.export.perfetto.content import Arrows, Content, Flows, draw_arrows
from pytest_ldos.show.export.perfetto.wire import (
    BOOTTIME,
    NEEDS_STATE,
    REALTIME,
    STATE_CLEARED,
    TRACE_PACKET,
    Annotation,
    Clocks,
    Events,
    EventType,
    Packet,
    TrackEvent,
    in_order,
    join,
)
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph

Progress = Callable[[int, int], None]
"""Called with the number of events written, and their total."""

_SEQUENCE: Final = 1
_BYTES_AT_ONCE: Final = 1 << 21
_BYTES_OF_EVENT: Final = 96
_BYTES_OF_FLOW: Final = 10


def write_perfetto(
    model: ExecutionModel,
    file: BinaryIO,
    *,
    flow: FlowGraph | None = None,
    thread_states: pl.DataFrame | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes a model as a Perfetto trace.

    Args:
        flow: of the model; without it, no arrows are drawn.
        thread_states: result of `build_thread_states`, for the threads of the model.
    """
    content = Content(model)
    events = in_order(join(_drawn(content, thread_states)))
    arrows = draw_arrows(flow, content.keys)
    file.writelines(_preamble(content, first_ns=int(events.time_ns[0]) if len(events) else 0))
    done = 0
    while done < len(events):
        some, flows = _next_events(events, done, arrows)
        file.write(_packets(some, flows))
        done += len(some)
        if progress is not None:
            progress(done, len(events))


def _drawn(content: Content, thread_states: pl.DataFrame | None) -> list[Events]:
    parts = [content.callback_runs(), content.publications(), content.takes(), content.executor_states()]
    if thread_states is not None:
        parts.append(content.thread_states(thread_states))
    return [*parts, *content.trials(), *content.counters()]


def _preamble(content: Content, *, first_ns: int) -> list[bytes]:
    """The clocks, the texts, and the tracks."""
    at = wire.number(Clocks.TIMESTAMP, first_ns)
    clocks = [wire.message(Clocks.CLOCKS, wire.number(Clocks.CLOCK_ID, clock), at) for clock in (BOOTTIME, REALTIME)]
    texts = wire.message(Packet.INTERNED_DATA, content.words.encoded())
    tracks = [_packet(wire.message(Packet.TRACK_DESCRIPTOR, each)) for each in content.tracks.descriptors()]
    return [
        _packet(wire.message(Packet.CLOCK_SNAPSHOT, *clocks)),
        _packet(wire.number(Packet.SEQUENCE_FLAGS, STATE_CLEARED), texts),
        *tracks,
    ]


def _packet(*fields: bytes) -> bytes:
    return wire.message(TRACE_PACKET, wire.number(Packet.SEQUENCE_ID, _SEQUENCE), *fields)


def _next_events(events: Events, first: int, arrows: Arrows) -> tuple[Events, Flows]:
    """As many events as fit into the memory limit, and their flows; events with many flows take more."""
    count = max(_BYTES_AT_ONCE // _BYTES_OF_EVENT, 1)
    while True:
        flows = arrows.of_events(events.key[first : first + count])
        rows, most = flows.number.shape
        if rows <= 1 or rows * (_BYTES_OF_EVENT + _BYTES_OF_FLOW * most) <= 2 * _BYTES_AT_ONCE:
            return events.take(slice(first, first + count)), flows
        count = rows // 2


def _packets(events: Events, flows: Flows) -> bytes:
    same = np.ones(len(events), dtype=np.int64)
    fields = [
        wire.varint_field(Packet.TIMESTAMP, events.time_ns),
        wire.varint_field(Packet.SEQUENCE_ID, same * _SEQUENCE),
        wire.message_field(Packet.TRACK_EVENT, _track_events(events, flows)),
        wire.varint_field(Packet.SEQUENCE_FLAGS, same * NEEDS_STATE),
    ]
    return wire.message_field(TRACE_PACKET, wire.join_fields(fields)).encoded()


def _track_events(events: Events, flows: Flows) -> wire.Fields:
    counted, has_text = events.kind == EventType.COUNTER, events.text > 0
    annotation = wire.join_fields(
        [
            wire.varint_field(Annotation.NAME_IID, events.argument),
            wire.varint_field(Annotation.STRING_VALUE_IID, events.text),
        ]
    )
    return wire.join_fields(
        [
            wire.varint_field(TrackEvent.TYPE, events.kind),
            wire.varint_field(TrackEvent.TRACK_UUID, events.track),
            wire.varint_field(TrackEvent.CATEGORY_IIDS, events.category, present=events.category > 0),
            wire.varint_field(TrackEvent.NAME_IID, events.name, present=events.name > 0),
            wire.varint_field(TrackEvent.COUNTER_VALUE, events.value, present=counted),
            wire.message_field(TrackEvent.DEBUG_ANNOTATIONS, annotation, present=has_text),
            wire.fixed64_fields(TrackEvent.FLOW_IDS, flows.number, flows.present),
        ]
    )
