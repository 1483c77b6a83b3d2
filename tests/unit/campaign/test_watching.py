"""Profiling real processes during a measurement, and failures of the tools."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.watching import (
    DISTORTION,
    Drawings,
    Seen,
    Switches,
    Watching,
    describe_switches,
    measure_watched,
    with_trace,
    write_watched,
    write_watched_difference,
)
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.plugin.progress import TrialWatch
from pytest_ldos.record.profiles import FoldedStacks, read_folded
from pytest_ldos.record.py_spy import py_spy_available
from pytest_ldos.record.strace import SyscallCounter, parse_syscalls
from pytest_ldos.scenario.model import StackSpec, WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
from tests.builders.busy import busy_process, ready_process, run_for, suspend
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.forbidden import forbid
from tests.builders.kernel import EPOCH_NS, PREEMPTED, KernelTrace
from tests.builders.studies import study
from tests.builders.watchers import needs_watchers
from tests.fakes.rig import open_fake_rig
from tests.unit.record.profiles.test_syscalls import TABLE as SYSCALL_TABLE

pytestmark = needs_watchers
DRAWN = Drawings(lambda profile, title, notes: f"{title}: {profile.samples}", lambda difference, title: title)


@contextmanager
def rig_of(pid: int, tmp_path: Path, monkeypatch):
    """A fake stack with a real process."""
    folder = ScenarioFolder(tmp_path / "run")
    folder.logs.mkdir(parents=True)
    with open_fake_rig(StackSpec(), folder) as rig:
        monkeypatch.setattr(rig.stack, "pids", lambda: [pid])
        yield rig


@pytest.mark.acceptance
def test_stack_is_sampled_and_its_calls_are_counted(tmp_path, monkeypatch):
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF, rate_hz=499, syscalls=True))
    assert watching.tools == "perf at 499 Hz and strace"
    assert watching.distortion == DISTORTION
    with busy_process(gently=True) as process, rig_of(process.pid, tmp_path, monkeypatch) as rig:
        with watching.attached_to(rig):
            run_for(process, 0.2)
        rig.recorder.pause()
        watching.read(rig, trials=4)
    assert watching.profile.samples > 0
    assert "clock_nanosleep" in {each.name for each in watching.syscalls}
    notes = list(write_watched(watching, tmp_path / "out", DRAWN, title="it"))
    assert read_folded(tmp_path / "out/start-1.folded") == watching.profile
    assert json.loads((tmp_path / "out/profile.speedscope.json").read_text())["name"] == "it"
    assert (tmp_path / "out/flame.svg").read_text() == f"it: {watching.profile.samples}"
    assert "clock_nanosleep" in (tmp_path / "out/syscalls.txt").read_text()
    assert any("a trial (4)" in note and "under strace" in note for note in notes), notes


def test_killed_profiler_loses_only_the_profile(tmp_path, monkeypatch):
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF))
    with busy_process() as process, rig_of(process.pid, tmp_path, monkeypatch) as rig, watching.attached_to(rig):
        (perf,) = [int(pid) for pid in _children() if "perf" in _name(pid)]
        os.kill(perf, signal.SIGKILL)
        _await_death(perf)
    assert not watching.profile
    (note_text,) = [note for note in watching.notes if note.startswith("no profile: ")]
    assert "SIGKILL" in note_text
    (seen,) = watching.seen
    assert seen.switches is not None


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()


def _name(pid: str) -> str:
    return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()


def _await_death(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_forbidden_tools_are_noted_and_the_measurement_continues(tmp_path, monkeypatch):
    forbid("perf", tmp_path / "bin", "perf_event_open")
    forbid("strace", tmp_path / "bin", "ptrace")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF, syscalls=True))
    with busy_process() as process, rig_of(process.pid, tmp_path, monkeypatch) as rig, watching.attached_to(rig):
        pass
    notes = list(write_watched(watching, tmp_path / "out", DRAWN, title="it"))
    assert any(note.startswith("no profile: perf may not sample here: ") and " → " in note for note in notes), notes
    assert any(note.startswith("system calls are not counted: strace may not trace here: ") for note in notes), notes
    assert (watching.tools, watching.distortion) == ("", "")
    assert not (tmp_path / "out").exists()


def test_ended_processes_do_not_end_trials(tmp_path, monkeypatch):
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF))
    with rig_of(4_194_303, tmp_path, monkeypatch) as rig:
        with watching.attached_to(rig):
            pass
        rig.recorder.pause()
        watching.read(rig, trials=1)
    assert list(write_watched(watching, tmp_path / "out", DRAWN, title="it")) == [
        "no profile: none of the processes runs any more"
    ]


def test_nothing_is_profiled_by_default(tmp_path):
    watch = TrialWatch(WatchSpec(), tmp_path, "it")
    assert watch.of(Role.HEAD) is None
    assert watch.write() == []
    assert not list(tmp_path.iterdir())


@pytest.mark.acceptance
def test_empty_profile_is_noted(tmp_path, monkeypatch):
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF))
    with busy_process() as process, rig_of(process.pid, tmp_path, monkeypatch) as rig:
        suspend(process)
        with watching.attached_to(rig):
            pass
    assert any("there are no samples" in note for note in watching.notes)


@pytest.mark.acceptance
def test_study_has_its_calls_and_is_marked(tmp_path):
    def measure():
        with busy_process(gently=True) as process:
            run_for(process, 0.15)
        return study()

    found = measure_watched(WatchSpec(profile=True, rate_hz=499, syscalls=True), tmp_path, DRAWN, measure)
    (table,) = [each for each in found.tables if each.name == "system_calls"]
    assert "clock_nanosleep" in {row[0] for row in table.rows}, "children are followed"
    assert found.distortion == DISTORTION == found.notes[0]
    assert "strace" in found.watched
    assert study().notes[0] in found.notes
    assert (tmp_path / "flame.svg").is_file()


def test_missing_drawing_functions_are_tolerated(tmp_path):
    def absent(*_):
        raise Unavailable("no htpy", remedy="install it")

    watching = Watching(WatchSpec())
    watching.seen.append(Seen(tmp_path, profile=FoldedStacks({("p",): 1})))
    notes = list(write_watched(watching, tmp_path, Drawings(absent, absent), title="it"))
    assert any(note.startswith("flame.svg is not there: no htpy") for note in notes)
    assert (tmp_path / "start-1.folded").is_file()


def test_messages_are_counted_and_kernel_events_are_preferred(tmp_path):
    kernel = KernelTrace()
    kernel.switch(10, 0, 0, 101)
    kernel.switch(20, 0, 101, 102, state=PREEMPTED)
    kernel.switch(30, 0, 102, 101)
    kernel.switch(40, 0, 101, 0)
    kernel.write(tmp_path)
    found = Switches(SwitchCounts(9, 9, 9), 1.0, "/proc")
    own = with_trace(found, tmp_path, (EPOCH_NS, EPOCH_NS + 100), [os.getpid()])
    assert own.source == "kernel events"
    assert own.counts == SwitchCounts(0, 0, 0), "none of the threads is ours"


def test_messages_of_loads_are_not_counted(tmp_path):
    """A flood is also recorded; only messages of the processes with counted switches count."""
    publish = Event("ros2:rmw_publish", 1, {"_message": Int(64)})
    stack = [Record(publish, time, {"_message": 1}, {"_vpid": 7}) for time in range(10, 40, 10)]
    flood = [Record(publish, time, {"_message": 1}, {"_vpid": 8}) for time in range(10, 90)]
    records = sorted([*stack, *flood], key=lambda record: record.time)
    builder = TraceBuilder([publish], context={"_vpid": Int(32, signed=True)}, clock_offset=EPOCH_NS)
    builder.write(tmp_path, {"ch_0": [Packet(records)]})
    counted = Switches(SwitchCounts(6, 3, 0), 1.0, "/proc")
    found = with_trace(counted, tmp_path, (EPOCH_NS, EPOCH_NS + 100), [7])
    assert found.messages == 3
    assert describe_switches([found]).endswith("2 / 1 / 0 a message (3)")


def test_interrupt_during_the_second_tools_start_ends_the_first(tmp_path, monkeypatch):
    def interrupted(self, pids):
        raise KeyboardInterrupt

    monkeypatch.setattr(SyscallCounter, "start", interrupted)
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF, rate_hz=499, syscalls=True))
    with busy_process() as process, rig_of(process.pid, tmp_path, monkeypatch) as rig:
        with pytest.raises(KeyboardInterrupt), watching.attached_to(rig):
            pytest.fail("nothing is measured")
        assert not [pid for pid in _children() if "perf" in _name(pid)]


def test_refused_tools_are_not_listed(tmp_path, monkeypatch):
    """A refused tool does not affect trials, as if it had not been requested."""
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF, syscalls=True))
    assert (watching.tools, watching.distortion) == ("perf at 99 Hz and strace", DISTORTION)
    with rig_of(4_194_303, tmp_path, monkeypatch) as rig, watching.attached_to(rig):
        pass
    assert (watching.tools, watching.distortion) == ("", "")


def test_unwritable_files_are_noted_and_the_measurement_continues(tmp_path):
    (tmp_path / "file").touch()
    watching = Watching(WatchSpec())
    calls = parse_syscalls(SYSCALL_TABLE)
    watching.seen.append(Seen(tmp_path, profile=FoldedStacks({("p",): 1}), syscalls=calls))
    notes = list(write_watched(watching, tmp_path / "file/out", DRAWN, title="it"))
    for name in ("start-1.folded", "profile.speedscope.json", "flame.svg", "syscalls.txt"):
        assert any(re.match(rf"{name} is not there: \S+ cannot be written: Not a directory", note) for note in notes), (
            notes
        )
    with pytest.raises(ConfigurationError, match="cannot be written: Not a directory"):
        measure_watched(WatchSpec(profile=True), tmp_path / "file/out", DRAWN, study)


def test_full_disk_loses_only_the_files(tmp_path):
    """Simulated by a file size limit: Python ignores the signal and gets an error, as on a full disk."""
    profile = FoldedStacks({(f"{number}",): 1 for number in range(10_000)})
    watching = Watching(WatchSpec())
    watching.seen.append(Seen(tmp_path, profile=profile))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        notes = list(write_watched(watching, tmp_path / "out", DRAWN, title="it"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert any(
        re.match(r"start-1\.folded is not there: \S+ cannot be written: File too large", note) for note in notes
    ), notes
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"flame.svg"}, "and nothing is left half"


@pytest.mark.acceptance
def test_profiler_with_a_full_disk_is_reported(tmp_path, monkeypatch):
    real = shutil.which("perf")
    (tmp_path / "perf").write_text(f"#!/bin/sh\ntrap '' XFSZ\nulimit -f 64\nexec {real} \"$@\"\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    watching = Watching(WatchSpec(profile=True, profiler=ProfilerKind.PERF, rate_hz=999))
    with busy_process() as process, rig_of(process.pid, tmp_path, monkeypatch) as rig, watching.attached_to(rig):
        (perf,) = [int(pid) for pid in _children() if "perf" in _name(pid)]
        _await_death(perf)
    (note_text,) = [note for note in watching.notes if note.startswith("no profile: ")]
    assert "File too large" in note_text
    assert "perf-record ended with exit code" in note_text


KILLED = """
import sys, time
from pathlib import Path
from pytest_ldos.campaign.watching import Watching
from pytest_ldos.scenario.model import WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
spec = WatchSpec(profile=True, profiler=ProfilerKind(sys.argv[1]), syscalls=sys.argv[1] == "perf")
watching = Watching(spec)
with watching.attached_to_self(Path(sys.argv[2])):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("profiler", [ProfilerKind.PERF, ProfilerKind.PY_SPY])
def test_tools_end_with_this_process(tmp_path, monkeypatch, profiler, end):
    if profiler is ProfilerKind.PY_SPY and not py_spy_available().ok:
        pytest.skip(py_spy_available().reason)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ready_process(sys.executable, "-c", KILLED, profiler, str(tmp_path)) as process:
        tools = psutil.Process(process.pid).children(recursive=True)
        assert len(tools) >= 1 + (profiler is ProfilerKind.PERF)
        process.send_signal(end)
        process.wait()
        _, alive = psutil.wait_procs(tools, timeout=60)
        assert not alive
    assert end is signal.SIGKILL or not list(tmp_path.glob("ldos-*")), "nothing is left"


def test_two_versions_are_compared(tmp_path):
    base, head = Watching(WatchSpec()), Watching(WatchSpec())
    assert not list(write_watched_difference(base, head, tmp_path, DRAWN, title="it"))
    for watching, name in ((base, "old"), (head, "new")):
        watching.seen += [Seen(tmp_path / str(start), profile=FoldedStacks({(name,): 300})) for start in (1, 1, 2)]
        assert len(watching.profiles) == 2, "one a start"
    (note_text,) = write_watched_difference(base, head, tmp_path, DRAWN, title="it")
    assert note_text.startswith("profiles compared: 2 frames changed")
    assert (tmp_path / "difference.svg").read_text() == "it"


def test_switches_are_described_per_trial_and_message():
    assert describe_switches([]) == ""
    counts = SwitchCounts(1000, 20, 4)
    counted = [Switches(counts, 5.0, "/proc", messages=500, trials=2)] * 2
    assert describe_switches(counted) == (
        "2000 voluntary / 40 involuntary context switches / 8 migrations in 10.0 s (/proc); "
        "500 / 10 / 2 a trial (4); 2 / 0.04 / 0.008 a message (1000)"
    )
    alone = Switches(SwitchCounts(3, 1, None), 1.0, "/proc")
    expected = "3 voluntary / 1 involuntary context switches / unknown migrations in 1.0 s (/proc)"
    assert describe_switches([alone]) == expected


@pytest.mark.parametrize("rate", [0, -1, 100_000])
def test_invalid_rates_are_refused(rate):
    with pytest.raises(ConfigurationError, match="a profile's rate"):
        WatchSpec(rate_hz=rate)
