"""Sessions recorded by the real LTTng: rotated, in small files, per process, live, as snapshots."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.fleet.traces import find_traces
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.build import build_execution
from tests.builders.lttng import EMIT
from tests.builders.needs import needs_lttng
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

pytestmark = needs_lttng


def steps(trace: DecodedTrace) -> list[int]:
    return trace.events["ldos:sim_step"]["step"].tolist()


def assert_equals_babeltrace(directory: Path, trace: DecodedTrace) -> None:
    if why_unavailable():
        return
    opinion = read_with_babeltrace(directory)
    assert opinion is not None
    table = trace.events["ldos:sim_step"]
    assert table.timestamp_ns.tolist() == [event["ns"] for event in opinion.events]
    assert table["step"].tolist() == [event["payload"]["step"] for event in opinion.events]
    assert list(table.columns["procname"]) == [event["context"]["procname"] for event in opinion.events]


@pytest.mark.acceptance
def test_rotated_chunks(session):
    session.create()
    for chunk in range(3):
        session.emit(100 * chunk, 100 * (chunk + 1))
        session.lttng("rotate", "wanted")
    session.stop()
    trace = read_trace(session.directory)
    assert len({info.directory for info in trace.traces}) >= 3
    assert steps(trace) == list(range(300))
    assert trace.stats.gaps == []
    assert trace.stats.corruptions == []
    assert_equals_babeltrace(session.directory, trace)


def test_losses_continue_over_chunks(session):
    """Losses of the first chunk are not counted again in the second."""
    session.create("--subbuf-size=4k", "--num-subbuf=2", "--discard")
    session.emit(0, 100_000)
    session.lttng("rotate", "wanted")
    session.emit(100_000, 100_010)
    session.stop()
    trace = read_trace(session.directory)
    assert trace.stats.discarded_events > 0
    assert trace.stats.events + trace.stats.discarded_events == 100_010
    last_chunk = next(info.directory for info in trace.traces if "archives" not in info.directory.parts)
    assert read_trace(last_chunk).stats.discarded_events < trace.stats.discarded_events


@pytest.mark.acceptance
def test_trace_files_that_wrap(session):
    """At most three files of a few packets: only the oldest packets are missing."""
    session.create("--subbuf-size=4k", "--num-subbuf=1024", "--tracefile-size=8k", "--tracefile-count=3")
    session.emit(0, 20_000)
    session.stop()
    trace = read_trace(session.directory)
    assert trace.stats.lost_packets == 0
    found = steps(trace)
    assert 0 < len(found) < 20_000
    assert found[-1] == 19_999
    assert_equals_babeltrace(session.directory, trace)


def test_buffers_of_each_process(session):
    session.create(buffers="--buffers-pid")
    session.emit(0, 10)
    session.emit(10, 20)
    session.stop()
    trace = read_trace(session.directory)
    assert steps(trace) == list(range(20))
    pids = {info.pid for info in trace.traces}
    table = trace.events["ldos:sim_step"]
    assert {trace.traces[origin].pid for origin in table.trace.tolist()} == set(table["vpid"].tolist()) <= pids
    assert {info.domain for info in trace.traces} == {"ust"}
    assert all(info.process_name.startswith("python") and info.host for info in trace.traces)


def outcome(directory: Path) -> DecodedTrace | TraceUnreadable:
    try:
        return read_trace(directory)
    except TraceUnreadable as error:
        return error


def test_process_without_a_recorded_name_has_none(session, tmp_path):
    for number, contexts in enumerate((("vpid", "vtid", "procname"), ("vpid", "vtid"))):
        session.directory = tmp_path / "both" / str(number)
        session.create(contexts=contexts)
        session.emit(0, 3)
        session.lttng("destroy", "wanted")
    names = build_execution(read_trace(tmp_path / "both")).processes["name"]
    assert len(names) == 2
    assert names.null_count() == 1


def test_active_session(session):
    """The packets written so far are read; without any, the error has a remedy."""
    session.create("--subbuf-size=4k", "--num-subbuf=64")
    session.emit(0, 5000)
    found = outcome(session.directory)
    if isinstance(found, TraceUnreadable):
        assert "lttng" in found.remedy
    else:
        assert steps(found) == sorted(steps(found))
    session.stop()
    trace = read_trace(session.directory)
    assert len(trace) + trace.stats.discarded_events == 5000


def test_snapshots_overlap(session, tmp_path):
    """Two snapshots hold the same packets: a single one is read, and both together are refused as duplicates."""
    session.create(output=("--snapshot", f"--output={tmp_path / 'wanted'}"))
    session.emit(0, 50)
    session.lttng("snapshot", "record", "-s", "wanted")
    session.lttng("snapshot", "record", "-s", "wanted")
    snapshots = sorted(path for path in session.directory.iterdir() if path.is_dir())
    assert len(snapshots) == 2
    assert steps(read_trace(snapshots[0])) == list(range(50))
    with pytest.raises(TraceUnreadable, match="the stream is here twice"):
        read_trace(session.directory)
    assert steps(read_trace(session.directory, on_corrupt="skip")) == list(range(50))


def test_snapshot_of_overwritten_rings(session, tmp_path):
    """One CPU's ring is full of events; the other has a single, much older event."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU has one ring")
    snapshot = ("--snapshot", f"--output={tmp_path / 'wanted'}")
    session.create("--overwrite", "--subbuf-size=4k", "--num-subbuf=2", output=snapshot)
    for cpu, first, behind in ((cpus[0], 0, 1), (cpus[1], 1, 20_000)):
        session.run("taskset", "-c", str(cpu), sys.executable, "-c", EMIT, str(first), str(behind))
    session.lttng("snapshot", "record", "-s", "wanted")
    trace = read_trace(session.directory)
    found = steps(trace)
    assert 0 < len(found) < 20_000
    assert (found[0], found[-1]) == (0, 19_999)
    (full,) = (each for each in trace.stats.streams if each.earlier_packets)
    first_ns = trace.events["ldos:sim_step"].timestamp_ns.tolist()[1]
    assert full.missing_before_ns is not None
    assert full.missing_before_ns <= first_ns
    assert [(gap.to_ns + 1, gap.packets) for gap in trace.stats.losses] == [
        (full.missing_before_ns, full.earlier_packets)
    ]
    assert trace.stats.gaps_within(first_ns, first_ns + 1) == []
    assert f"{full.earlier_packets} packets before the first one" in describe_incomplete(trace.stats)
    assert_equals_babeltrace(session.directory, trace)


def test_stopped_session_is_complete(session):
    session.create("--subbuf-size=4k", "--num-subbuf=64")
    session.emit(0, 1000)
    session.stop()
    assert describe_incomplete(read_trace(session.directory).stats) == ""


def test_copy_of_the_session_in_the_same_folder(session):
    session.create()
    session.emit(0, 10)
    session.stop()
    shutil.copytree(session.directory, session.directory / "copy")
    with pytest.raises(TraceUnreadable, match="the stream is here twice"):
        read_trace(session.directory)
    assert steps(read_trace(session.directory, on_corrupt="skip")) == list(range(10))


def test_both_sessions_of_a_dual_session_are_one_trace(session, tmp_path):
    """``ros2 trace --dual-session`` records a snapshot of the initialisation, then a runtime session."""
    session.create(output=("--snapshot", f"--output={session.directory / 'snapshot'}"))
    session.emit(0, 50)
    session.lttng("snapshot", "record", "-s", "wanted")
    session.stop()
    session.lttng("destroy", "wanted")
    session.create(output=(f"--output={session.directory / 'runtime'}",))
    session.emit(50, 80)
    session.stop()
    (found,) = find_traces([tmp_path / "wanted"])
    assert found.path == session.directory
    assert steps(read_trace(found.path)) == list(range(80))
