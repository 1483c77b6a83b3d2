"""Metrics of own tracepoints: a program's own log of its events is the truth, and babeltrace2 a second reader."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, Phase
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.metrics.declared import declare, parts_of
from pytest_ldos.measure.metrics.extract import extract_trial
from pytest_ldos.measure.metrics.model import WITHOUT_BEGIN, WITHOUT_END, Measurement, TraceFlow
from pytest_ldos.measure.metrics.own_events import own_events, recorded_for, refuse_unknown_events
from pytest_ldos.record.lttng import LttngRecorder
from pytest_ldos.scenario.metrics import MetricSpec, parse_metrics
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.execution.scheduling import build_thread_states
from tests.builders.models import empty_model
from tests.builders.needs import needs_lttng
from tests.builders.pages import ROOT, parse_page
from tests.oracles.babeltrace import read_with_babeltrace, why_unavailable

pytestmark = needs_lttng

SOLVER = ROOT / "tests/native/solver"
HOW_TO = ROOT / "docs/how-to/gate-your-own-tracepoints.md"


@dataclass(frozen=True)
class Logged:
    """An event as the program logged it: it happened between two readings of the program's clock."""

    name: str
    thread: int
    id: int
    value: float
    before_ns: int
    after_ns: int


Bounds = tuple[int, int]


@dataclass(frozen=True)
class Recorded:
    trace: Path
    log: Sequence[Logged]  # in the order of the program's clock

    def read(self, *texts: str) -> DecodedTrace:
        return read_trace(self.trace, events=own_events(specs(*texts)))

    def of(self, *names: str) -> list[Logged]:
        return [each for each in self.log if each.name in names]


def specs(*texts: str) -> tuple[MetricSpec, ...]:
    return parse_metrics(list(texts), BUILT_IN_PATHS)


def record(folder: Path, command: Sequence[object], *texts: str) -> Recorded:
    """Records what the metrics need, as a run does; the trace's clock is that of the program, shifted."""
    recorder = LttngRecorder(folder / "trace", folder, events=recorded_for(specs(*texts)))
    recorder.start()
    try:
        environment = {**os.environ, **recorder.environment}
        run = [*recorder.prefix, *map(str, command)]
        done = subprocess.run(run, env=environment, check=True, capture_output=True, text=True)
        assert recorder.pause().discarded_events == 0
    finally:
        recorder.stop()
    offset_ns = read_trace(recorder.directory, events=()).traces[0].clock_offset_ns
    log = []
    for name, thread, number, value, before, after in map(str.split, done.stdout.splitlines()):
        times = (int(before) + offset_ns, int(after) + offset_ns)
        log.append(Logged(name, int(thread), int(number), float(value), *times))
    return Recorded(recorder.directory, sorted(log, key=lambda each: each.before_ns))


@pytest.fixture(scope="module")
def solver(tmp_path_factory) -> Recorded:
    """A recording of a program in C++ with its own provider."""
    folder = tmp_path_factory.mktemp("solver")
    flags = ["-O1", "-Wno-unused-function", f"-I{SOLVER}"]
    subprocess.run(["gcc", *flags, "-c", SOLVER / "solver_probes.c", "-o", folder / "probes.o"], check=True)
    parts = [SOLVER / "solver.cpp", folder / "probes.o", "-o", folder / "solver", "-pthread", "-llttng-ust", "-ldl"]
    subprocess.run(["g++", "-std=c++20", *flags, *parts], check=True)
    return record(folder, [folder / "solver"], "count:solver:begin")


SPAN = "span:solver:begin:solver:end"
REQUEST = "span:solver:asked[id]:solver:answered[request]"


def take(
    recorded: Recorded, text: str, window: Bounds | None = None, states: pl.DataFrame | None = None
) -> Measurement:
    """Measures a trial that takes all of the recording by default."""
    first, last = window or (recorded.log[0].before_ns, recorded.log[-1].after_ns)
    trial = TrialSpan(
        goal_id="a" * 32,
        scenario="baseline",
        index=0,
        begin_ns=first,
        phases={Phase.GOAL_SENT: first, Phase.RESULT: last},
        plan=None,
        end_ns=last,
        error_code=1,
    )
    trace, names, model = recorded.read(text), own_events(specs(text)), empty_model()
    (spec,) = specs(text)
    found = extract_trial(
        trial,
        model,
        stamps_ns={},
        nominal_period_ns=1,
        catalogue=catalogue_of((), [spec], built_in={}),
        trace_flow=TraceFlow(lambda: pytest.fail("no flow is needed"), OwnEvents(trace, names, states=states)),
    )
    return found.measurements[spec.name]


def pairs_by_stack(events: Sequence[Logged], begin: str, key: str) -> tuple[list[tuple[Logged, Logged]], int, int]:
    """Pairs, begins without an end and ends without a begin, one event after the other."""
    opened: dict[int, list[Logged]] = {}
    pairs, without_begin = [], 0
    for each in events:
        stack = opened.setdefault(getattr(each, key), [])
        if each.name == begin:
            stack.append(each)
        elif stack:
            pairs.append((stack.pop(), each))
        else:
            without_begin += 1
    return pairs, sum(map(len, opened.values())), without_begin


def bounds_of(pairs: Sequence[tuple[Logged, Logged]]) -> list[Bounds]:
    """Shortest and longest duration of each pair."""
    return [(end.before_ns - begin.after_ns, end.after_ns - begin.before_ns) for begin, end in pairs]


def assert_statistics(recorded: Recorded, text: str, bounds: Sequence[Bounds]) -> None:
    """Each statistic lies between those of the shortest and of the longest durations."""
    for statistic, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        found = take(recorded, f"{text}:{statistic}").number
        assert found is not None
        low, high = (np.quantile([each[side] for each in bounds], share) / 1e6 for side in (0, 1))
        assert low <= found <= high
        assert found > 0


def pairs_of(own: OwnEvents, text: str) -> list[Bounds]:
    """Begins and ends of a metric's spans."""
    (spec,) = specs(text)
    return own.spans(*spec.events).pairs.select("begin_ns", "end_ns").rows()


def test_spans_on_a_thread_are_those_of_the_programs_log(solver):
    pairs, without_end, without_begin = pairs_by_stack(solver.of("begin", "end"), "begin", "thread")
    assert_statistics(solver, SPAN, bounds_of(pairs))
    assert take(solver, SPAN).details == {
        "spans": len(pairs),
        WITHOUT_END: without_end,
        WITHOUT_BEGIN: without_begin,
    }
    assert (without_end, without_begin) == (10, 1)
    found = pairs_of(OwnEvents(solver.read(SPAN), own_events(specs(SPAN))), SPAN)
    for begin, end in pairs:
        matching = [
            (first, last)
            for first, last in found
            if begin.before_ns <= first <= begin.after_ns and end.before_ns <= last <= end.after_ns
        ]
        assert len(matching) == 1


def test_parts_of_a_span_are_the_states_of_its_thread(solver):
    """All of it is running; only spans on one thread have parts."""
    trace = solver.read(SPAN)
    whole = {"begin_ns": solver.log[0].before_ns, "end_ns": solver.log[-1].after_ns, "state": "running"}
    tids = np.unique(trace.events["solver:begin"]["vtid"]).tolist()
    rows = [{"host": trace.traces[0].host, "tid": tid, **whole} for tid in tids]
    states = pl.DataFrame(rows).with_columns(pl.col("state").cast(build_thread_states(trace).schema["state"]))
    metric, found = declare(specs(SPAN)[0]), take(solver, SPAN, states=states)
    expected = {"running": pytest.approx(found.number), "runnable": 0, "blocked": 0, "unknown": 0}
    assert parts_of(metric, found) == expected
    assert parts_of(metric, take(solver, REQUEST, states=states)) == {}


def test_spans_between_threads_are_matched_by_fields_of_other_names_and_types(solver):
    pairs, without_end, without_begin = pairs_by_stack(solver.of("asked", "answered"), "asked", "id")
    assert {(begin.thread, end.thread) for begin, end in pairs} == {(0, 1)}
    assert_statistics(solver, REQUEST, bounds_of(pairs))
    assert take(solver, REQUEST).details == {"spans": 27, WITHOUT_END: 3, WITHOUT_BEGIN: 3}
    assert (len(pairs), without_end, without_begin) == (27, 3, 3)


def test_intervals_are_those_of_each_robot(solver):
    ticks = [[each for each in solver.of("tick") if each.id == robot] for robot in (0, 1)]
    bounds = bounds_of([pair for own in ticks for pair in pairwise(own)])
    assert_statistics(solver, "interval:solver:tick[robot]", bounds)
    assert take(solver, "interval:solver:tick").details == {"intervals": len(solver.of("tick")) - 1}


def test_values_and_counts_are_exact(solver):
    costs = [each.value for each in solver.of("end")]
    for statistic, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        assert take(solver, f"value:solver:end:cost:{statistic}").number == np.quantile(costs, share)
    assert take(solver, "count:solver:retry").number == len(solver.of("retry")) > 0
    ids = [each.id for each in solver.of("asked")]
    assert take(solver, "value:solver:asked:id:max").number == max(ids)


def test_trial_has_what_ended_in_it(solver):
    """A border in the middle of the answers: what was asked before it and answered after it counts after it."""
    answers = solver.of("answered")
    border = answers[15].before_ns
    first, last = solver.log[0].before_ns, solver.log[-1].after_ns
    before, after = (take(solver, REQUEST, window) for window in ((first, border), (border, last)))
    assert before.details == {"spans": 12, WITHOUT_END: 3, WITHOUT_BEGIN: 3}
    assert after.details == {"spans": 15}
    assert before.number < after.number
    late = (answers[-1].after_ns, last)
    assert take(solver, REQUEST, late).value == Missing(f"no span of {REQUEST[5:]} ended in the trial")
    assert take(solver, "count:solver:retry", late).number == 0
    assert take(solver, "value:solver:asked:id", late).value == Missing("no solver:asked in the trial")


def test_only_unmatched_events_are_a_reason(solver):
    reversed_span = "span:solver:answered[request]:solver:asked[id]"
    reason = take(solver, reversed_span).value.reason
    assert reason == f"no span of {reversed_span[5:]} ended in the trial: 30 begins without end, 30 ends without begin"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("count:solver:retyr", "the trace has no event solver:retyr: did you mean 'solver:retry'?"),
        (
            "span:other:one:other:two",
            "the trace has no event other:one: known are: solver:answered, solver:asked, solver:begin, solver:end, "
            "solver:retry, solver:tick",
        ),
        ("value:solver:end:costs", "solver:end has no field 'costs': did you mean 'cost'?"),
        ("span:solver:asked[id]:solver:answered[id]", "solver:answered has no field 'id': known are: request"),
        ("value:solver:end:status", "'status' of solver:end is no number, but 'good'"),
    ],
)
def test_unknown_event_and_field_are_reported_with_the_nearest(solver, text, reason):
    assert take(solver, text).value == Missing(reason)


def test_unknown_event_of_a_known_provider_is_refused(solver):
    def refuse(text: str) -> None:
        refuse_unknown_events(specs(text), OwnEvents(solver.read(text), own_events(specs(text))))

    for text, reason in (
        ("count:solver:retyr", "did you mean 'solver:retry'?"),
        ("value:solver:end:costs", "did you mean 'cost'?"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            refuse(text)
        assert refused.value.message.startswith(f"metric '{text}")
        assert reason in refused.value.message
    refuse("count:solver:retry")
    refuse("count:unseen:event")  # a program may still begin, or write it as text


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "available")
def test_spans_and_values_are_those_of_babeltrace2(solver):
    opinion = read_with_babeltrace(solver.trace)
    assert opinion is not None
    events = [each for each in opinion.events if each["name"].startswith("solver:")]
    assert len(events) == len(solver.log)
    own = OwnEvents(solver.read(SPAN, REQUEST), own_events(specs(SPAN, REQUEST)))
    for text in (SPAN, REQUEST):
        assert sorted(pairs_of(own, text)) == sorted(_spans_by_stack(events, *specs(text)[0].events))


def _spans_by_stack(events, begin, end) -> Iterator[Bounds]:
    opened: dict[object, list[int]] = {}
    for each in events:
        for name, (field,) in (begin, end):
            if each["name"] != name:
                continue
            key = {**each["context"], **each["payload"]}[field]
            if name == begin[0]:
                opened.setdefault(key, []).append(each["ns"])
            elif opened.get(key):
                yield opened[key].pop(), each["ns"]


def test_spans_of_callbacks_are_their_runs(golden):
    """Nested callbacks of a recorded trace of ROS 2, in which the model pairs begins and ends in another way."""
    trace = read_trace(golden("pipeline_multi_links"))
    text = "span:ros2:callback_start:ros2:callback_end"
    runs = build_execution(trace).callback_runs.drop_nulls("end_ns").sort("end_ns", "start_ns")
    found = sorted((end_ns, begin_ns) for begin_ns, end_ns in pairs_of(OwnEvents(trace, own_events(specs(text))), text))
    assert found == runs.select("end_ns", "start_ns").rows()
    assert len(found) > 100


PYTHON = """
import sys, threading, time
sys.path.insert(0, {folder!r})
from tracepoint import tracepoint

lines, lock = [], threading.Lock()

def emit(event, thread, number=0, value=0.0, **fields):
    before = time.monotonic_ns()
    tracepoint(event, **fields)
    after = time.monotonic_ns()
    with lock:
        lines.append(f"{{event.partition(':')[2]}} {{thread}} {{number}} {{value}} {{before}} {{after}}")

def work(thread):
    for step in range(25):
        emit("py:begin", thread)
        if step % 5 == 4:
            continue
        sum(range(1000))
        emit("py:end", thread, value=step / 4, cost=step / 4, status="100%")
        emit("py:asked", thread, number=100 * thread + step, id=100 * thread + step)

threads = [threading.Thread(target=work, args=[number]) for number in (0, 1)]
for each in threads: each.start()
for each in threads: each.join()
for step in range(24, -1, -1):
    emit("py:answered", 2, number=step, id=step)
print(*lines, sep="\\n")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Recorded:
    """A recording of a program in Python, with the function that the how-to page shows."""
    folder = tmp_path_factory.mktemp("python")
    (shown,) = {
        block.text
        for each in parse_page("", HOW_TO.read_text("utf-8"))
        for block in each.blocks
        if block.file == "tracepoint.py"
    }
    (folder / "tracepoint.py").write_text(shown, "utf-8")
    return record(folder, [sys.executable, "-c", PYTHON.format(folder=str(folder))], "count:py:begin")


def test_python_events_have_the_times_and_fields_of_the_programs_log(python):
    pairs, without_end, _ = pairs_by_stack(python.of("begin", "end"), "begin", "thread")
    assert_statistics(python, "span:py:begin:py:end", bounds_of(pairs))
    assert take(python, "span:py:begin:py:end").details == {"spans": len(pairs), WITHOUT_END: without_end}
    assert (len(pairs), without_end) == (40, 10)
    answered, without_end, without_begin = pairs_by_stack(python.of("asked", "answered"), "asked", "id")
    assert_statistics(python, "span:py:asked[id]:py:answered[id]", bounds_of(answered))
    assert (len(answered), without_end, without_begin) == (20, 20, 5)
    costs = [each.value for each in python.of("end")]
    assert take(python, "value:py:end:cost:p90").number == np.quantile(costs, 0.9)
    assert take(python, "count:py:begin").number == 50


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("count:py:begn", "the trace has no event py:begn: did you mean 'py:begin'?"),
        ("value:py:end:costs", "py:end has no field 'costs': did you mean 'cost'?"),
        ("value:py:end:status", "'status' of py:end is no number, but '100%'"),
    ],
)
def test_unknown_python_event_and_field_are_reported_with_the_nearest(python, text, reason):
    assert take(python, text).value == Missing(reason)
    refuse_unknown_events(specs(text), OwnEvents(python.read(text), own_events(specs(text))))  # it may come later


def test_negative_value_cannot_be_compared(tmp_path):
    code = "from ctypes import *; PyDLL('liblttng-ust.so.1').lttng_ust__tracef(b'%s', b'py:gain db=-3')"
    recorded = record(tmp_path, [sys.executable, "-c", code + "; print('gain 0 0 0 0 0')"], "count:py:gain")
    invalid = Invalid("'db' of py:gain is -3, and only 0 or more can be compared")
    assert take(recorded, "value:py:gain:db", (0, 2**62)).value == invalid


@pytest.mark.skipif(shutil.which("lttng-gen-tp") is None, reason="lttng-gen-tp is not installed")
def test_provider_of_lttng_gen_tp_with_numbers_that_are_none_or_huge(tmp_path):
    """Also an integer that is signed in one event only, and a field with a name that tables have for themselves."""
    sources = ROOT / "tests/native/numbers"
    makes = ["lttng-gen-tp", "-o", "numbers_tp.h", "-o", "numbers_tp.c", sources / "numbers.tp"]
    subprocess.run(makes, check=True, cwd=tmp_path)
    parts = [sources / "numbers.c", "numbers_tp.c", "-o", "numbers", "-llttng-ust", "-ldl"]
    subprocess.run(["gcc", f"-I{tmp_path}", *parts], check=True, cwd=tmp_path)
    recorded = record(tmp_path, [tmp_path / "numbers"], "count:numbers:one")
    found = {
        text: take(recorded, text, (0, 2**62))
        for text in (
            "value:numbers:one:value:max",
            "value:numbers:one:value:p50",
            "value:numbers:one:count:max",
            "value:numbers:one:cpu_id:max",
            "count:numbers:one",
            "span:numbers:one[count]:numbers:other[count]",
        )
    }
    assert [each.number for each in found.values()][:-1] == [sys.float_info.max, 2, 2.0**64, 2.0**64, 6]
    assert found["value:numbers:one:value:max"].details == {"values": 3, "without_value": 3}
    assert found["value:numbers:one:count:max"].details == {"values": 6}
    (_, span) = found.popitem()
    assert span.details == {"spans": 1, WITHOUT_END: 5}


def test_events_of_ros_are_not_enabled_twice():
    assert recorded_for(specs("count:ros2:callback_start", "count:a:b", "count:a:c")) == ("a:*", "lttng_ust_tracef:*")
    assert recorded_for(specs("cpu:*", "rate:/scan")) == ()
