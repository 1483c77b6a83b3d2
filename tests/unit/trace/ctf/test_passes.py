"""Results do not depend on chunks, threads, windows or memory."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import EventTable, read_trace
from pytest_ldos.trace.ctf.stats import describe_damage
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.long_trace import BEGIN_AT, PERIOD_NS, START, write_long_trace

TICK = Event("app:tick", 1, {"_value": Int(32)})
TOCK = Event("app:tick", 2, {"_value": Int(32), "_more": Int(8)})

PACKETS = 500
HEADER_BYTES, CONTEXT_BYTES = 6, 21


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory):
    """Some 17 MB: several chunks for two threads."""
    return write_long_trace(tmp_path_factory.mktemp("long"), packets=PACKETS)


def assert_equal_tables(one: EventTable, other: EventTable) -> None:
    for name in ("timestamp_ns", "cpu_id", "trace"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert list(one.columns) == list(other.columns)
    for name, column in one.columns.items():
        also = other.columns[name]
        assert column.dictionary == also.dictionary, name
        for attribute in ("values", "offsets", "valid"):
            a, b = getattr(column, attribute), getattr(also, attribute)
            assert (a is None) == (b is None), (name, attribute)
            assert a is None or np.array_equal(a, b), (name, attribute)


def rows_of(table: EventTable, mask: np.ndarray) -> list[tuple]:
    columns = [list(column) for column in table.columns.values()]
    return [(int(table.timestamp_ns[i]), *(column[i] for column in columns)) for i in np.flatnonzero(mask)]


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_result_is_independent_of_threads(long_trace, threads):
    one, many = read_trace(long_trace, threads=1), read_trace(long_trace, threads=threads)
    assert len(one) == 2 * 400 * PACKETS
    assert one.stats == many.stats
    for name, table in one.events.items():
        assert_equal_tables(table, many.events[name])


def test_long_trace_is_read_back(long_trace):
    table = read_trace(long_trace, threads=2).events[START.name]
    number, within = np.divmod(table.timestamp_ns, PERIOD_NS)
    i = table["handle"].astype(np.int64) & ~(1 << 40)
    assert np.array_equal(within, 1000 * (i + 1) + 250 * table.cpu_id * (i % 3))
    assert np.array_equal(table["flag"], table.cpu_id - i)
    assert np.array_equal(np.bincount(number.astype(int)), np.full(PACKETS, 2 * 360))
    assert table.columns["procname"].texts()[:8].tolist() == [f"thread_{n}" for n in (0, 1, 0, 1, 0, 1, 0, 1)]
    assert np.all(np.diff(table.timestamp_ns) >= 0)


def test_window_equals_a_filter(long_trace):
    whole = read_trace(long_trace, threads=1)
    first, last = 100 * PERIOD_NS + 57_000, 103 * PERIOD_NS + 199_250
    parts = [read_trace(long_trace, window=(first, last), threads=threads) for threads in (1, 3)]
    for name, table in whole.events.items():
        inside = (first <= table.timestamp_ns) & (table.timestamp_ns <= last)
        assert inside.any()
        expected = rows_of(table, inside)
        for part in parts:
            assert rows_of(part.events[name], np.full(inside.sum(), True)) == expected


def test_packets_outside_the_window_are_not_read(long_trace):
    """One packet per stream and its predecessor, which may hold events up to the start of the next one."""
    part = read_trace(long_trace, window=(100 * PERIOD_NS + 1001, 101 * PERIOD_NS - 1))
    assert part.stats.events == 2 * 400


def test_window_without_events_has_empty_tables(long_trace):
    part = read_trace(long_trace, window=(0, 1))
    assert [len(table) for table in part.events.values()] == [0, 0]
    assert list(part.events[START.name].columns) == ["vtid", "procname", "handle", "flag"]


@pytest.mark.parametrize("threads", [1, 2])
def test_simultaneous_events_are_ordered_by_stream_and_offset(tmp_path, threads):
    builder = TraceBuilder([TICK, TOCK])
    records = {
        stream: [
            Record(TOCK, 50, {"_value": stream * 10, "_more": 1}),
            Record(TICK, 50, {"_value": stream * 10 + 1}),
            Record(TOCK, 50, {"_value": stream * 10 + 2, "_more": 1}),
        ]
        for stream in range(3)
    }
    builder.write(tmp_path, {f"s_{stream}": [Packet(each)] for stream, each in records.items()})
    table = read_trace(tmp_path, threads=threads).events["app:tick"]
    assert table["value"].tolist() == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert list(table.columns["more"]) == [1, None, 1] * 3


@pytest.mark.parametrize("threads", [1, 3])
def test_backward_time_is_sorted_and_counted_when_skipping(tmp_path, threads):
    """The clock was set back: packets, and events within one, are not in time order."""
    builder = TraceBuilder([TICK], header="none")
    times = [[500, 300, 300, 900], [100, 200], [800, 50]]
    numbers = iter(range(100))
    packets = [
        Packet([Record(TICK, time, {"_value": next(numbers)}) for time in each], begin=min(each), end=max(each))
        for each in times
    ]
    other = Packet([Record(TICK, time, {"_value": next(numbers)}) for time in (60, 300, 850)])
    directory = builder.write(tmp_path, {"s_0": packets, "s_1": [other]})
    with pytest.raises(TraceUnreadable, match="time goes back") as caught:
        read_trace(directory, threads=threads)
    assert caught.value.path == tmp_path / "s_0"
    assert "on_corrupt" in caught.value.remedy
    trace = read_trace(directory, threads=threads, on_corrupt="skip")
    table = trace.events["app:tick"]
    assert table.timestamp_ns.tolist() == [50, 60, 100, 200, 300, 300, 300, 500, 800, 850, 900]
    assert table["value"].tolist() == [7, 8, 4, 5, 1, 2, 9, 0, 6, 10, 3]
    assert [stream.backward_steps for stream in trace.stats.streams] == [4, 0]
    assert describe_damage(trace.stats) == "4 backward steps"


@pytest.mark.parametrize("threads", [1, 2])
def test_swapped_packets_are_sorted_by_number(long_trace, tmp_path, threads):
    """Times and numbers agree: only the order in the file differs, and no clock went back."""
    for file in long_trace.iterdir():
        data = file.read_bytes()
        if file.name == "s_1":
            size = len(data) // PACKETS
            data = data[size * 7 : size * 9] + data[: size * 7] + data[size * 9 :]
        (tmp_path / file.name).write_bytes(data)
    found = read_trace(tmp_path, threads=threads)
    for name, table in read_trace(long_trace).events.items():
        assert_equal_tables(found.events[name], table)


def test_wrong_packet_times_lose_no_event(long_trace, tmp_path):
    """Chunks are cut by packet times; wrong times make chunks uneven, not incorrect."""
    lying = tmp_path / "lying"
    lying.mkdir()
    for file in long_trace.iterdir():
        data = bytearray(file.read_bytes())
        if file.name == "s_0":
            struct.pack_into("<Q", data, BEGIN_AT + 8, 2**63 - 1)
        (lying / file.name).write_bytes(data)
    found = read_trace(lying, threads=2)
    for name, table in read_trace(long_trace, threads=1).events.items():
        assert_equal_tables(found.events[name], table)


def test_skipped_damage_is_independent_of_threads(long_trace, tmp_path):
    """One packet ends at an unknown event, another has no head."""
    for file in long_trace.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    size = (tmp_path / "s_0").stat().st_size // PACKETS
    event = (tmp_path / "s_0").read_bytes().index(b"line ", 200 * size) - HEADER_BYTES - CONTEXT_BYTES
    overwrite(tmp_path / "s_0", event, b"\x4d\x00")
    overwrite(tmp_path / "s_1", 300 * size, b"\0\0\0\0")
    one, many = (read_trace(tmp_path, on_corrupt="skip", threads=threads) for threads in (1, 3))
    assert one.stats == many.stats
    assert [(each.path.name, each.offset) for each in one.stats.corruptions] == [("s_0", event), ("s_1", 300 * size)]
    assert one.stats.events == len(one) == 2 * 400 * PACKETS - 400 - 391
    for name, table in one.events.items():
        assert_equal_tables(table, many.events[name])


def overwrite(file: Path, at: int, content: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(at)
        stream.write(content)


def test_empty_event_belongs_to_the_packet_it_ends(tmp_path):
    """Its contexts begin at the start of the next packet."""
    nothing = Event("app:nothing", 1)
    packets = [Packet([Record(nothing, i)], cpu=i, sequence=i) for i in range(3)]
    table = read_trace(TraceBuilder([nothing]).write(tmp_path, {"s_0": packets})).events["app:nothing"]
    assert table.cpu_id.tolist() == [0, 1, 2]


@pytest.mark.parametrize("same", [True, False])
def test_constant_cpu_is_stored_once(tmp_path, same):
    builder = TraceBuilder([TICK])
    packets = [Packet([Record(TICK, i, {"_value": i})], cpu=3 if same else i, sequence=i) for i in range(3)]
    table = read_trace(builder.write(tmp_path, {"s_0": packets})).events["app:tick"]
    assert table.cpu_id.tolist() == ([3, 3, 3] if same else [0, 1, 2])
    assert (table.cpu_id.strides == (0,)) == same
    assert table.frame()["cpu_id"].to_list() == table.cpu_id.tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_anonymous_memory_is_limited_to_the_columns(tmp_path, threads):
    trace = write_long_trace(tmp_path, packets=1500)
    command = [sys.executable, "-m", "benchmarks.memory", str(trace), str(threads)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["columns"] > 30_000_000
    assert found["peak"] <= 1.3 * found["columns"]
