"""Streams in several files: rotation, continued counters and duplicate files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.ctf.stats import Grade, describe_incomplete, describe_losses
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.refusals import refusal
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

TICK = Event("app:tick", 1, {"_value": Int(32)})
STEP = 100


def packets(numbers: Sequence[int], *, cpu: int = 0, discarded: Sequence[int] = ()) -> list[Packet]:
    """Packet `n` of a stream holds two events, of values 2n and 2n + 1."""
    lost = discarded or [0] * len(numbers)
    return [
        Packet(
            [Record(TICK, STEP * n + 10 * i + cpu, {"_value": 2 * n + i}) for i in range(2)],
            sequence=n,
            cpu=cpu,
            instance=cpu,
            discarded=count,
        )
        for n, count in zip(numbers, lost, strict=True)
    ]


def builder(**options) -> TraceBuilder:
    return TraceBuilder([TICK], instances=True, **options)


def values(directory: Path, **options) -> list[int]:
    return read_trace(directory, **options).events["app:tick"]["value"].tolist()


def count_of(directory: Path, name: str, **options) -> int:
    counters = {counter.name: counter for counter in read_trace(directory, **options).stats.counters}
    return counters[name].count


def test_rotated_chunks_are_one_sequence(tmp_path):
    """Chunk directories share the trace's uuid; counters continue from one to the next."""
    builder().write(tmp_path / "archives/first-0/ust", {"s_0": packets([0, 1], discarded=[0, 5])})
    builder().write(tmp_path / "archives/second-1/ust", {"s_0": packets([2, 3], discarded=[5, 5])})
    builder().write(tmp_path / "ust", {"s_0": packets([4], discarded=[8])})
    trace = read_trace(tmp_path)
    assert trace.events["app:tick"]["value"].tolist() == list(range(10))
    assert len({info.uuid for info in trace.traces}) == 1
    assert [(gap.from_ns, gap.to_ns, gap.events, gap.packets) for gap in sorted(trace.stats.gaps, key=str)] == [
        (10, 110, 5, 0),
        (310, 410, 3, 0),
    ]


def test_single_chunk_excludes_earlier_losses(tmp_path):
    directory = builder().write(tmp_path, {"s_0": packets([7, 8], discarded=[100, 103])})
    trace = read_trace(directory)
    assert [(gap.from_ns, gap.events) for gap in trace.stats.gaps] == [(710, 3)]
    assert count_of(directory, "earlier_events") == 100


def test_a_missing_chunk_is_a_gap(tmp_path):
    builder().write(tmp_path / "a", {"s_0": packets([0, 1])})
    builder().write(tmp_path / "c", {"s_0": packets([5])})
    stats = read_trace(tmp_path).stats
    assert [(gap.from_ns, gap.to_ns, gap.packets) for gap in stats.gaps] == [(110, 510, 3)]


def test_wrapped_trace_files_are_sorted(tmp_path):
    """``--tracefile-count`` overwrites the oldest file, so that names do not give the order."""
    streams = {"s_0_0": packets([6, 7]), "s_0_1": packets([2, 3]), "s_0_2": packets([4, 5])}
    trace = read_trace(builder().write(tmp_path, streams))
    assert trace.events["app:tick"]["value"].tolist() == list(range(4, 16))
    assert trace.stats.gaps == []


def test_decreasing_numbers_with_increasing_times_are_refused(tmp_path):
    """The clock wrapped between two files of a stream: sorting by time would be wrong."""
    streams = {"s_0_0": packets([4, 5]), "s_0_1": packets([2, 3])}
    for packet, number in zip([*streams["s_0_0"], *streams["s_0_1"]], (0, 1, 2, 3), strict=True):
        packet.sequence = number
    error = refusal(builder().write(tmp_path, streams))
    assert error.path == tmp_path / "s_0_1"
    assert "time goes back" in error.reason
    assert count_of(tmp_path, "backward_steps", on_corrupt="skip") == 1


def test_an_event_before_its_packet_is_refused(tmp_path):
    """The clock wrapped between the begin of the first packet and its first event."""
    packet = Packet([Record(TICK, 7, {"_value": 1})], begin=2**32 - 5, end=9)
    error = refusal(TraceBuilder([TICK], header="none").write(tmp_path, {"s_0": [packet]}))
    assert "goes back by 4.29496728" in error.reason


def edges(directory: Path) -> dict[str, tuple[int | None, int, int | None]]:
    streams = read_trace(directory).stats.streams
    return {each.path.name: (each.missing_before_ns, each.earlier_packets, each.missing_after_ns) for each in streams}


def test_first_packet_number_shows_overwritten_packets(tmp_path):
    directory = builder().write(tmp_path, {"s_0": packets([0, 1, 5]), "s_1": packets([4, 5], cpu=1)})
    assert edges(directory) == {"s_0": (None, 0, None), "s_1": (401, 4, None)}
    stats = read_trace(directory).stats
    assert [(loss.to_ns, loss.packets) for loss in stats.losses] == [(510, 3), (400, 4)]
    assert (stats.lost_packets, len(stats.gaps_within(402, 409)), len(stats.gaps_within(300, 400))) == (3, 1, 2)
    assert describe_incomplete(stats) == "3 lost packets; missing: 4 packets before the first one of a stream"


@pytest.mark.parametrize("numbered", [True, False], ids=["numbers of 0", "no numbers"])
def test_late_stream_without_numbers_may_lack_its_begin(tmp_path, numbered):
    """Tracers before LTTng 2.8 do not number packets; here one ring was overwritten before a snapshot."""
    streams = {"s_0": packets([0, 1, 2, 5]), "s_1": packets([4, 5], cpu=1), "s_2": []}
    for packet in (*streams["s_0"], *streams["s_1"]):
        packet.sequence = 0
    made = builder()
    made.numbered = numbered
    directory = made.write(tmp_path, streams)
    assert edges(directory) == {"s_0": (None, 0, None), "s_1": (401, 0, None), "s_2": (None, 0, None)}
    stats = read_trace(directory).stats
    assert describe_incomplete(stats) == "missing: the begin of 1 stream"
    assert describe_losses(stats.gaps_within(300, 500)) == "part of a stream is missing"


@pytest.mark.parametrize(("tracer", "end_ns"), [("lttng-ust", 111), ("barectf", None)])
def test_stream_that_ends_early_is_incomplete(tmp_path, tracer, end_ns):
    """LTTng ends all streams together; one that ends early is due to a crash, or a copy of an active session."""
    made = builder(environment={"tracer_name": tracer})
    directory = made.write(tmp_path, {"s_0": packets([0, 1, 2, 5]), "s_1": packets([0, 1], cpu=1)})
    assert edges(directory) == {"s_0": (None, 0, None), "s_1": (None, 0, end_ns)}


@pytest.mark.parametrize(
    ("folder", "end_ns"),
    [
        ("20260301T091500+0000-20260301T091505+0000-7", None),
        ("20260301T101500+0100-20260301T081505-0100-12", None),
        ("20260301T091500+0000-7", 311),
        ("copy", 311),
    ],
)
@pytest.mark.parametrize("is_linked", [False, True])
def test_idle_stream_of_a_finished_part_is_complete(tmp_path, folder, end_ns, is_linked):
    """A rotation writes no packet at the end of a stream without events since the one before."""
    made, place = builder(environment={"tracer_name": "lttng-ust"}), tmp_path / "session" / folder
    made.write(place / "ust/uid/0/64-bit", {"s_0": packets([3, 4, 5]), "s_1": packets([3], cpu=1)})
    if is_linked:
        (tmp_path / "link").symlink_to(place)
        place = tmp_path / "link"
    assert edges(place) == {"s_0": (300, 3, None), "s_1": (301, 3, end_ns)}


def test_cut_stream_of_a_finished_part_lacks_its_end(tmp_path):
    place = tmp_path / "20260301T091500+0000-20260301T091505+0000-7"
    file = builder().write(place, {"s_0": packets([0, 1])}) / "s_0"
    os.truncate(file, file.stat().st_size - 2)
    assert edges(place) == {"s_0": (None, 0, 100)}


def test_streams_stopped_one_by_one_are_complete(tmp_path):
    """Each is flushed a little later than the previous one, after the last event of all."""
    streams = {f"s_{cpu}": packets([0, 1], cpu=cpu) for cpu in range(3)}
    for number, stream in enumerate(streams.values()):
        stream[-1].end = 1000 + number
    directory = builder(environment={"tracer_name": "lttng-ust"}).write(tmp_path, streams)
    assert set(edges(directory).values()) == {(None, 0, None)}


def test_truncated_stream_lacks_its_end(tmp_path):
    directory = builder().write(tmp_path, {"s_0": packets([0, 1])})
    with (directory / "s_0").open("r+b") as file:
        file.truncate((directory / "s_0").stat().st_size - 2)
    assert edges(directory) == {"s_0": (None, 0, 100)}


def test_sequence_numbers_wrap(tmp_path):
    """Differences are signed: zero follows the largest number without a loss."""
    stream = packets([0, 1])
    stream[0].sequence, stream[1].sequence = (1 << 64) - 1, 0
    assert read_trace(builder().write(tmp_path, {"s_0": stream})).stats.lost_packets == 0


def test_instances_of_a_stream_are_counted_separately(tmp_path):
    streams = {"s_0": packets([0, 1], discarded=[0, 3]), "s_1": packets([0, 1], cpu=1, discarded=[2, 2])}
    stats = read_trace(builder().write(tmp_path, streams)).stats
    assert {stream.path.name: sum(gap.events for gap in stream.gaps) for stream in stats.streams} == {
        "s_0": 3,
        "s_1": 2,
    }


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
def test_rotated_chunks_equal_babeltrace2(tmp_path):
    builder().write(tmp_path / "archives/first-0/ust", {"s_0": packets([0, 1]), "s_1": packets([0, 1], cpu=1)})
    builder().write(tmp_path / "archives/second-1/ust", {"s_0": packets([2]), "s_1": packets([2, 3], cpu=1)})
    opinion = read_with_babeltrace(tmp_path)
    assert opinion is not None
    table = read_trace(tmp_path).events["app:tick"]
    assert table.timestamp_ns.tolist() == [event["ns"] for event in opinion.events]
    assert table["value"].tolist() == [event["payload"]["value"] for event in opinion.events]


# --- duplicates -----------------------------------------------------------------------


@pytest.mark.parametrize("instances", [True, False])
def test_stream_copied_under_a_second_name(tmp_path, instances):
    """Other streams have the same times and numbers."""
    streams = {f"s_{cpu}": packets([0, 1], cpu=cpu) for cpu in range(3)}
    TraceBuilder([TICK], instances=instances).write(tmp_path, streams)
    once = sorted(values(tmp_path))
    shutil.copy(tmp_path / "s_0", tmp_path / "copy_of_s_0")
    error = refusal(tmp_path)
    assert "the stream is here twice" in error.reason
    assert "on_corrupt" in error.remedy
    assert sorted(values(tmp_path, on_corrupt="skip")) == once
    assert count_of(tmp_path, "repeated_packets", on_corrupt="skip") == 2


def test_trace_directory_copied_into_the_same_folder(tmp_path):
    builder().write(tmp_path / "one", {"s_0": packets([0, 1]), "s_1": packets([0], cpu=1)})
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    error = refusal(tmp_path)
    assert "the stream is here twice" in error.reason
    assert error.path.parent == tmp_path / "two"
    assert str(tmp_path / "one/s_0") in error.reason
    assert len(values(tmp_path, on_corrupt="skip")) == 6


def test_truncated_copy_adds_no_packets(tmp_path):
    builder().write(tmp_path / "one", {"s_0": packets([0, 1])})
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    file = tmp_path / "one/s_0"
    file.write_bytes(file.read_bytes()[:-5])
    assert values(tmp_path, on_corrupt="skip") == [0, 1, 2, 3]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_to_a_stream_is_read_once(tmp_path, link):
    builder().write(tmp_path, {"s_0": packets([0, 1])})
    link(tmp_path / "s_0", tmp_path / "t_0")
    trace = read_trace(tmp_path)
    assert len(trace) == 4
    assert [(each.path.name, each.same_as.name) for each in trace.stats.linked_files] == [("t_0", "s_0")]
    assert count_of(tmp_path, "linked_files") == 1


def test_a_link_to_a_trace_directory_is_read_once(tmp_path):
    builder().write(tmp_path / "session/ust", {"s_0": packets([0, 1])})
    (tmp_path / "session/again").symlink_to(tmp_path / "session/ust")
    (tmp_path / "session/ust/up").symlink_to(tmp_path / "session")
    trace = read_trace(tmp_path / "session")
    assert len(trace) == 4
    assert len(trace.traces) == 1


def test_a_trace_behind_a_link_is_read(tmp_path):
    builder().write(tmp_path / "elsewhere", {"s_0": packets([0, 1])})
    (tmp_path / "session").mkdir()
    (tmp_path / "session/ust").symlink_to(tmp_path / "elsewhere")
    assert len(read_trace(tmp_path / "session")) == 4


def test_simultaneous_traces_are_distinct(tmp_path):
    """Two sessions recorded the same events: only their uuids differ."""
    builder(identity=1).write(tmp_path / "one", {"s_0": packets([0, 1])})
    builder(identity=2).write(tmp_path / "two", {"s_0": packets([0, 1])})
    assert sorted(values(tmp_path)) == [0, 0, 1, 1, 2, 2, 3, 3]


# --- index files ---------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, b"", b"stale", b"\xc1\xf1\xdc\xc1" + b"\xff" * 92])
def test_index_files_are_ignored(tmp_path, content):
    builder().write(tmp_path, {"s_0": packets([0, 1])})
    if content is not None:
        (tmp_path / "index").mkdir()
        (tmp_path / "index/s_0.idx").write_bytes(content)
    assert values(tmp_path) == [0, 1, 2, 3]


# --- origin of traces ----------------------------------------------------------------


def test_traces_have_domain_host_and_owner(tmp_path):
    per_user = {"tracer_buffering_scheme": "uid", "tracer_buffering_id": 1000, "hostname": "robot"}
    per_process = {"tracer_buffering_scheme": "pid", "tracer_buffering_id": 77, "vpid": 77, "procname": "talker"}
    kernel = {"domain": "kernel", "tracer_name": "lttng-modules", "tracer_minor": 13}
    for number, (place, environment) in enumerate(
        [("ust/uid/1000/64-bit", per_user), ("ust/pid/talker-77-20260101-000000", per_process), ("kernel", kernel)]
    ):
        builder(identity=number, environment=environment).write(tmp_path / place, {"s_0": packets([number])})
    trace = read_trace(tmp_path)
    found = {info.directory.relative_to(tmp_path).parts[-1]: info for info in trace.traces}
    user, process, system = found["64-bit"], found["talker-77-20260101-000000"], found["kernel"]
    assert (user.domain, user.host, user.uid, user.pid) == ("ust", "robot", 1000, None)
    assert (process.domain, process.uid, process.pid, process.process_name) == ("ust", None, 77, "talker")
    assert (system.domain, system.uid, system.pid, system.tracer) == ("kernel", None, None, "lttng-modules 2.13")
    table = trace.events["app:tick"]
    for value, origin in zip(table["value"].tolist(), table.trace.tolist(), strict=True):
        assert trace.traces[origin].directory == trace.stats.streams[origin].path.parent
        assert value // 2 == int(trace.traces[origin].uuid, 16)


@pytest.mark.parametrize(
    ("place", "uid", "pid", "name"),
    [("ust/uid/1001/32-bit", 1001, None, ""), ("ust/pid/my-node-815-20260101-120000", None, 815, "my-node")],
)
def test_path_replaces_missing_metadata(tmp_path, place, uid, pid, name):
    builder().write(tmp_path / place, {"s_0": packets([0])})
    (info,) = read_trace(tmp_path).traces
    assert (info.uid, info.pid, info.process_name) == (uid, pid, name)


def test_counters_are_graded(tmp_path):
    directory = builder().write(tmp_path, {"s_0": packets([0, 1], discarded=[0, 5]), "s_1": []})
    counters = {counter.name: counter for counter in read_trace(directory).stats.counters}
    assert (counters["discarded_events"].grade, counters["discarded_events"].count) == (Grade.DATA_LOSS, 5)
    assert (counters["empty_streams"].grade, counters["empty_streams"].count) == (Grade.INFO, 1)
    assert (counters["corrupt_bytes"].grade, counters["corrupt_bytes"].count) == (Grade.ERROR, 0)
    assert all(counter.meaning for counter in counters.values())
