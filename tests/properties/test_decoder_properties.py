"""Any trace that the builder can write, the decoder reads back; any bytes end in a trace or a clear refusal."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import COUNT, Column, EventTable, open_in_windows, read_trace
from tests.builders.ctf import Array, Event, Field, Int, Packet, Record, Seq, Struct, Text, TraceBuilder

SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@st.composite
def integers(draw) -> tuple[Field, st.SearchStrategy[Any]]:
    size = draw(st.integers(1, 64))
    signed = draw(st.booleans())
    natural = 1 << (size - 1).bit_length()
    align = draw(st.sampled_from([1, 8, min(natural, 64)]))
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
    return Int(size, signed=signed, align=align), st.integers(low, high)


def texts() -> st.SearchStrategy[tuple[Field, st.SearchStrategy[Any]]]:
    content = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
    return st.just((Text(), content))


@st.composite
def arrays(draw) -> tuple[Field, st.SearchStrategy[Any]]:
    element, values = draw(integers())
    length = draw(st.integers(1, 5))
    return Array(element, length), st.lists(values, min_size=length, max_size=length)


@st.composite
def events(draw, event_id: int) -> tuple[Event, st.SearchStrategy[dict]]:
    """An event class of one to five members, and a strategy for its values."""
    members: dict[str, Field] = {}
    values: dict[str, st.SearchStrategy[Any]] = {}
    for index in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["scalar", "text", "array", "sequence", "struct"]))
        name = f"_f{index}"
        if kind == "sequence":
            element, of = draw(integers())
            members[f"__n{index}"] = Int(draw(st.sampled_from([8, 16, 64])))
            members[name] = Seq(element, f"__n{index}")
            values[name] = st.lists(of, max_size=4)
        elif kind == "struct":
            inner, of = draw(integers())
            members[name] = Struct({"_x": inner})
            values[name] = st.fixed_dictionaries({"_x": of})
        else:
            members[name], values[name] = draw({"scalar": integers(), "text": texts(), "array": arrays()}[kind])
    return Event(f"app:e{event_id}", event_id, members), st.fixed_dictionaries(values)


def with_lengths(event: Event, values: dict) -> dict:
    """Values with the length of each sequence filled in."""
    lengths = {field.length_field: len(values[name]) for name, field in event.members.items() if isinstance(field, Seq)}
    return {**lengths, **values}


def expected(values: dict) -> dict:
    """Expected columns of an event."""
    flat: dict = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= {f"{name[1:]}.{inner[1:]}": inner_value for inner, inner_value in value.items()}
        else:
            flat[name[1:]] = value
    return flat


def plain_values(table: EventTable, by: list[str]) -> list[tuple[int | str | None, ...]]:
    """Numbers and texts of the given fields in each row, 64 bits read as signed; ``None`` for lists."""
    columns = [plain(table.columns[name]) if name in table.columns else [None] * len(table) for name in by]
    return list(zip(*columns, strict=True)) if by else [()] * len(table)


def plain(column: Column) -> list[int | str | None]:
    if column.offsets is not None or column.values.ndim > 1:
        return [None] * len(column)
    return [int(np.uint64(each).astype(np.int64)) if isinstance(each, int) and each >= 0 else each for each in column]


def counts_of(table: EventTable | None, by: list[str]) -> Counter[tuple[int | str | None, ...]]:
    if table is None:
        return Counter()
    return Counter(dict(zip(plain_values(table, by), table[COUNT].tolist(), strict=True)))


@SLOW
@given(data=st.data())
def test_written_traces_are_read_back(data):
    classes = [data.draw(events(event_id)) for event_id in range(data.draw(st.integers(1, 3)))]
    header = data.draw(st.sampled_from(["compact", "large", "none"]))
    builder = TraceBuilder([event for event, _ in classes], header=header, big_endian=data.draw(st.booleans()))
    packets, written, time = [], [], 1
    for sequence in range(data.draw(st.integers(1, 3))):
        records = []
        for _ in range(data.draw(st.integers(1, 4))):
            event, values = data.draw(st.sampled_from(classes))
            row = with_lengths(event, data.draw(values))
            time += data.draw(st.integers(1, 1 << 34))
            records.append(Record(event, time, row))
            written.append((time, event.name, row))
        packets.append(Packet(records, sequence=sequence, padding=data.draw(st.integers(0, 9))))
    with tempfile.TemporaryDirectory() as folder:
        place = builder.write(Path(folder), {"s_0": packets})
        trace = read_trace(place)
        names = sorted({name for table in trace.events.values() for name in table.columns})
        by = data.draw(st.lists(st.sampled_from(names), unique=True))
        with open_in_windows(place) as opened:
            counted = opened.count(events=set(trace.events), by=by)
        for event, _ in classes:
            rows = [(time, row) for time, name, row in written if name == event.name]
            table = trace.events[event.name]
            assert counts_of(counted.get(event.name), by) == Counter(plain_values(table, by))
            assert table.timestamp_ns.tolist() == [time for time, _ in rows]
            for index, (_, row) in enumerate(rows):
                assert {name: table.columns[name][index] for name in expected(row)} == expected(row)


def sample_trace(folder: Path) -> None:
    rich = Event("app:rich", 1, {"_a": Int(32), "_t": Text(), "__n": Int(8), "_l": Seq(Int(16), "__n")})
    tick = Event("app:tick", 2, {"_v": Int(64)})
    builder = TraceBuilder([rich, tick], context={"_vpid": Int(32)}, packetized=False)
    packets = []
    for sequence in range(3):
        records = []
        for i in range(6):
            values = {"_a": i, "_t": "x" * i, "__n": i % 3, "_l": list(range(i % 3))}
            records.append(Record(rich, 100 * sequence + 2 * i, values, {"_vpid": 7}))
            records.append(Record(tick, 100 * sequence + 2 * i + 1, {"_v": i}, {"_vpid": 7}))
        packets.append(Packet(records, sequence=sequence))
    builder.write(folder, {"s_0": packets})


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("sample")
    sample_trace(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_bytes_end_in_a_trace_or_a_refusal(sample, data):
    """Whatever is changed, cut or doubled: no crash, no hang, and only the named error."""
    name = data.draw(st.sampled_from(sorted(sample)))
    content = bytearray(sample[name])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        kind = data.draw(st.sampled_from(["flip", "set", "cut", "double", "drop"]))
        if kind == "flip" and content:
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "set" and content:
            content[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind == "cut":
            del content[at:]
        elif kind == "double":
            content[at:at] = content[at : at + data.draw(st.integers(1, 64))]
        else:
            del content[at : at + data.draw(st.integers(1, 64))]
    with tempfile.TemporaryDirectory() as folder:
        for other, original in sample.items():
            (Path(folder) / other).write_bytes(bytes(content) if other == name else original)
        with contextlib.suppress(TraceUnreadable):
            read_trace(folder)
        with contextlib.suppress(TraceUnreadable), open_in_windows(folder, on_corrupt="skip") as opened:
            counted = opened.count(events={"app:rich", "app:tick"}, by=["vpid", "a", "t"])
            whole = read_trace(folder, on_corrupt="skip").events
            assert {name: table[COUNT].sum() for name, table in counted.items()} == {
                name: len(whole[name]) for name in counted
            }
