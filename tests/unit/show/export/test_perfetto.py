"""A model as a Perfetto trace, read back with Perfetto's own message definitions."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.robot.stack.goals import REACH, ErrorCode
from pytest_ldos.robot.stack.lines import TrialTag
from pytest_ldos.show.export import perfetto as write
from pytest_ldos.show.export.perfetto import nested_ends, write_perfetto
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.scheduling import build_thread_states
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import Names
from pytest_ldos.trace.flow.summary import executor_states
from tests.builders.ctf import Event, Int, Packet, Record, Text, TraceBuilder
from tests.builders.kernel import EPOCH_NS, PREEMPTED, KernelTrace
from tests.builders.models import changed, empty_model
from tests.fakes.rig import MS, PID, FakeRecorder, FakeStack, Motion
from tests.oracles.perfetto import ask_processor, parse, why_no_processor

RECORDED = [
    "pipeline_multi_links",
    "intra_process",
    "service_action",
    "late_start",
    pytest.param("discarded", marks=pytest.mark.acceptance),
]


def exported(model, **options):
    file = io.BytesIO()
    write_perfetto(model, file, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def recorded(golden):
    made = {}

    def make(name):
        if name not in made:
            model = build_execution(read_trace(golden(name)))
            flow = build_flow(model)
            data = exported(model, flow=flow)
            made[name] = model, flow, data, parse(data)
        return made[name]

    return make


@pytest.mark.parametrize("name", RECORDED)
def test_packets_are_one_sequence_in_order(recorded, name):
    packets = recorded(name)[3].packets
    clock, first, *others = packets
    assert first.sequence_flags == 1
    assert {packet.trusted_packet_sequence_id for packet in packets} == {1}
    events = [packet for packet in others if packet.HasField("track_event")]
    assert all(packet.sequence_flags == 2 for packet in events)
    times = [packet.timestamp for packet in events]
    assert times == sorted(times)
    assert {each.clock_id: each.timestamp for each in clock.clock_snapshot.clocks} == {6: times[0], 1: times[0]}


@pytest.mark.parametrize("name", RECORDED)
def test_every_callback_run_is_a_slice_of_its_thread(recorded, name):
    model, _, _, read = recorded(name)
    runs = model.callback_runs.join(model.threads.select(thread="id", tid="tid"), on="thread").join(
        model.callbacks.select("symbol", callback="id"), on="callback", how="left"
    )
    expected = Counter(runs.select("tid", "start_ns", "end_ns", "symbol").iter_rows())
    found = Counter(
        (read.tracks[each.track].thread.tid, each.begin_ns, each.end_ns, dict(each.arguments).get("symbol"))
        for each in read.of("callback")
    )
    assert sum(found.values()) == len(model.callback_runs)
    for (tid, begin, end, symbol), count in expected.items():
        if end is not None:
            assert found[tid, begin, end, symbol] == count
        else:
            assert any(key[:2] == (tid, begin) and key[2] >= begin for key in found)


@pytest.mark.parametrize("name", RECORDED)
def test_every_transport_link_is_an_arrow_and_leads_on_to_the_callback(recorded, name):
    model, flow, _, read = recorded(name)
    sent, taken = model.publications["time_ns"], model.takes["time_ns"]
    ends = {number: [] for each in read.of("message") for number in each.flows}
    assert len(ends) == len(flow.transport)
    for each in (*read.instants, *read.slices):
        for number in each.flows:
            ends[number].append(each)
    links = flow.transport.select("publication", "take").rows()
    found = Counter((arrow[0].begin_ns, arrow[1].begin_ns) for arrow in ends.values())
    assert found == Counter((sent[publication], taken[take]) for publication, take in links)
    for publish, take, *run in ends.values():
        assert publish.name.replace("publish", "take") == take.name
        assert publish.begin_ns <= take.begin_ns
        assert all(each.category == "callback" and each.begin_ns >= take.begin_ns for each in run)
    starts = model.callback_runs["start_ns"]
    triggered = [
        (taken[take], starts[run])
        for take, run in flow.triggers.select("take", "callback_run").rows()
        if taken[take] <= starts[run] and take in set(flow.transport["take"])
    ]
    onward = [(arrow[1].begin_ns, arrow[2].begin_ns) for arrow in ends.values() if len(arrow) > 2]
    assert sorted(onward) == sorted(triggered)
    assert onward or name == "service_action"


def test_processes_threads_and_names(recorded):
    model, _, _, read = recorded("pipeline_multi_links")
    processes = {track.process.pid: track.process for track in read.tracks.values() if track.HasField("process")}
    assert set(processes) == set(model.processes["pid"])
    labels = [label for process in processes.values() for label in process.process_labels]
    assert sorted(labels) == sorted(model.nodes["name"])
    threads = {(track.thread.pid, track.thread.tid) for track in read.tracks.values() if track.HasField("thread")}
    owners = model.threads.join(model.processes.select(process="id", pid="pid"), on="process")
    assert threads == set(owners.select("pid", "tid").rows())
    topics = model.publications.join(model.publishers.select(publisher="id", topic="topic"), on="publisher")["topic"]
    published = Counter(each.name for each in read.of("message") if each.name.startswith("publish "))
    assert published == Counter(f"publish {topic}" for topic in topics)
    names = Names(model)
    assert Counter(each.name for each in read.of("callback")) == Counter(
        map(names.run, range(len(model.callback_runs)))
    )


@pytest.mark.parametrize("name", ["pipeline_multi_links", "intra_process"])
def test_executor_states_are_below_their_threads(recorded, name):
    model, _, _, read = recorded(name)
    states = executor_states(model).join(model.threads.select(thread="id", tid="tid"), on="thread")
    found = [
        (read.tracks[read.tracks[each.track].parent_uuid].thread.tid, each.begin_ns, each.end_ns, each.name)
        for each in read.of("executor")
    ]
    assert sorted(found) == sorted(states.select("tid", "begin_ns", "end_ns", "state").rows())


def test_message_rates_add_up(recorded):
    model, _, _, read = recorded("pipeline_multi_links")
    published = model.publications.join(model.publishers.select(publisher="id", topic="topic"), on="publisher")
    for topic, count in published.group_by("topic").len().rows():
        (track,) = read.track_named(f"{topic} messages")
        assert sum(value for _, value in read.counters[track]) == count


def test_chunk_size_does_not_change_the_file(recorded, monkeypatch):
    model, flow, data, _ = recorded("intra_process")
    monkeypatch.setattr(write, "_EVENTS_AT_ONCE", 100)
    reported = []
    assert exported(model, flow=flow, progress=lambda done, of: reported.append((done, of))) == data
    assert len(reported) > 10
    assert reported[-1][0] == reported[-1][1]


def test_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(Unavailable, match="the package perfetto") as refused:
        exported(empty_model())
    assert "pytest-ldos[report]" in refused.value.remedy


def test_trials_phases_and_loops(tmp_path):
    recorder = FakeRecorder(tmp_path)
    motions = [Motion(planning_ms=10, planned_ms=50), Motion(error_code=ErrorCode.NO_IK_SOLUTION)]
    stack = FakeStack(recorder, lambda index: motions[index])
    for index in range(2):
        stack.move(REACH, goal_id=f"{index:032x}", seed=1, trial=TrialTag("baseline", index))
    recorder.pause()
    model = build_execution(read_trace(tmp_path))
    read = parse(exported(model))
    (lane,) = read.track_named("trials")
    trials = [each for each in read.of("trial") if each.depth == 0]
    spans = model.trial_spans.select("begin_ns", "end_ns").rows()
    assert [(each.begin_ns, each.end_ns) for each in trials] == spans
    assert [each.name for each in trials] == ["baseline 0", "baseline 1"]
    assert {each.track for each in read.of("trial")} == {lane}
    planning = next(each for each in read.of("trial") if each.name == "planning")
    assert planning.end_ns - planning.begin_ns == 10 * MS
    assert dict(trials[0].arguments) == {"goal id": "0" * 32}
    (period,) = read.track_named("control period")
    assert [value for _, value in read.counters[period]] == np.diff(model.cycle_times_ns).tolist()
    assert read.tracks[read.tracks[period].parent_uuid].process.pid == PID
    (step,) = read.track_named("simulator step interval")
    assert len(read.counters[step]) == len(model.sim_steps) - 1


def test_simultaneous_trials_have_separate_tracks(tmp_path):
    from pytest_ldos.trace.execution.model import TrialSpan

    def trial(name, begin, end):
        return TrialSpan(
            goal_id=name, scenario="s", index=0, begin_ns=begin, phases={}, plan=None, end_ns=end, error_code=None
        )

    model = changed(empty_model(), trials=[trial("a", 10, 30), trial("b", 20, 40), trial("c", 30, None)])
    read = parse(exported(model))
    lanes = read.track_named("trials")
    assert [
        (each.track, each.begin_ns, each.end_ns) for each in sorted(read.slices, key=lambda each: each.begin_ns)
    ] == [
        (lanes[0], 10, 30),
        (lanes[1], 20, 40),
        (lanes[0], 30, 30),
    ]


def test_empty_model_gives_a_valid_trace():
    assert parse(exported(empty_model())).slices == []


START = Event("ros2:callback_start", 1, {"_callback": Int(64), "_is_intra_process": Int(32)})
END = Event("ros2:callback_end", 2, {"_callback": Int(64)})
CONTEXT = {"_vpid": Int(32, signed=True), "_vtid": Int(32, signed=True), "_procname": Text()}


def runs_of(directory, *runs, hostname="builder", pid=100, tid=101):
    """A trace with callback runs (begin, end); an end of ``None`` is missing."""
    context = {"_vpid": pid, "_vtid": tid, "_procname": "node"}
    records = []
    for begin, end in runs:
        records.append(Record(START, begin, {"_callback": 7, "_is_intra_process": 0}, context))
        if end is not None:
            records.append(Record(END, end, {"_callback": 7}, context))
    builder = TraceBuilder([START, END], context=CONTEXT, clock_offset=EPOCH_NS, environment={"hostname": hostname})
    builder.write(directory / hostname / "ust", {"s": [Packet(sorted(records, key=lambda record: record.time))]})


def test_kernel_states_of_the_threads_that_ran_callbacks(tmp_path):
    runs_of(tmp_path, (10, 40), tid=101)
    kernel = KernelTrace()
    kernel.switch(5, 0, 0, 101)
    kernel.switch(20, 0, 101, 102, state=PREEMPTED)
    kernel.switch(30, 0, 102, 101)
    kernel.switch(50, 0, 101, 0)
    kernel.write(tmp_path / "builder")
    trace = read_trace(tmp_path)
    read = parse(exported(build_execution(trace), thread_states=build_thread_states(trace)))
    states = read.of("scheduling")
    assert [(each.begin_ns - EPOCH_NS, each.end_ns - EPOCH_NS, each.name) for each in states] == [
        (5, 20, "running"),
        (20, 30, "runnable"),
        (30, 50, "running"),
    ]
    assert [dict(each.arguments) for each in states] == [{}, {"preempted by": "thread-102 (102)"}, {}]
    assert {read.tracks[read.tracks[each.track].parent_uuid].thread.tid for each in states} == {101}


def test_hosts_with_equal_process_numbers_are_separate(tmp_path):
    runs_of(tmp_path, (10, 40), hostname="one")
    runs_of(tmp_path, (15, 60), hostname="two")
    read = parse(exported(build_execution(read_trace(tmp_path))))
    processes = {
        track.process.pid: track.process.process_name for track in read.tracks.values() if track.HasField("process")
    }
    assert processes == {100: "node @ one", 10_000_100: "node @ two"}
    assert len({each.track for each in read.of("callback")}) == 2


def test_without_contexts_there_are_tracks_without_numbers(tmp_path):
    records = [Record(START, 10, {"_callback": 7, "_is_intra_process": 0}), Record(END, 20, {"_callback": 7})]
    TraceBuilder([START, END]).write(tmp_path, {"s": [Packet(records)]})
    read = parse(exported(build_execution(read_trace(tmp_path))))
    assert len(read.of("callback")) == 1
    assert not any(track.HasField("process") or track.HasField("thread") for track in read.tracks.values())


def test_a_run_without_an_end_ends_with_the_trace_or_before_the_next(tmp_path):
    runs_of(tmp_path, (10, 20), (30, None))
    read = parse(exported(build_execution(read_trace(tmp_path))))
    assert [(each.begin_ns - EPOCH_NS, each.end_ns - EPOCH_NS) for each in read.of("callback")] == [(10, 20), (30, 30)]


def test_names_with_any_characters(tmp_path):
    runs_of(tmp_path, (10, 20))
    model = build_execution(read_trace(tmp_path))
    odd = 'é "quoted" \x1b[31m \U0001f916'
    model = dataclasses.replace(model, callbacks=model.callbacks.with_columns(symbol=pl.lit(odd)))
    (run,) = parse(exported(model)).of("callback")
    assert dict(run.arguments) == {"symbol": odd}


@st.composite
def runs(draw):
    """Runs as a lossy trace could have them: any parents that come earlier, any ends or none."""
    count = draw(st.integers(1, 12))
    starts = sorted(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    ends = [draw(st.none() | st.integers(start, 40)) for start in starts]
    threads = [draw(st.integers(0, 1)) for _ in starts]
    parents = [
        draw(st.none() | st.sampled_from([p for p in range(row) if threads[p] == threads[row]] or [None]))
        for row in range(count)
    ]
    return pl.DataFrame(
        {"start_ns": starts, "end_ns": ends, "thread": threads, "parent": parents},
        schema={"start_ns": pl.Int64, "end_ns": pl.Int64, "thread": pl.Int32, "parent": pl.Int32},
    )


@given(runs())
def test_runs_of_a_thread_are_nested_or_disjoint(table):
    if not table["end_ns"].null_count() and not table["parent"].count():
        return  # a trace has no such runs that overlap: see the pairing of starts and ends
    ends = nested_ends(table, last_ns=40)
    rows = list(zip(table["thread"], table["start_ns"], ends.tolist(), strict=True))
    assert all(start <= end <= 40 for _, start, end in rows)
    for row, (thread, start, end) in enumerate(rows):
        for other, begin, until in rows[row + 1 :]:
            if other == thread and start < begin < end:
                assert until <= end


@pytest.mark.skipif(bool(why_no_processor()), reason=why_no_processor() or "available")
@pytest.mark.parametrize("name", RECORDED)
def test_trace_processor_reads_the_file_without_errors(recorded, tmp_path, name):
    model, flow, data, read = recorded(name)
    file = tmp_path / "it.pftrace"
    file.write_bytes(data)
    wrong = ask_processor(file, "select name, value, severity from stats where severity != 'info' and value > 0")
    assert wrong == []
    counted = ask_processor(
        file,
        "select (select count(*) from slice where category = 'callback') as runs,"
        " (select count(*) from slice where category = 'callback' and dur < 0) as endless,"
        " (select count(*) from slice where category = 'message') as messages,"
        " (select count(*) from flow join slice s on s.id = flow.slice_in where s.name glob 'take *') as links",
    )
    assert counted == [
        {
            "runs": str(len(model.callback_runs)),
            "endless": "0",
            "messages": str(len(model.publications) + len(model.takes)),
            "links": str(len(flow.transport)),
        }
    ]
    depths = ask_processor(file, "select max(depth) as deepest from slice where category = 'callback'")
    assert depths == [{"deepest": str(max(each.depth for each in read.of("callback")))}]


def made_up(case, directory):
    if case == "empty":
        return empty_model(), None
    if case == "trials":
        recorder = FakeRecorder(directory)
        FakeStack(recorder, lambda index: Motion()).move(REACH, goal_id="a" * 32, seed=1, trial=TrialTag("baseline", 0))
        recorder.pause()
    if case == "hosts":
        runs_of(directory, (10, 40), (50, 50), hostname="one")
        runs_of(directory, (15, 60), (70, None), hostname="two")
    if case == "kernel":
        runs_of(directory, (10, 40), tid=101)
        kernel = KernelTrace()
        kernel.switch(5, 0, 0, 101)
        kernel.switch(20, 0, 101, 102, state=PREEMPTED)
        kernel.switch(30, 0, 102, 101)
        kernel.write(directory / "builder")
    trace = read_trace(directory)
    return build_execution(trace), build_thread_states(trace)


@pytest.mark.skipif(bool(why_no_processor()), reason=why_no_processor() or "available")
@pytest.mark.parametrize("case", ["empty", "trials", "hosts", "kernel"])
def test_trace_processor_reads_events_absent_from_recorded_traces(tmp_path, case):
    model, states = made_up(case, tmp_path / "trace")
    data = exported(model, thread_states=states)
    read = parse(data)
    file = tmp_path / "it.pftrace"
    file.write_bytes(data)
    assert ask_processor(file, "select name, value from stats where severity != 'info' and value > 0") == []
    counted = ask_processor(
        file,
        "select (select count(*) from slice) as slices, (select count(*) from counter) as counts,"
        " (select count(*) from process where pid > 0) as processes",
    )
    processes = sum(track.HasField("process") for track in read.tracks.values())
    counts = sum(map(len, read.counters.values()))
    assert counted == [{"slices": str(len(read.slices)), "counts": str(counts), "processes": str(processes)}]
