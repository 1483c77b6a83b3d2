"""Truncated, unfinished and corrupt packets are read as far as possible, counted, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf.read import DecodedTrace, open_in_windows, read_trace
from tests.builders.ctf import Enum, Event, Int, Packet, Record, Text, TraceBuilder, Variant
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

TICK = Event("app:tick", 1, {"_value": Int(32)})
NEVER = (1 << 64) - 1
EVENT_BYTES = 10  # of a tick behind a large header
HEAD_BYTES = 76  # of a packet, up to its first event
CONTENT_SIZE, PACKET_SIZE = 40, 48


def packet(number: int, events: int = 3, **options) -> Packet:
    first = 100 * number + 1
    return Packet([Record(TICK, first + i, {"_value": first + i}) for i in range(events)], sequence=number, **options)


def write(directory: Path, *packets: Packet) -> Path:
    TraceBuilder([TICK]).write(directory, {"s_0": packets})
    return directory / "s_0"


def values(trace: DecodedTrace) -> list[int]:
    return trace.events["app:tick"]["value"].tolist()


def put(file: Path, at: int, content: bytes) -> None:
    data = bytearray(file.read_bytes())
    data[at : at + len(content)] = content
    file.write_bytes(bytes(data))


# --- cut and unfinished ----------------------------------------------------------------------


@pytest.mark.parametrize("kept", range(1, HEAD_BYTES + 3 * EVENT_BYTES))
def test_truncated_last_packet(tmp_path, kept):
    """It is read up to its last whole event; all bytes after that are counted."""
    file = write(tmp_path, packet(0), packet(1))
    size = file.stat().st_size // 2
    file.write_bytes(file.read_bytes()[: size + kept])
    trace = read_trace(tmp_path)
    whole = max(0, kept - HEAD_BYTES) // EVENT_BYTES
    assert values(trace) == [1, 2, 3, 101, 102, 103][: 3 + whole]
    behind = kept - HEAD_BYTES - whole * EVENT_BYTES if kept >= HEAD_BYTES else kept
    assert trace.stats.truncated_bytes == behind


@pytest.mark.parametrize("size", [0, NEVER])
@pytest.mark.parametrize("padding", [0, 4096])
def test_packet_without_written_size(tmp_path, size, padding):
    """The tracer was still writing the packet: events are read up to the unused space."""
    write(tmp_path, packet(0), packet(1, sizes=(size, size), padding=padding))
    trace = read_trace(tmp_path)
    assert values(trace) == [1, 2, 3, 101, 102, 103]
    assert trace.stats.truncated_bytes == 0


def test_an_unfinished_packet_ends_where_events_do(tmp_path):
    file = write(tmp_path, packet(0), packet(1, sizes=(0, 0)))
    file.write_bytes(file.read_bytes() + b"\xff\xff\x07\x07\x07\x07")
    trace = read_trace(tmp_path)
    assert values(trace) == [1, 2, 3, 101, 102, 103]
    assert trace.stats.truncated_bytes == 6


def test_an_unfinished_packet_before_others(tmp_path):
    write(tmp_path, packet(0, sizes=(0, 0), padding=64), packet(1))
    assert values(read_trace(tmp_path)) == [1, 2, 3, 101, 102, 103]


def test_unfinished_end_time_is_ignored(tmp_path):
    write(tmp_path, packet(0, end=0), packet(1, end=0))
    assert values(read_trace(tmp_path, window=(2, 102))) == [2, 3, 101, 102]


def test_events_after_their_packets_end_time_are_read(tmp_path):
    """LTTng up to 2.10 may close a packet with a time before its last event."""
    write(tmp_path, packet(0, end=1), packet(1, end=101))
    assert values(read_trace(tmp_path, window=(3, 3))) == [3]
    assert values(read_trace(tmp_path, window=(103, 200))) == [103]


@pytest.mark.parametrize("blank", [1, 40, 8192])
def test_unwritten_space_is_no_packet(tmp_path, blank):
    file = write(tmp_path, packet(0))
    file.write_bytes(file.read_bytes() + bytes(blank))
    trace = read_trace(tmp_path)
    assert values(trace) == [1, 2, 3]
    assert trace.stats.truncated_bytes == blank


def without_sizes(tmp_path: Path, *names: str) -> Path:
    """A trace whose packet context lacks these sizes."""
    builder = TraceBuilder([TICK], packetized=False)
    kept = {"content_size", "packet_size"} - set(names)
    text = builder.tsdl()
    for name in names:
        text = text.replace(f" uint64_t {name};", "")
    (tmp_path / "metadata").write_text(text)
    data = builder.packet(packet(0))
    head, sizes, rest = data[:CONTENT_SIZE], data[CONTENT_SIZE : PACKET_SIZE + 8], data[PACKET_SIZE + 8 :]
    size = int.from_bytes(sizes[:8], "little") - 64 * len(names)
    (tmp_path / "s_0").write_bytes(head + size.to_bytes(8, "little") * len(kept) + rest)
    return tmp_path


@pytest.mark.parametrize("names", [("content_size",), ("packet_size",), ("content_size", "packet_size")])
def test_undeclared_sizes(tmp_path, names):
    """By default, the content fills the packet, and a packet fills its file."""
    directory = without_sizes(tmp_path, *names)
    trace = read_trace(directory)
    assert values(trace) == [1, 2, 3]
    if not why_unavailable():
        opinion = read_with_babeltrace(directory)
        assert opinion is not None
        assert len(opinion.events) == len(trace)


# --- corrupt ---------------------------------------------------------------------------------


def size_of_one() -> int:
    return HEAD_BYTES + 3 * EVENT_BYTES


def damaged(tmp_path: Path, at: int, content: bytes) -> Path:
    """Three packets; bytes of the second one are overwritten."""
    file = write(tmp_path, packet(0), packet(1), packet(2))
    put(file, size_of_one() + at, content)
    return file


HEAD_DAMAGE = [
    pytest.param(0, b"\xde\xad\xbe\xef", "wrong magic number", id="magic"),
    pytest.param(6, bytes(4), "packet of another trace", id="uuid"),
    pytest.param(20, b"\x05", "stream 5, which is not declared", id="stream"),
    pytest.param(CONTENT_SIZE, (1 << 40).to_bytes(8, "little"), "content is larger than the packet", id="content"),
    pytest.param(CONTENT_SIZE, (8).to_bytes(8, "little"), "ends inside its header", id="tiny content"),
    pytest.param(PACKET_SIZE + 5, b"\x01", "goes beyond the end of the file", id="packet size"),
    pytest.param(PACKET_SIZE, b"\x51", "not a whole number of bytes", id="bits"),
]


@pytest.mark.parametrize(("at", "content", "reason"), HEAD_DAMAGE)
def test_corrupt_header_is_refused_or_skipped(tmp_path, at, content, reason):
    file = damaged(tmp_path, at, content)
    with pytest.raises(TraceUnreadable, match=reason) as caught:
        read_trace(tmp_path)
    assert (caught.value.path, caught.value.offset) == (file, size_of_one())
    assert "on_corrupt" in caught.value.remedy
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert values(trace) == [1, 2, 3, 201, 202, 203]
    (corruption,) = trace.stats.corruptions
    assert (corruption.path, corruption.offset, corruption.size) == (file, size_of_one(), size_of_one())
    assert reason in corruption.reason
    assert trace.stats.lost_packets == 1


def test_corrupt_event_ends_its_packet(tmp_path):
    """Events before the damage are kept; the rest of the packet is skipped."""
    file = damaged(tmp_path, HEAD_BYTES + EVENT_BYTES, b"\x4d\x00")
    with pytest.raises(TraceUnreadable, match="event id 77 is not declared") as caught:
        read_trace(tmp_path)
    at = size_of_one() + HEAD_BYTES + EVENT_BYTES
    assert (caught.value.path, caught.value.offset) == (file, at)
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert values(trace) == [1, 2, 3, 101, 201, 202, 203]
    (corruption,) = trace.stats.corruptions
    assert (corruption.offset, corruption.size) == (at, 2 * EVENT_BYTES)
    assert trace.stats.truncated_bytes == 0


def test_field_beyond_its_packets_end(tmp_path):
    event = Event("app:text", 1, {"_text": Text()})
    builder = TraceBuilder([event])
    packets = [Packet([Record(event, 10 * i, {"_text": "abc"})], sequence=i) for i in range(2)]
    builder.write(tmp_path, {"s_0": packets})
    file = tmp_path / "s_0"
    put(file, file.read_bytes().index(b"abc\0"), b"abcd")
    with pytest.raises(TraceUnreadable, match="beyond its packet's content"):
        read_trace(tmp_path)
    assert list(read_trace(tmp_path, on_corrupt="skip").events["app:text"].columns["text"]) == ["abc"]


def test_an_undeclared_tag_is_skipped_with_its_packet(tmp_path):
    labels = {"a": (0, 0), "b": (1, 1)}
    event = Event("app:either", 1, {"kind": Enum(labels), "_what": Variant("kind", {"a": Int(8), "b": Text()}, labels)})
    builder = TraceBuilder([event])
    packets = [Packet([Record(event, 10 * i, {"kind": 0, "_what": i})], sequence=i) for i in range(2)]
    builder.write(tmp_path, {"s_0": packets})
    put(tmp_path / "s_0", HEAD_BYTES + 6, b"\x09")
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert list(trace.events["app:either"].columns["what.a"]) == [1]
    assert "variant tag 9" in trace.stats.corruptions[0].reason


def test_unrelated_file_is_skipped(tmp_path):
    write(tmp_path, packet(0))
    (tmp_path / "notes.txt").write_text("not a stream")
    with pytest.raises(TraceUnreadable, match="not a packet"):
        read_trace(tmp_path)
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert values(trace) == [1, 2, 3]
    assert [(each.path.name, each.offset, each.size) for each in trace.stats.corruptions] == [("notes.txt", 0, 12)]


def test_all_damaged_places_are_reported(tmp_path):
    file = write(tmp_path, *(packet(number) for number in range(8)))
    for number in (1, 2, 5):
        put(file, number * size_of_one(), b"\0\0\0\1")
    trace = read_trace(tmp_path, on_corrupt="skip")
    assert values(trace)[::3] == [1, 301, 401, 601, 701]
    found = [(each.offset // size_of_one(), each.size // size_of_one()) for each in trace.stats.corruptions]
    assert found == [(1, 2), (5, 1)]


def test_damage_outside_the_window_is_not_read(tmp_path):
    damaged(tmp_path, HEAD_BYTES + EVENT_BYTES, b"\x4d\x00")
    assert values(read_trace(tmp_path, window=(202, 203))) == [202, 203]


def test_unknown_on_corrupt_is_refused(tmp_path):
    write(tmp_path, packet(0))
    with pytest.raises(ConfigurationError, match="refuse, skip"):
        read_trace(tmp_path, on_corrupt="ignore")
    with pytest.raises(ConfigurationError, match="refuse, skip"), open_in_windows(tmp_path, on_corrupt="ignore"):
        pass
