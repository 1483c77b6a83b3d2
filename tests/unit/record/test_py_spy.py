"""py-spy with real processes."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from pytest_ldos.base.errors import ProfilingFailed, Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.record import choose as choose_profiler
from pytest_ldos.record import py_spy
from pytest_ldos.record.choose import divide_processes, resolve_profiler
from pytest_ldos.record.py_spy import PySpyProfiler, py_spy_available
from pytest_ldos.scenario.words import ProfilerKind
from tests.builders.busy import busy_process, run_for
from tests.builders.forbidden import forbid
from tests.unit.record.test_perf import ABLE as PERF

ABLE = py_spy_available()
pytestmark = pytest.mark.skipif(not ABLE.ok, reason=ABLE.reason or "py-spy can sample")


@pytest.fixture
def sleeper():
    """A process that runs no Python."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def test_python_functions_are_sampled_and_other_processes_noted(tmp_path, sleeper):
    profiler = PySpyProfiler(tmp_path, rate_hz=200)
    with busy_process() as process:
        profiler.start({process.pid: "worker", sleeper.pid: "sleeper"})
        run_for(process, 0.15)
        sampled = profiler.stop()
    assert {stack[0] for stack in sampled.profile.counts} == {"worker"}
    assert any(frame.startswith("innermost (") for stack in sampled.profile.counts for frame in stack)
    assert any(note.startswith("sleeper was not sampled: ") for note in sampled.notes)


def test_without_any_python_there_is_no_profile(tmp_path, sleeper):
    profiler = PySpyProfiler(tmp_path, rate_hz=100)
    with pytest.raises(ProfilingFailed, match="py-spy samples no process: sleeper was not sampled"):
        profiler.start({sleeper.pid: "sleeper"})


def test_killed_py_spy_is_reported(tmp_path):
    profiler = PySpyProfiler(tmp_path, rate_hz=100)
    with busy_process() as process:
        profiler.start({process.pid: "worker"})
        (child,) = profiler._group.children
        os.kill(child.pid, signal.SIGKILL)
        child.process.wait()
        with pytest.raises(ProfilingFailed, match=r"not sampled to the end: .*SIGKILL"):
            profiler.stop()


@pytest.mark.skipif(not PERF.ok, reason="perf cannot sample here anyway")
def test_py_spy_replaces_forbidden_perf(tmp_path, monkeypatch):
    assert resolve_profiler(ProfilerKind.AUTO) is ProfilerKind.PERF
    forbid("perf", tmp_path, "perf_event_open")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert resolve_profiler(ProfilerKind.AUTO) is ProfilerKind.PY_SPY


def test_processes_are_divided_by_language(sleeper):
    with busy_process() as process:
        processes = {process.pid: "worker", sleeper.pid: "sleeper", 2**22 - 1: "ended"}
        assert divide_processes(ProfilerKind.BOTH, processes) == {
            ProfilerKind.PY_SPY: {process.pid: "worker"},
            ProfilerKind.PERF: {sleeper.pid: "sleeper", 2**22 - 1: "ended"},
        }
        assert divide_processes(ProfilerKind.PERF, processes) == {ProfilerKind.PERF: processes}


@pytest.mark.parametrize(
    ("perf", "spy", "resolved"),
    [
        (True, True, ProfilerKind.BOTH),
        (True, False, ProfilerKind.PERF),
        (False, True, ProfilerKind.PY_SPY),
    ],
)
def test_both_profilers_are_reduced_to_those_that_can_be_used(monkeypatch, perf, spy, resolved):
    for kind, able in ((ProfilerKind.PERF, perf), (ProfilerKind.PY_SPY, spy)):
        monkeypatch.setitem(choose_profiler._AVAILABLE, kind, lambda able=able: Availability(able))
    assert resolve_profiler(ProfilerKind.BOTH) is resolved


def test_without_profiler_both_reasons_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(py_spy.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        resolve_profiler(ProfilerKind.AUTO)
    assert "perf not found; py-spy not found" in caught.value.message
    assert "linux-perf" in caught.value.remedy
    assert "pytest-ldos[profile]" in caught.value.remedy
    assert choose_profiler.ProfilerKind.AUTO not in choose_profiler._AVAILABLE
