"""Calls, faults and waits in a control loop and a callback: a program's own counts of what it planted are the truth."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, Phase
from pytest_ldos.base.series import Missing
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.metrics.evidence import IN_RUNS, RUNS, RUNS_WITH, pids_of
from pytest_ldos.measure.metrics.extract import extract_trial
from pytest_ldos.measure.metrics.model import PART, Measurement, TraceFlow
from pytest_ldos.measure.metrics.own_events import own_events, recorded_for
from pytest_ldos.record import lttng
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.record.perf import perf_available
from pytest_ldos.scenario.metrics import MetricSpec, parse_metrics, place_of
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.execution.observed import OwnEvents
from tests.builders.needs import needs_lttng
from tests.builders.pages import ROOT

NATIVE = ROOT / "pytest_ldos/robot/dds/native"
CALLBACK = "/loop: timer of 10 ms"
CALLS = ("allocations:control loop", "frees:control loop", "locks:control loop", f"allocations:{CALLBACK}")
SAMPLED = ("faults:control loop", "blocked:control loop", f"faults:{CALLBACK}")


def specs(*texts: str) -> tuple[MetricSpec, ...]:
    return parse_metrics(list(texts), BUILT_IN_PATHS)


@dataclass(frozen=True)
class Recorded:
    trace: Path
    planted: Mapping[str, int]  # by kind, and "cycles"

    @property
    def model(self) -> ExecutionModel:
        return build_execution(read_trace(self.trace, events=NEEDED_EVENTS))

    def take(self, text: str) -> Measurement:
        """Measures a trial that begins with the fourth cycle, when the recording of calls has begun."""
        model, names = self.model, own_events(specs(text))
        first, last = int(model.cycle_times_ns[3]), int(model.cycle_times_ns[-1])
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
        found = extract_trial(
            trial,
            model,
            stamps_ns={},
            nominal_period_ns=1,
            catalogue=catalogue_of((), specs(text), built_in={}),
            trace_flow=TraceFlow(
                lambda: pytest.fail("no flow"), OwnEvents(read_trace(self.trace, events=names), names)
            ),
        )
        return found.measurements[specs(text)[0].name]


def record(folder: Path, program: Path, texts: Sequence[str], *launcher: str) -> Recorded:
    """Records the program as a run does, or started by another launcher."""
    recorder = choose_recorder(folder / "trace", folder, events=recorded_for(specs(*texts)))
    recorder.start()
    try:
        environment = {**os.environ, **recorder.environment}
        command = [*recorder.prefix, *launcher, str(program)]
        if launcher == ("--without",):
            command = [*recorder.prefix[: recorder.prefix.index("sh")], str(program)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            recorder.pause()
            model = build_execution(read_trace(recorder.directory, events=NEEDED_EVENTS))
            recorder.resume()
            recorder.follow(pids_of(specs(*texts), model, is_required=True))
            process.stdin.write("go\n")
            process.stdin.flush()
            names = ("cycles", "allocations", "frees", "faults", "blocked", "locks")
            planted = dict(zip(names, map(int, process.stdout.readline().split()), strict=True))
            assert recorder.pause().discarded_events == 0
            process.stdin.write("end\n")
    finally:
        recorder.stop()
    return Recorded(recorder.directory, planted)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("loop")
    flags = ["-O2", "-g", "-Wno-unused-function", f"-I{NATIVE}"]
    subprocess.run(["gcc", *flags, "-c", NATIVE / "providers.c", "-o", folder / "providers.o"], check=True)
    parts = [ROOT / "tests/native/loop/loop.cpp", folder / "providers.o", "-o", folder / "loop"]
    subprocess.run(["g++", "-std=c++20", *flags, *parts, "-pthread", "-llttng-ust", "-ldl"], check=True)
    return folder / "loop"


def why_unavailable(texts: Sequence[str]) -> str:
    events = recorded_for(specs(*texts))
    try:
        lttng.preloading(events)
        if texts is SAMPLED:
            perf_available().demand()
            if os.geteuid():
                return "perf records the kernel's tracepoints for root"
    except LdosError as error:
        return error.summary
    return ""


def recorded(program: Path, folder: Path, texts: Sequence[str]) -> Recorded:
    if why := why_unavailable(texts):
        pytest.skip(why)
    return record(folder, program, texts)


@pytest.fixture(scope="module")
def calls(program, tmp_path_factory) -> Recorded:
    return recorded(program, tmp_path_factory.mktemp("calls"), CALLS)


@pytest.fixture(scope="module")
def sampled(program, tmp_path_factory) -> Recorded:
    return recorded(program, tmp_path_factory.mktemp("sampled"), SAMPLED)


def parts_of(found: Measurement) -> list[str]:
    return [name.removeprefix(PART) for name in found.details if name.startswith(PART)]


@needs_lttng
@pytest.mark.parametrize(
    ("text", "function"),
    [
        (CALLS[0], "planted_allocation()"),
        (CALLS[1], "default_delete"),
        (CALLS[2], "planted_lock()"),
        (CALLS[3], "planted_allocation()"),
    ],
)
def test_calls_are_those_that_the_program_planted(calls, text, function):
    """The first free is of what was allocated before the recording."""
    found, expected = calls.take(text), calls.planted[text.partition(":")[0]]
    assert found.details[IN_RUNS] == found.details[RUNS_WITH] == expected > 0
    assert found.details[RUNS] == calls.planted["cycles"]
    assert found.number == expected / calls.planted["cycles"]
    (by,) = parts_of(found)
    assert function in by
    assert by.endswith(" (loop)")


@needs_lttng
@pytest.mark.parametrize("text", SAMPLED)
def test_faults_and_waits_are_those_that_the_program_planted(sampled, text):
    """Other faults and waits can occur on a busy machine; a contended lock is a wait, too. The loop's own is left out."""
    found, kind = sampled.take(text), text.partition(":")[0]
    expected = sampled.planted[kind] + (sampled.planted["locks"] if kind == "blocked" else 0)
    assert found.details[IN_RUNS] >= expected
    assert found.details[RUNS] == sampled.planted["cycles"]
    function = {"faults": "planted_fault", "blocked": "poll"}[kind]
    assert kind == "faults" or any("lock" in by for by in parts_of(found)), found
    planted = sum(found.details[f"{PART}{by}"] for by in parts_of(found) if function in by)
    assert planted * found.details[RUNS] == pytest.approx(sampled.planted[kind])


@needs_lttng
@pytest.mark.parametrize(
    ("launcher", "reason"),
    [
        (("env", "--unset=LD_PRELOAD"), "no call in process"),
        (("--without",), "was started without liblttng-ust-libc-wrapper"),
    ],
)
def test_process_without_the_wrapper_is_not_0(calls, program, tmp_path, launcher, reason):
    found = record(tmp_path, program, CALLS[:1], *launcher).take(CALLS[0])
    assert isinstance(found.value, Missing)
    assert reason in found.value.reason


@needs_lttng
def test_process_that_is_not_followed_is_not_0(calls, sampled):
    for recorded, other in ((calls, SAMPLED), (sampled, CALLS)):
        for text in other:
            assert isinstance(recorded.take(text).value, Missing)


@needs_lttng
@pytest.mark.parametrize(
    ("missing", "remedy"), [("liblttng-ust-absent.so.1", "LTTng-UST"), ("libldos_absent.so.1", "pytest-ldos again")]
)
def test_missing_library_is_refused_before_anything_starts(tmp_path, monkeypatch, missing, remedy):
    is_ours = missing.startswith("libldos")
    monkeypatch.setattr(lttng, "_CALLERS", missing if is_ours else lttng._CALLERS)
    monkeypatch.setitem(lttng.WRAPPERS, "lttng_ust_libc:*", "liblttng-ust-libc-wrapper.so.1" if is_ours else missing)
    with pytest.raises(Unavailable, match=f"^{missing} cannot be preloaded") as refused:
        choose_recorder(tmp_path / "trace", tmp_path, events=recorded_for(specs(CALLS[0])))
    assert remedy in refused.value.remedy
    assert not (tmp_path / "trace").exists()


@needs_lttng
def test_events_that_perf_may_not_record_are_refused_before_anything_starts(tmp_path, monkeypatch):
    """As an ordinary user's perf, that may record page faults and no waits."""
    script = """#!/bin/sh\ncase "$*" in *sched_switch*) echo 'Error: No permissions to read sched_switch' >&2; exit 129;; esac\n"""
    (tmp_path / "perf").write_text(script)
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    faults, waits = (recorded_for(specs(f"{kind}:control loop")) for kind in ("faults", "blocked"))
    with pytest.raises(Unavailable, match="No permissions to read sched_switch") as refused:
        choose_recorder(tmp_path / "trace", tmp_path, events=waits)
    assert refused.value.remedy == "run it as root, or leave the metric out"
    assert choose_recorder(tmp_path / "trace", tmp_path, events=faults)
    assert not (tmp_path / "trace").exists()


@needs_lttng
def test_place_that_never_ran_is_refused_with_the_nearest(calls):
    with pytest.raises(ConfigurationError, match="no '/loop: timer of 20 ms' has run so far") as refused:
        pids_of(specs("allocations:/loop: timer of 20 ms"), calls.model, is_required=True)
    assert CALLBACK in refused.value.remedy


def test_nothing_is_preloaded_unless_asked(tmp_path):
    assert lttng.preloading(recorded_for(specs("count:my_pkg:tick"))) == ()


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("allocations:control loop", "control loop", True),
        ("allocations:control loop:any", "control loop", False),
        (f"blocked:{CALLBACK}", CALLBACK, True),
        ("faults:/node: /topic:any", "/node: /topic", False),
        ("faults:move_group", "", False),
        ("cpu:move_group", "", False),
    ],
)
def test_place_and_expectation(text, place, expected):
    (spec,) = specs(text)
    assert (spec.place, str(spec), place_of(text)) == (place, text, (place, expected))
    assert not place or not spec.process


def test_metric_without_a_place_is_refused():
    with pytest.raises(ConfigurationError, match="names neither the control loop nor a callback"):
        specs("allocations:move_group")
