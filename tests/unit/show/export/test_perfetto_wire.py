"""Protocol Buffers' wire format, read by Google's implementation."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from pytest_ldos.show.export import perfetto_wire as wire
from pytest_ldos.show.export.perfetto_wire import TRACE_PACKET, Packet, Track, TrackEvent

u64 = st.integers(0, 2**64 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
flow_numbers = st.lists(st.integers(1, 2**64 - 1), max_size=3)
rows = st.lists(st.tuples(u64, st.none() | i64, flow_numbers), max_size=20)


def read(data: bytes) -> list:
    trace = pb.Trace()
    trace.ParseFromString(data)
    return list(trace.packet)


@given(rows)
def test_many_messages_at_once(wanted):
    counts = np.array([value or 0 for _, value, _ in wanted], dtype=np.int64)
    has_count = np.array([value is not None for _, value, _ in wanted], dtype=np.bool_)
    flows = np.array([[*each, *[0] * (3 - len(each))] for _, _, each in wanted], dtype=np.uint64).reshape(-1, 3)
    event = (
        wire.varint_field(TrackEvent.COUNTER_VALUE, counts, present=has_count),
        wire.fixed64_fields(TrackEvent.FLOW_IDS, flows),
    )
    packet = (
        wire.varint_field(Packet.TIMESTAMP, np.array([time for time, _, _ in wanted], dtype=np.uint64)),
        wire.message_field(Packet.TRACK_EVENT, *event),
    )
    found = [
        (
            packet.timestamp,
            packet.track_event.counter_value if packet.track_event.HasField("counter_value") else None,
            list(packet.track_event.flow_ids),
        )
        for packet in read(wire.encoded(wire.message_field(TRACE_PACKET, *packet)))
    ]
    assert found == wanted


def test_absent_message_is_empty():
    inner = wire.varint_field(TrackEvent.TYPE, np.array([1, 2, 3]))
    event = wire.message_field(Packet.TRACK_EVENT, inner, present=np.array([True, False, True]))
    packets = read(wire.encoded(wire.message_field(TRACE_PACKET, event)))
    assert [packet.track_event.type if packet.HasField("track_event") else None for packet in packets] == [1, None, 3]


@given(u64, st.text(st.characters(exclude_categories=["Cs"])))
def test_single_messages(uuid, name):
    track = wire.message(Packet.TRACK_DESCRIPTOR, wire.number(Track.UUID, uuid), wire.text(Track.NAME, name))
    (packet,) = read(wire.message(TRACE_PACKET, track))
    assert (packet.track_descriptor.uuid, packet.track_descriptor.name) == (uuid, name)


def test_text_invalid_in_utf8_stays_readable():
    (packet,) = read(
        wire.message(TRACE_PACKET, wire.message(Packet.TRACK_DESCRIPTOR, wire.text(Track.NAME, "a\ud800b")))
    )
    assert packet.track_descriptor.name == "a?b"
