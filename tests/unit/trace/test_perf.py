"""Thread states from perf's context switches, also with damage and losses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.ros2 import Kernel
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.scheduling import build_thread_states, cpu_rivals, split_spans
from pytest_ldos.trace.perf import SWITCHES_FOLDER, read_perf_records, with_switches
from tests.builders.ctf import Event, Packet, Record, TraceBuilder
from tests.builders.kernel import KernelTrace
from tests.builders.perf_data import USUAL_TYPE, PerfData

EPOCH_NS = 1_700_000_000_000_000_000
OURS, RIVAL, NEW = 7, 9, 11


def user_space_trace(folder: Path) -> DecodedTrace:
    event = Event("ldos:x", 1, {})
    builder = TraceBuilder([event], clock_offset=EPOCH_NS, environment={"domain": "ust", "hostname": "lab"})
    builder.write(folder / "ust", {"ch_0": [Packet([Record(event, 5, {})])]})
    return read_trace(folder)


def states_of(folder: Path, *files: PerfData):
    trace = user_space_trace(folder)
    for number, data in enumerate(files):
        data.write(folder / SWITCHES_FOLDER / f"{number:03d}.data")
    return build_thread_states(trace)


def rows_of(states, tid: int):
    own = states.filter(states["tid"] == tid)
    return [
        (begin - EPOCH_NS, end - EPOCH_NS, str(state), by)
        for begin, end, state, by in own.select("begin_ns", "end_ns", "state", "preempted_by").iter_rows()
    ]


@pytest.fixture
def data():
    data = PerfData()
    data.name(OURS, "planner")
    data.name(RIVAL, "cc1plus")
    return data


def test_a_thread_runs_waits_for_its_rival_and_blocks(tmp_path, data):
    data.switch(100, 0, 0, OURS)
    data.switch(200, 0, OURS, RIVAL, preempted=True)
    data.switch(500, 0, RIVAL, OURS, preempted=True)
    data.switch(600, 0, OURS, 0)
    data.switch(900, 0, 0, OURS)
    data.switch(1000, 0, OURS, 0)
    states = states_of(tmp_path, data)
    assert rows_of(states, OURS) == [
        (101, 200, "running", None),
        (200, 500, "runnable", RIVAL),
        (500, 600, "running", None),
        (600, 901, "blocked", None),
        (901, 1000, "running", None),
    ]
    assert set(states["host"]) == {"lab"}
    assert dict(states.select("tid", "name").iter_rows()) == {OURS: "planner", RIVAL: "cc1plus"}
    span = states.select("host", "tid").head(1).with_columns(begin_ns=EPOCH_NS + 150, end_ns=EPOCH_NS + 800)
    assert split_spans(states, span).row(0) == (150, 300, 200, 0)
    assert cpu_rivals(states, span).rows() == [(0, RIVAL, "cc1plus", 300)]


def test_exited_thread_is_not_blocked(tmp_path, data):
    data.fork(50, NEW, OURS)
    data.switch(100, 1, 0, NEW)
    data.switch(150, 0, 0, OURS)
    data.switch(200, 1, -1, 0)
    data.switch(1000, 1, -1, OURS)
    states = states_of(tmp_path, data)
    assert rows_of(states, NEW) == [(101, 200, "running", None)]
    assert dict(states.select("tid", "name").iter_rows())[NEW] == "planner", "as its parent"


def test_a_thread_without_records_of_its_own_leaves_when_the_next_one_comes(tmp_path, data):
    data.switch(100, 0, 0, OURS)
    data.switch(200, 0, OURS, NEW, preempted=True)
    del data.records[-1]
    data.switch(300, 0, NEW, OURS)
    del data.records[-2]
    data.switch(400, 0, OURS, 0)
    states = states_of(tmp_path, data)
    assert rows_of(states, OURS)[1:] == [(200, 301, "runnable", NEW), (301, 400, "running", None)]
    assert rows_of(states, NEW)[0] == (200, 301, "running", None)


def test_states_are_unknown_during_pauses_and_losses(tmp_path, data):
    data.switch(100, 0, 0, OURS)
    data.switch(200, 0, OURS, 0)
    later = PerfData()
    later.switch(1000, 0, 0, OURS)
    later.switch(1100, 0, OURS, RIVAL, preempted=True)
    later.lose(1500, 0, 12)
    later.switch(2000, 0, 0, OURS)
    later.switch(2100, 0, OURS, 0)
    rows = rows_of(states_of(tmp_path, data, later), OURS)
    before, after = [(101, 200, "running", None)], [(2001, 2100, "running", None)]
    assert rows == [*before, (1001, 1100, "running", None), (1100, 1101, "runnable", RIVAL), *after]
    stats = with_switches(read_trace(tmp_path)).stats
    assert stats.discarded_events == 12


def test_kernel_events_of_the_trace_are_preferred(tmp_path, data):
    kernel = KernelTrace(hostname="lab")
    kernel.switch(100, 0, 0, 42)
    kernel.switch(200, 0, 42, 0)
    kernel.write(tmp_path)
    data.switch(100, 0, 0, OURS)
    data.switch(200, 0, OURS, 0)
    assert set(states_of(tmp_path, data)["tid"]) == {42}


def test_without_trace_or_files_nothing_is_added(tmp_path):
    trace = user_space_trace(tmp_path)
    assert with_switches(trace) is trace
    assert Kernel.SWITCH not in trace.events


def test_truncated_file_is_read_up_to_its_last_whole_record(tmp_path, data):
    data.switch(100, 0, 0, OURS)
    data.switch(200, 0, OURS, 0)
    data.records[-1] = data.records[-1][:-3]
    records = read_perf_records(data.write(tmp_path / "x.data", killed=True))
    assert len(records.switches) == 1


def test_identifiers_after_records_are_skipped(tmp_path):
    data = PerfData(sample_type=USUAL_TYPE | 1 << 6 | 1 << 16)
    data.switch(100, 3, 0, OURS)
    data.lose(150, 3, 4)
    records = read_perf_records(data.write(tmp_path / "x.data"))
    assert records.switches[["time", "cpu", "tid"]].tolist() == [(101, 3, OURS)]
    assert records.losses == [(150, 3, 4)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"clock": 0}, "not CLOCK_MONOTONIC"),
        ({"flags": 1 << 18}, "not CLOCK_MONOTONIC"),
        ({"flags": 1 << 25}, "lack thread, time or CPU"),
        ({"sample_type": 1 << 1 | 1 << 2}, "lack thread, time or CPU"),
    ],
)
def test_other_recordings_of_perf_are_refused(tmp_path, change, reason):
    with pytest.raises(TraceUnreadable, match=reason):
        read_perf_records(PerfData(**change).write(tmp_path / "x.data"))


@pytest.mark.parametrize("content", [b"", b"PERFILE2", b"x" * 500, b"PERFILE2" + b"\xff" * 500])
def test_other_file_is_refused(tmp_path, content):
    (tmp_path / "x.data").write_bytes(content)
    with pytest.raises(TraceUnreadable):
        read_perf_records(tmp_path / "x.data")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(TraceUnreadable, match="No such file"):
        read_perf_records(tmp_path / "x.data")
