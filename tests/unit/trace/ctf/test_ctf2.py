"""Traces with the JSON metadata of CTF 2, as LTTng 2.15 writes them by default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import Array, Enum, Event, Field, Float, Int, Packet, Record, Seq, Struct, Text, Variant
from tests.builders.ctf2 import Bool, Bytes, Ctf2Builder, Optional, VarInt

TICK = Event("app:tick", 1, {"value": Int(32)})


def write(directory: Path, event: Event, rows: list[dict[str, Any]], **options) -> Path:
    builder = Ctf2Builder([event], **options)
    return builder.write(directory, {"s_0": [Packet([Record(event, 10 * i, row) for i, row in enumerate(rows)])]})


def columns(directory: Path, name: str) -> dict[str, list[Any]]:
    return {column: list(found) for column, found in read_trace(directory).events[name].columns.items()}


@pytest.mark.parametrize("header", ["compact", "large", "none"])
@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("packetized", [False, True])
def test_headers_orders_and_metadata_packets(tmp_path, header, big_endian, packetized):
    late = Event("app:late", 70_000, {"value": Int(16)})
    builder = Ctf2Builder(
        [TICK, late],
        header=header,
        big_endian=big_endian,
        packetized=packetized,
        instances=True,
        clock_offset=1_700_000_000_000_000_005,
    )
    records = [
        Record(TICK, 100, {"value": 7}),
        Record(late, 1 << 40, {"value": 8}),
        Record(TICK, 1 << 41, {"value": 9}),
    ]
    builder.write(tmp_path, {"s_0": [Packet(records, cpu=3, discarded=4)]})
    trace = read_trace(tmp_path)
    tick = trace.events["app:tick"]
    assert tick["value"].tolist() == [7, 9]
    assert tick.timestamp_ns.tolist() == [1_700_000_000_000_000_105, 1_700_000_000_000_000_005 + (1 << 41)]
    assert tick.cpu_id.tolist() == [3, 3]
    assert trace.events["app:late"]["value"].tolist() == [8]
    assert trace.stats.discarded_events == 4
    (info,) = trace.traces
    assert (info.domain, info.host, info.clock, info.uuid) == ("ust", "builder", "monotonic", builder.uuid.hex)


def test_packet_fields_are_found_by_role(tmp_path):
    """The tracer chooses the names of sequence numbers, sizes and end times."""
    builder = Ctf2Builder([TICK], instances=True)
    packets = [Packet([Record(TICK, n, {"value": n})], sequence=n, padding=40) for n in (0, 1, 4)]
    builder.write(tmp_path, {"s_0": packets})
    stats = read_trace(tmp_path).stats
    assert [(gap.from_ns, gap.to_ns, gap.packets) for gap in stats.gaps] == [(1, 4, 2)]


def test_numbers(tmp_path):
    members: dict[str, Field] = {
        "bits": Int(3, align=1),
        "signed": Int(13, signed=True, align=1),
        "flag": Bool(),
        "half": Float(32),
        "ratio": Float(64),
        "kind": Enum({"some": (0, 3), "more": (4, 9)}),
    }
    row = {"bits": 5, "signed": -77, "flag": True, "half": 0.5, "ratio": 1 / 3, "kind": 4}
    directory = write(tmp_path, Event("app:numbers", 1, members), [row])
    assert columns(directory, "app:numbers") == {name: [value] for name, value in row.items()}
    labels = read_trace(directory).events["app:numbers"].columns["kind"].labels
    assert {(label.name, label.first, label.last) for label in labels} == {("some", 0, 3), ("more", 4, 9)}


@pytest.mark.parametrize(
    ("signed", "numbers"),
    [
        (False, [0, 1, 127, 128, 16_383, 16_384, (1 << 63) + 1, (1 << 64) - 1]),
        (True, [0, -1, 63, 64, -64, -65, -8192, (1 << 63) - 1, -(1 << 63)]),
    ],
)
def test_integers_of_variable_length(tmp_path, signed, numbers):
    event = Event("app:var", 1, {"number": VarInt(signed), "after": Int(8)})
    directory = write(tmp_path, event, [{"number": number, "after": 9} for number in numbers])
    assert columns(directory, "app:var") == {"number": numbers, "after": [9] * len(numbers)}


def test_strings_and_blobs(tmp_path):
    members: dict[str, Field] = {
        "text": Text(),
        "fixed": Bytes("string", 6),
        "length": VarInt(),
        "varying": Bytes("string", "length"),
        "digest": Bytes("blob", 3),
        "size": Int(8),
        "image": Bytes("blob", "size"),
    }
    rows = [
        {
            "text": "först",
            "fixed": b"ab",
            "length": 3,
            "varying": b"xyz",
            "digest": b"\x01\x02\x03",
            "size": 2,
            "image": b"\xfe\xff",
        },
        {"text": "", "fixed": b"abcdef", "length": 0, "varying": b"", "digest": b"\0\0\0", "size": 0, "image": b""},
    ]
    found = columns(write(tmp_path, Event("app:bytes", 1, members), rows), "app:bytes")
    assert found["text"] == ["först", ""]
    assert found["fixed"] == ["ab", "abcdef"]
    assert found["varying"] == ["xyz", ""]
    assert found["digest"] == [[1, 2, 3], [0, 0, 0]]
    assert found["image"] == [[254, 255], []]


def test_arrays_of_numbers_and_structures(tmp_path):
    members: dict[str, Field] = {
        "three": Array(Int(16), 3),
        "n": Int(8),
        "points": Seq(Struct({"x": VarInt(), "y": Int(8)}), "n"),
    }
    rows = [
        {"three": [1, 2, 3], "n": 2, "points": [{"x": 300, "y": 1}, {"x": 2, "y": 4}]},
        {"three": [4, 5, 6], "n": 0, "points": []},
    ]
    found = columns(write(tmp_path, Event("app:arrays", 1, members), rows), "app:arrays")
    assert found["three"] == [[1, 2, 3], [4, 5, 6]]
    assert found["points.x"] == [[300, 2], []]
    assert found["points.y"] == [[1, 4], []]


def test_lengths_around_an_event(tmp_path):
    """A path begins at the root that it names, even if a field of the event has the same name."""
    event = Event("app:e", 1, {"cpu_id": Int(8), "a": Seq(Int(8), "cpu_id"), "b": Array(Int(8), 3)})
    builder = Ctf2Builder([event], packetized=False)
    record = Record(event, 5, {"cpu_id": 1, "a": [1], "b": [2, 3, 4]})
    builder.write(tmp_path, {"s_0": [Packet([record, record], cpu=3)]})
    static = '"type": "static-length-array", "length": 3'
    place = {"origin": "packet-context", "path": ["cpu_id"]}
    assert static in builder.tsdl()
    dynamic = f'"type": "dynamic-length-array", "length-field-location": {json.dumps(place)}'
    (tmp_path / "metadata").write_text(builder.tsdl().replace(static, dynamic))
    found = columns(tmp_path, "app:e")
    assert (found["a"], found["b"]) == ([[1]] * 2, [[2, 3, 4]] * 2)


def test_optional_fields_and_variants(tmp_path):
    labels = {"number": (0, 3), "words": (4, 4)}
    members: dict[str, Field] = {
        "config": Struct({"has": Bool(), "level": Int(8)}),
        "debug": Optional(Text(), ("config", "has")),
        "deep": Optional(Int(16), ("config", "level"), [(2, 3), (7, 7)]),
        "kind": Int(8),
        "what": Variant("kind", {"number": Int(32), "words": Text()}, labels),
    }
    rows = [
        {"config": {"has": True, "level": 2}, "debug": "yes", "deep": 5, "kind": 1, "what": 77},
        {"config": {"has": False, "level": 4}, "debug": None, "deep": None, "kind": 4, "what": "seven"},
        {"config": {"has": True, "level": 7}, "debug": "", "deep": 6, "kind": 0, "what": 8},
    ]
    found = columns(write(tmp_path, Event("app:either", 1, members), rows), "app:either")
    assert found["debug"] == ["yes", None, ""]
    assert found["deep"] == [5, None, 6]
    assert found["what.number"] == [77, None, 8]
    assert found["what.words"] == [None, "seven", None]
    assert found["config.level"] == [2, 4, 7]


def test_metadata_in_lttngs_layout(tmp_path):
    """White space, attributes and unknown display hints are ignored."""
    builder = Ctf2Builder([TICK], packetized=False)
    fragments = builder.fragments()
    fragments[-1]["attributes"] = {"lttng.org,2009": {"log-level": 13, "names": ["a", None, 1.5e3, True]}}
    fragments[-1]["payload-field-class"]["member-classes"][0]["field-class"]["preferred-display-base"] = 16
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 1, {"value": 3})])]})
    text = "".join(f"\x1e{json.dumps(fragment, indent=2)}\n" for fragment in fragments)
    (tmp_path / "metadata").write_text(text.replace('"value"', '"v\\u00e4lue"'))
    assert list(read_trace(tmp_path).events["app:tick"].columns["välue"]) == [3]


# --- refusals ---------------------------------------------------------------------------


def refusal(directory: Path) -> str:
    with pytest.raises(TraceUnreadable) as caught:
        read_trace(directory)
    return caught.value.reason


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"version": 2', '"version": 3', "line 1, column 34: CTF major version is not 2"),
        ('"type": "preamble"', '"type": "prelude"', "no preamble"),
        ('"type": "trace-class"', '"type": "track-class"', "line 6, column 2: unknown fragment"),
        ('"frequency": 1000000000', '"frequency": 0', "line 7, column 2: a clock cannot have frequency 0"),
        ('"default-clock-class-id": "monotonic"', '"default-clock-class-id": "wall"', "clock 'wall'"),
        ('"default-clock-class-id": "monotonic", ', "", "no default clock"),
        ('"field-class": "u64-ts"', '"field-class": "u63-ts"', "unknown field class 'u63-ts'"),
        ('"length": 27', '"length": 65', "1 to 64 bits"),
        ('"byte-order": "little-endian"', '"byte-order": "odd"', "unknown byte order 'odd'"),
        ('"data-stream-class-id": 0', '"data-stream-class-id": 4', "stream 4, which is not declared"),
        ('"id": 1,', '"id": -1,', "not negative"),
        ('"id": 1,', '"id": 1, "id": 1,', "property 'id' is there twice"),
        ('"name": "app:tick"', '"name": "app:tick', "expected ','"),
        ('"length": 16,', '"length": 18446744073709551616,', "does not fit 64 bits"),
        ('{"type": "data-stream-class"', '["type": "data-stream-class"', "expected ','"),
        ('"name": "app:tick"', '"name": "\\ud800"', "surrogate"),
    ],
)
def test_an_error_names_its_place(tmp_path, old, new, complaint):
    builder = Ctf2Builder([TICK], packetized=False, header="compact")
    text = builder.tsdl()
    assert old in text
    (tmp_path / "metadata").write_text(text.replace(old, new, 1))
    reason = refusal(tmp_path)
    assert complaint in reason
    assert reason.startswith("line ")


def test_truncated_metadata_is_refused(tmp_path):
    text = Ctf2Builder([TICK], packetized=False).tsdl()
    (tmp_path / "metadata").write_text(text[:-40])
    assert "the metadata ends inside a JSON value" in refusal(tmp_path)


def test_recursive_alias_is_refused(tmp_path):
    builder = Ctf2Builder([TICK], packetized=False)
    aliases = [
        {"type": "field-class-alias", "name": name, "field-class": other} for name, other in (("a", "b"), ("b", "a"))
    ]
    fragments = builder.fragments()
    fragments[1:1] = aliases
    fragments[-1]["payload-field-class"] = "a"
    (tmp_path / "metadata").write_text("\x1e".join(json.dumps(fragment) for fragment in fragments))
    assert "unknown field class" in refusal(tmp_path)


def test_exponential_aliases_are_refused(tmp_path):
    fragments = Ctf2Builder([TICK], packetized=False).fragments()
    for n in range(60):
        members = [{"name": name, "field-class": f"t{n}" if n else {"type": "null-terminated-string"}} for name in "ab"]
        structure = {"type": "structure", "member-classes": members}
        fragments.insert(-1, {"type": "field-class-alias", "name": f"t{n + 1}", "field-class": structure})
    fragments[-1]["payload-field-class"] = "t60"
    (tmp_path / "metadata").write_text("\x1e" + "\x1e".join(json.dumps(fragment) for fragment in fragments))
    assert "too many fields" in refusal(tmp_path)


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "metadata").write_text('\x1e{"type":' + "[" * 100_000)
    assert "nested too deeply" in refusal(tmp_path)


def test_extensions_are_refused_by_name(tmp_path):
    builder = Ctf2Builder([TICK], packetized=False)
    fragments = builder.fragments()
    fragments[0]["extensions"] = {"my.tracer": {"piano": {}}}
    (tmp_path / "metadata").write_text("\x1e" + "\x1e".join(json.dumps(fragment) for fragment in fragments))
    assert "extensions of 'my.tracer' are not known" in refusal(tmp_path)


def test_unsupported_metadata_has_a_remedy(tmp_path):
    fragments = Ctf2Builder([Event("app:text", 1, {"text": Text()})], packetized=False).fragments()
    fragments[-1]["payload-field-class"]["member-classes"][0]["field-class"]["encoding"] = "utf-16le"
    (tmp_path / "metadata").write_text("\x1e" + "\x1e".join(json.dumps(fragment) for fragment in fragments))
    with pytest.raises(TraceUnreadable, match="'utf-16le' are not read") as caught:
        read_trace(tmp_path)
    assert "--trace-format=ctf-1.8" in caught.value.remedy
