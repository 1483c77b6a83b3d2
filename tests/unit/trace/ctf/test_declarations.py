"""Optional and alternative forms of metadata, with their values, and as babeltrace2 reads them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.shapes import AROUND, HEAD, PARTS, SHAPES, U8, Shape, parts
from tests.oracles.agreement import Outcome, compare_with_babeltrace
from tests.oracles.babeltrace import why_unavailable


def write(directory: Path, shape: Shape) -> Path:
    (directory / "metadata").write_text(shape.metadata)
    for name, content in shape.streams.items():
        (directory / name).write_bytes(content)
    return directory


@pytest.mark.parametrize("name", SHAPES)
def test_metadata_form(tmp_path, name):
    shape = SHAPES[name]
    trace = read_trace(write(tmp_path, shape))
    assert (trace.traces[0].clock, trace.traces[0].environment) == (shape.clock, shape.environment)
    found = {
        event: [
            (int(table.timestamp_ns[row]), {column: table.columns[column][row] for column in values})
            for row, (_, values) in enumerate(shape.rows[event])
        ]
        for event, table in trace.events.items()
    }
    assert found == shape.rows
    assert len(trace) == sum(map(len, shape.rows.values()))


def test_32_bit_clock_wraps(tmp_path):
    """babeltrace2 starts a packet at its truncated time stamp, so that time goes back."""
    stream = parts(0xFFFF0000, 0x10000, 10, 9) + parts(0x50000, 0x50010, 5)
    trace = read_trace(write(tmp_path, Shape(PARTS, {"s": stream}, {})))
    assert trace.events["tick"].timestamp_ns.tolist() == [0xFFFF000A, 0x100000009, 0x100050005]
    later = read_trace(tmp_path, window=(0x100050005, 0x100060000))
    assert later.events["tick"]["v"].tolist() == [0]


def test_variant_tag_in_an_events_header(tmp_path):
    """babeltrace2's grammar has no path there."""
    metadata = HEAD % f"packet.header := struct {{ {U8} n; }};" + AROUND
    metadata += f" variant <stream.event.header.kind> {{ string NONE; {U8} SOME; }} what; }}; }};\n"
    stream = b"\1" + struct.pack("<IIB", 22 * 8, 22 * 8, 0) + b"\0\1\1\xa1\xd1\x55" + b"\0\0\0\xa2x\0"
    trace = read_trace(write(tmp_path, Shape(metadata, {"s": stream}, {})))
    columns = trace.events["e"].columns
    assert (list(columns["what.SOME"]), list(columns["what.NONE"])) == ([0x55, None], [None, "x"])
    assert list(columns["d"]) == [[0xD1], []]


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
@pytest.mark.parametrize("name", SHAPES)
def test_decoder_agrees_with_babeltrace2(tmp_path, name):
    agreement = compare_with_babeltrace(write(tmp_path, SHAPES[name]))
    assert (agreement.outcome, agreement.difference, agreement.ours, agreement.theirs)[:2] == (Outcome.EQUAL, "")
