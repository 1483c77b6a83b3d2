"""The decoder on synthetic traces."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf.read import read_trace
from tests.builders.ctf import (
    Array,
    Enum,
    Event,
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
from tests.builders.refusals import refusal

TICK = Event("app:tick", 1, {"_value": Int(32)})
CONTEXT = {"_vpid": Int(32, signed=True), "_vtid": Int(32, signed=True), "_procname": Array(Int(8, text=True), 17)}


def name_bytes(text: str, size: int = 17) -> list[int]:
    return list(text.encode().ljust(size, b"\0"))


def write_one(tmp_path, event: Event, values: dict, **options):
    builder = TraceBuilder([event], **options)
    return builder.write(tmp_path, {"s_0": [Packet([Record(event, 1000, values)])]})


@pytest.mark.parametrize("header", ["compact", "large", "none"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_every_header_and_byte_order(tmp_path, header, big_endian):
    builder = TraceBuilder([TICK], header=header, big_endian=big_endian, clock_offset=5_000)
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 100 + i, {"_value": i * 7}) for i in range(5)])]})
    table = read_trace(tmp_path).events["app:tick"]
    assert table["value"].tolist() == [0, 7, 14, 21, 28]
    assert table.timestamp_ns.tolist() == [5_100 + i for i in range(5)]


@pytest.mark.parametrize(("header", "bits"), [("compact", 27), ("large", 32)])
def test_short_timestamps_wrap(tmp_path, header, bits):
    """A short timestamp smaller than the previous one has wrapped once."""
    start = (1 << bits) * 3 - 10
    times = [start, start + 5, start + 12, start + 12 + (1 << bits) - 1]
    builder = TraceBuilder([TICK], header=header)
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, time, {"_value": 0}) for time in times])]})
    assert read_trace(tmp_path).events["app:tick"].timestamp_ns.tolist() == times


@pytest.mark.parametrize(
    ("header", "event_id"), [("compact", 31), ("compact", 400), ("large", 65_535), ("large", 70_000)]
)
def test_extended_ids(tmp_path, header, event_id):
    event = Event("app:late", event_id, {"_value": Int(8)})
    builder = TraceBuilder([TICK, event], header=header)
    records = [Record(TICK, 10, {"_value": 1}), Record(event, 20, {"_value": 2}), Record(TICK, 30, {"_value": 3})]
    builder.write(tmp_path, {"s_0": [Packet(records)]})
    trace = read_trace(tmp_path)
    assert trace.events["app:late"]["value"].tolist() == [2]
    assert trace.events["app:tick"].timestamp_ns.tolist() == [10, 30]


def test_long_pause_needs_the_extended_header(tmp_path):
    times = [10, 10 + (1 << 40), 11 + (1 << 40)]
    builder = TraceBuilder([TICK], header="compact")
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, time, {"_value": 0}) for time in times])]})
    assert read_trace(tmp_path).events["app:tick"].timestamp_ns.tolist() == times


@pytest.mark.parametrize("big_endian", [False, True])
def test_packed_bits_and_signs(tmp_path, big_endian):
    members = {
        "_a": Int(3, align=1),
        "_b": Int(5, signed=True, align=1),
        "_c": Int(11, align=1),
        "_d": Int(64, signed=True, align=8),
        "_e": Int(24, signed=True, align=1),
    }
    values = {"_a": 5, "_b": -16, "_c": 1025, "_d": -(1 << 63), "_e": -2}
    table = read_trace(write_one(tmp_path, Event("app:bits", 0, members), values, big_endian=big_endian))
    row = {name: table.events["app:bits"].columns[name][0] for name in "abcde"}
    assert row == {name[1:]: value for name, value in values.items()}


@pytest.mark.parametrize("big_endian", [False, True])
def test_natural_alignment(tmp_path, big_endian):
    """Fields aligned to their size move with the preceding fields."""
    members = {"_a": Int(8), "_b": Int(32, align=32), "_c": Int(16, align=16), "_d": Int(64, align=64)}
    event = Event("app:aligned", 0, members)
    builder = TraceBuilder([event, TICK], big_endian=big_endian)
    records = []
    for i in range(4):
        records.append(Record(event, 10 * i, {"_a": i, "_b": 100 + i, "_c": 200 + i, "_d": 300 + i}))
        records.append(Record(TICK, 10 * i + 5, {"_value": i}))
    builder.write(tmp_path, {"s_0": [Packet(records)]})
    table = read_trace(tmp_path).events["app:aligned"]
    assert [table[name].tolist() for name in "abcd"] == [
        [0, 1, 2, 3],
        [100, 101, 102, 103],
        [200, 201, 202, 203],
        [300, 301, 302, 303],
    ]


def test_strings_arrays_and_sequences(tmp_path):
    members = {
        "_text": Text(),
        "_fixed": Array(Int(8), 4),
        "__list_length": Int(64),
        "_list": Seq(Int(16, signed=True), "__list_length"),
        "__name_length": Int(8),
        "_name": Seq(Int(8, text=True), "__name_length"),
        "_ratio": Float(64),
        "_half": Float(32),
    }
    event = Event("app:rich", 0, members)
    rows = [("först", [1, 2, 3, 4], [-1, 0, 1], b"ab"), ("", [9, 9, 9, 9], [], b""), ("first", [0] * 4, [7], b"ab\0cd")]
    builder = TraceBuilder([event])
    records = [
        Record(
            event,
            index,
            {
                "_text": text,
                "_fixed": fixed,
                "__list_length": len(numbers),
                "_list": numbers,
                "__name_length": len(name),
                "_name": list(name),
                "_ratio": index / 3,
                "_half": 0.5 * index,
            },
        )
        for index, (text, fixed, numbers, name) in enumerate(rows)
    ]
    builder.write(tmp_path, {"s_0": [Packet(records)]})
    table = read_trace(tmp_path).events["app:rich"]
    assert list(table.columns["text"]) == ["först", "", "first"]
    assert list(table.columns["fixed"]) == [[1, 2, 3, 4], [9, 9, 9, 9], [0, 0, 0, 0]]
    assert list(table.columns["list"]) == [[-1, 0, 1], [], [7]]
    assert list(table.columns["name"]) == ["ab", "", "ab"]
    assert list(table.columns["ratio"]) == [0.0, 1 / 3, 2 / 3]
    assert list(table.columns["half"]) == [0.0, 0.5, 1.0]


def test_enumerations_and_variants(tmp_path):
    labels = {"none": (0, 0), "number": (1, 4), "text": (5, 5)}
    options = {"none": Struct({}), "number": Int(32), "text": Text()}
    event = Event("app:either", 0, {"kind": Enum(labels), "_what": Variant("kind", options, labels), "_after": Int(8)})
    builder = TraceBuilder([event])
    values = [(0, {}, 1), (3, 77, 2), (5, "seven", 3), (1, 8, 4)]
    builder.write(
        tmp_path,
        {
            "s_0": [
                Packet([Record(event, i, {"kind": k, "_what": w, "_after": a}) for i, (k, w, a) in enumerate(values)])
            ]
        },
    )
    table = read_trace(tmp_path).events["app:either"]
    assert list(table.columns["what.number"]) == [None, 77, None, 8]
    assert list(table.columns["what.text"]) == [None, None, "seven", None]
    assert table["after"].tolist() == [1, 2, 3, 4]
    assert {(label.name, label.first, label.last) for label in table.columns["kind"].labels} == {
        ("none", 0, 0),
        ("number", 1, 4),
        ("text", 5, 5),
    }


def test_nested_structs_have_dotted_names(tmp_path):
    inner = Struct({"_x": Int(16), "_label": Text()})
    event = Event("app:nested", 0, {"_outer": Struct({"_inner": inner, "_y": Int(8)})})
    values = {"_outer": {"_inner": {"_x": 300, "_label": "in"}, "_y": 4}}
    table = read_trace(write_one(tmp_path, event, values)).events["app:nested"]
    assert {name: column[0] for name, column in table.columns.items()} == {
        "outer.inner.x": 300,
        "outer.inner.label": "in",
        "outer.y": 4,
    }


def test_struct_members_in_arrays_are_lists(tmp_path):
    """The kernel's `poll` and `epoll_wait` have these; text members are reported as unread."""
    point = Struct({"_x": Int(8), "_n": Int(8), "_flags": Array(Int(4, align=1), 2), "_label": Text()})
    members = {"__count": Int(16), "_points": Seq(point, "__count"), "_grid": Array(Array(Int(16), 3), 2), "_z": Int(8)}
    event = Event("app:points", 1, members)
    rows = [[], [(1, 2, "one")], [(3, 4, "three"), (5, 6, ""), (7, 8, "seven")]]
    records = []
    for index, points in enumerate(rows):
        values = {
            "__count": len(points),
            "_points": [{"_x": x, "_n": n, "_flags": [x, n], "_label": label} for x, n, label in points],
            "_grid": [[1, 2, 3], [4, 5, index]],
            "_z": index,
        }
        records.append(Record(event, index, values))
    trace = read_trace(TraceBuilder([event]).write(tmp_path, {"s_0": [Packet(records)]}))
    table = trace.events["app:points"]
    assert list(table.columns["points.x"]) == [[], [1], [3, 5, 7]]
    assert list(table.columns["points.n"]) == [[], [2], [4, 6, 8]]
    assert list(table.columns["points.flags"]) == [[], [1, 2], [3, 4, 5, 6, 7, 8]]
    assert list(table.columns["grid"]) == [[1, 2, 3, 4, 5, index] for index in range(3)]
    assert table["z"].tolist() == [0, 1, 2]
    assert trace.traces[0].unread == (("app:points", "points.label"),)


def test_list_missing_from_another_layout(tmp_path):
    old, new = Event("app:grown", 1, {"_a": Array(Int(8), 3)}), Event("app:grown", 2, {"_b": Int(8)})
    records = [Record(old, 1, {"_a": [1, 2, 3]}), Record(new, 2, {"_b": 4})]
    directory = TraceBuilder([old, new]).write(tmp_path, {"s_0": [Packet(records)]})
    table = read_trace(directory).events["app:grown"]
    assert list(table.columns["a"]) == [[1, 2, 3], None]
    assert list(table.columns["b"]) == [None, 4]


def test_columns_larger_than_memory_are_refused(tmp_path):
    """One layout has many tiny events, another of the same name very many fields."""
    tiny = Event("app:same", 1)
    huge = Event("app:same", 2, {f"_f{n}": Int(64) for n in range(20_000)})
    records = [Record(tiny, time) for time in range(2000)]
    records.append(Record(huge, 2000, dict.fromkeys(huge.members, 0)))
    TraceBuilder([tiny, huge]).write(tmp_path, {"s_0": [Packet(records)]})
    assert "MiB for events of" in refusal(tmp_path).reason
    assert len(read_trace(tmp_path, fields=["f7"])) == 2001


def test_contexts_come_before_the_payload_and_keep_their_names(tmp_path):
    event = Event("app:who", 0, {"_vpid": Int(8), "_value": Int(8)})
    builder = TraceBuilder([event], context=CONTEXT)
    context = {"_vpid": 41, "_vtid": 42, "_procname": name_bytes("talker")}
    builder.write(tmp_path, {"s_0": [Packet([Record(event, 1, {"_vpid": 3, "_value": 4}, context)])]})
    table = read_trace(tmp_path).events["app:who"]
    assert {name: column[0] for name, column in table.columns.items()} == {
        "vpid": 41,
        "vtid": 42,
        "procname": "talker",
        "payload_vpid": 3,
        "value": 4,
    }


def test_streams_are_merged_by_time(tmp_path):
    builder = TraceBuilder([TICK])
    streams = {
        f"s_{cpu}": [Packet([Record(TICK, 100 * i + 10 * cpu, {"_value": cpu}) for i in range(20)], cpu=cpu)]
        for cpu in range(3)
    }
    table = read_trace(builder.write(tmp_path, streams)).events["app:tick"]
    assert table.timestamp_ns.tolist() == sorted(100 * i + 10 * cpu for i in range(20) for cpu in range(3))
    assert table.cpu_id.tolist() == [0, 1, 2] * 20
    assert table["value"].tolist() == [0, 1, 2] * 20


def test_two_layouts_of_an_event_share_a_table(tmp_path):
    """Two programs may give an event of one name different fields."""
    old, new = Event("app:grown", 1, {"_a": Int(8)}), Event("app:grown", 2, {"_a": Int(32, signed=True), "_b": Text()})
    builder = TraceBuilder([old, new])
    records = [Record(old, 1, {"_a": 200}), Record(new, 2, {"_a": -5, "_b": "x"}), Record(old, 3, {"_a": 1})]
    table = read_trace(builder.write(tmp_path, {"s_0": [Packet(records)]})).events["app:grown"]
    assert list(table.columns["a"]) == [200, -5, 1]
    assert list(table.columns["b"]) == [None, "x", None]


def test_field_of_two_kinds_has_two_columns(tmp_path):
    old, new = Event("app:turned", 1, {"_a": Int(8)}), Event("app:turned", 2, {"_a": Text()})
    builder = TraceBuilder([old, new])
    records = [Record(old, 1, {"_a": 200}), Record(new, 2, {"_a": "two hundred"})]
    table = read_trace(builder.write(tmp_path, {"s_0": [Packet(records)]})).events["app:turned"]
    assert list(table.columns["a"]) == [200, None]
    assert list(table.columns["a_text"]) == [None, "two hundred"]


def test_declared_event_without_occurrence_is_an_empty_table(tmp_path):
    builder = TraceBuilder([TICK, Event("app:never", 2, {"_x": Text()})])
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 1, {"_value": 1})])]})
    table = read_trace(tmp_path).events["app:never"]
    assert len(table) == 0
    assert len(table.columns["x"]) == 0


def test_clock_of_another_frequency(tmp_path):
    builder = TraceBuilder([TICK], frequency=10_000_000, clock_offset=30)
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 12_345, {"_value": 1})])]})
    assert read_trace(tmp_path).events["app:tick"].timestamp_ns.tolist() == [(12_345 + 30) * 100]


def test_names_that_are_not_utf8_are_escaped(tmp_path):
    event = Event("app:odd", 0, {"_name": Text()})
    table = read_trace(write_one(tmp_path, event, {"_name": b"caf\xe9\x1b[31m"})).events["app:odd"]
    assert table.columns["name"][0] == "caf\\xe9\x1b[31m"


@pytest.mark.parametrize("packetized", [True, False])
def test_metadata_as_packets_or_as_plain_text(tmp_path, packetized):
    builder = TraceBuilder([TICK], packetized=packetized)
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 1, {"_value": 9})])]})
    assert read_trace(tmp_path).events["app:tick"]["value"].tolist() == [9]


def test_padding_is_no_event(tmp_path):
    builder = TraceBuilder([TICK])
    packets = [Packet([Record(TICK, i, {"_value": i})], padding=100, sequence=i) for i in range(3)]
    assert read_trace(builder.write(tmp_path, {"s_0": packets})).events["app:tick"]["value"].tolist() == [0, 1, 2]


def test_empty_streams_and_other_files_are_skipped(tmp_path):
    builder = TraceBuilder([TICK])
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, 1, {"_value": 9})])], "s_1": []})
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "s_0.idx").write_bytes(b"stale")
    assert len(read_trace(tmp_path)) == 1


# --- losses ---------------------------------------------------------------------------


def losses(tmp_path, counters: list[int], bits: int = 64):
    builder = TraceBuilder([TICK], counter_bits=bits)
    packets = [
        Packet(
            [Record(TICK, 100 * i, {"_value": 0}), Record(TICK, 100 * i + 50, {"_value": 0})],
            discarded=counter,
            sequence=i,
        )
        for i, counter in enumerate(counters)
    ]
    return read_trace(builder.write(tmp_path, {"s_0": packets})).stats


def test_losses_are_between_packet_ends(tmp_path):
    stats = losses(tmp_path, [0, 0, 7, 7, 9])
    assert [(gap.from_ns, gap.to_ns, gap.events) for gap in stats.gaps] == [(150, 250, 7), (350, 450, 2)]
    assert stats.discarded_events == 9
    assert len(stats.gaps_within(200, 210)) == 1
    assert stats.gaps_within(0, 140) == []


def test_losses_before_the_first_packet_are_counted(tmp_path):
    assert losses(tmp_path, [4, 4]).discarded_events == 4


def test_counter_that_steps_back_once_is_no_loss(tmp_path):
    assert losses(tmp_path, [0, 10, 0, 10, 12]).discarded_events == 12


def test_loss_counter_wraps(tmp_path):
    counters = [step * (1 << 30) + 5 for step in range(6)]
    assert losses(tmp_path, [counter % (1 << 32) for counter in counters], bits=32).discarded_events == counters[-1]


def test_missing_packets_are_counted(tmp_path):
    builder = TraceBuilder([TICK])
    packets = [Packet([Record(TICK, i, {"_value": 0})], sequence=i) for i in (0, 1, 5)]
    assert read_trace(builder.write(tmp_path, {"s_0": packets})).stats.lost_packets == 3


def test_truncated_packet_is_read_up_to_its_last_whole_event(tmp_path):
    builder = TraceBuilder([TICK])
    builder.write(tmp_path, {"s_0": [Packet([Record(TICK, i, {"_value": i}) for i in range(10)])]})
    file = tmp_path / "s_0"
    file.write_bytes(file.read_bytes()[:-13])
    trace = read_trace(tmp_path)
    assert trace.events["app:tick"]["value"].tolist() == list(range(8))
    assert trace.stats.truncated_bytes == 7


# --- refusals --------------------------------------------------------------------


def good_trace(tmp_path):
    return write_one(tmp_path, TICK, {"_value": 1})


def test_missing_directory_is_refused(tmp_path):
    assert "no such directory" in str(refusal(tmp_path / "nowhere"))


def test_file_instead_of_a_directory_is_refused(tmp_path):
    good_trace(tmp_path)
    error = refusal(tmp_path / "metadata")
    assert "is the metadata of a trace" in str(error)
    assert "name the folder" in error.remedy


def test_directory_without_a_trace_is_refused(tmp_path):
    assert "no trace in it" in str(refusal(tmp_path))


def test_text_file_named_metadata_is_refused(tmp_path):
    (tmp_path / "metadata").write_text("name: something else\n")
    assert "not CTF metadata" in str(refusal(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        ("trace { major", "trace [ major", 5, "expected '{', found '['"),
        ("major = 1;", "major = 2;", 5, "major version"),
        ("freq = 1000000000", "freq = 0", 7, "frequency 0"),
        ("u32_t timestamp; } compact", "u99_t timestamp; } compact", 12, "unknown type"),
        ("size = 32; align = 8; signed", "size = 99; align = 8; signed", 3, "integer size"),
        ('"app:tick"', '"app:tick', 14, "closing quote"),
        ("event.context", "event.contest §", 13, "unexpected character"),
        ("stream_id = 0; fields", "stream_id = 9; fields", 14, "which is not declared"),
    ],
)
def test_metadata_with_an_error_names_its_place(tmp_path, old, new, line, complaint):
    builder = TraceBuilder([TICK], packetized=False, header="large", context=CONTEXT)
    text = builder.tsdl()
    assert old in text
    (tmp_path / "metadata").write_text(text.replace(old, new, 1))
    error = refusal(tmp_path)
    assert complaint in error.reason
    assert f"line {line}" in error.reason
    assert error.path == tmp_path / "metadata"


def test_undeclared_clock_is_refused(tmp_path):
    builder = TraceBuilder([TICK], packetized=False)
    (tmp_path / "metadata").write_text(builder.tsdl().replace("clock { name = monotonic", "clock { name = other"))
    error = refusal(tmp_path)
    assert "clock 'monotonic', which is not declared" in error.reason
    assert "line 8" in error.reason


def corrupt(tmp_path, change) -> TraceUnreadable:
    good_trace(tmp_path)
    file = tmp_path / "s_0"
    data = bytearray(file.read_bytes())
    change(data)
    file.write_bytes(bytes(data))
    error = refusal(tmp_path)
    assert error.path == file
    return error


def put(data: bytearray, at: int, value: int, size: int) -> None:
    data[at : at + size] = value.to_bytes(size, "little")


CONTENT_SIZE, PACKET_SIZE, FIRST_EVENT = 40, 48, 76


def test_wrong_magic_number_is_refused(tmp_path):
    error = corrupt(tmp_path, lambda data: put(data, 0, 0xDEADBEEF, 4))
    assert error.offset == 0
    assert "magic" in error.reason


def test_packet_of_another_trace_is_refused(tmp_path):
    """One packet among others; a file of only such packets is read (see test_declarations)."""
    builder = TraceBuilder([TICK])
    packets = [Packet([Record(TICK, 10 * i, {"_value": 1})], sequence=i) for i in range(2)]
    builder.write(tmp_path, {"s_0": packets})
    data = bytearray((tmp_path / "s_0").read_bytes())
    put(data, 6, 0, 4)
    (tmp_path / "s_0").write_bytes(bytes(data))
    assert "uuid" in refusal(tmp_path).reason


def test_packet_of_an_undeclared_stream_is_refused(tmp_path):
    assert "stream 5" in corrupt(tmp_path, lambda data: put(data, 20, 5, 4)).reason


def test_content_larger_than_its_packet_is_refused(tmp_path):
    assert "larger than the packet" in corrupt(tmp_path, lambda data: put(data, CONTENT_SIZE, 1 << 40, 8)).reason


def test_content_that_ends_in_the_header_is_refused(tmp_path):
    assert "inside its header" in corrupt(tmp_path, lambda data: put(data, CONTENT_SIZE, 64, 8)).reason


def test_undeclared_event_id_is_refused(tmp_path):
    error = corrupt(tmp_path, lambda data: put(data, FIRST_EVENT, 77, 2))
    assert error.offset == FIRST_EVENT
    assert "event id 77" in error.reason


def test_event_beyond_its_packet_is_refused(tmp_path):
    error = corrupt(tmp_path, lambda data: put(data, CONTENT_SIZE, (FIRST_EVENT + 8) * 8, 8))
    assert error.offset == FIRST_EVENT
    assert "beyond its packet's content" in error.reason


def test_unterminated_string_is_refused(tmp_path):
    event = Event("app:text", 1, {"_text": Text()})
    write_one(tmp_path, event, {"_text": "abc"})
    file = tmp_path / "s_0"
    file.write_bytes(file.read_bytes().replace(b"abc\0", b"abcd"))
    assert "beyond its packet's content" in refusal(tmp_path).reason


def test_oversized_sequence_is_refused(tmp_path):
    event = Event("app:list", 1, {"__n": Int(64), "_list": Seq(Int(8), "__n")})
    write_one(tmp_path, event, {"__n": 2, "_list": [1, 2]})
    file = tmp_path / "s_0"
    data = bytearray(file.read_bytes())
    put(data, FIRST_EVENT + 6, (1 << 64) - 1, 8)
    file.write_bytes(bytes(data))
    assert "beyond its packet's content" in refusal(tmp_path).reason


def test_tag_without_option_is_refused(tmp_path):
    labels = {"a": (0, 0), "b": (1, 1)}
    event = Event("app:either", 1, {"kind": Enum(labels), "_what": Variant("kind", {"a": Int(8), "b": Text()}, labels)})
    write_one(tmp_path, event, {"kind": 0, "_what": 3})
    file = tmp_path / "s_0"
    data = bytearray(file.read_bytes())
    data[FIRST_EVENT + 6] = 9
    file.write_bytes(bytes(data))
    assert "variant tag 9" in refusal(tmp_path).reason


@pytest.mark.parametrize(("threads", "variable"), [(0, None), (None, "many"), (None, "0")])
def test_invalid_number_of_threads_is_refused(tmp_path, monkeypatch, threads, variable):
    good_trace(tmp_path)
    if variable is not None:
        monkeypatch.setenv("LDOS_THREADS", variable)
    with pytest.raises(ConfigurationError, match="thread"):
        read_trace(tmp_path, threads=threads)
