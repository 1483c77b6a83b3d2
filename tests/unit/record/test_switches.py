"""perf alongside a recording: real context switches, on the clock of user-space traces."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.host.availability import Availability
from pytest_ldos.record import choose
from pytest_ldos.record.perf import SWITCHES_FOLDER, WithSwitches, switches_available
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.trace import perf as reader
from pytest_ldos.trace.perf import read_perf_records
from tests.builders.forbidden import forbid

ABLE = switches_available()
needs_switches = pytest.mark.skipif(not ABLE.ok, reason=ABLE.reason or "perf can record")
SLEEPER = """
import time
from resource import RUSAGE_THREAD, getrusage
def left():
    return getrusage(RUSAGE_THREAD).ru_nvcsw
for _ in range(5):
    began, before = time.monotonic_ns(), left()
    while left() == before:  # one that is preempted for as long does not leave by itself
        time.sleep(0.01)
    count = left() - before
    print(began, time.monotonic_ns(), count)
"""


class Other:
    """The other recording; see `Recorder`."""

    name = "another tracer"
    prefix: Sequence[str] = ("nice",)
    environment: Mapping[str, str] = {"A": "1"}
    processes: Mapping[int, str] = {}
    open_environment: Mapping[str, str] = {"B": "2"}

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def pause(self) -> RecordingReport:
        self.calls.append("pause")
        return RecordingReport(3, 0)

    def resume(self) -> None:
        self.calls.append("resume")

    def rotate(self) -> Path:
        return self.directory

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def recorder(tmp_path):
    made = WithSwitches(Other(tmp_path / "trace"), tmp_path)
    yield made
    made.stop()


@pytest.fixture
def many_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with ExitStack() as held:
        for _ in range(1100):
            held.enter_context(Path(os.devnull).open())
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def files(recorder):
    return sorted((recorder.directory / SWITCHES_FOLDER).iterdir())


def sleep_five_times() -> tuple[int, list[list[int]]]:
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        return process.pid, [[int(word) for word in line.split()] for line in process.stdout]


def test_writer_and_reader_agree_on_the_folder():
    assert SWITCHES_FOLDER == reader.SWITCHES_FOLDER


@needs_switches
def test_clock_matches_user_space_traces(recorder):
    """A sleeping thread leaves its CPU and gets it back between its own CLOCK_MONOTONIC stamps."""
    recorder.start()
    pid, sleeps = sleep_five_times()
    assert recorder.pause() == RecordingReport(3, 0)
    (file,) = files(recorder)
    records = read_perf_records(file)
    own = records.switches["tid"] == pid
    outs = np.sort(records.switches["time"][own & records.have(reader.OUT) & ~records.have(reader.PREEMPTED)])
    for before, after, count in sleeps:
        assert np.count_nonzero((outs > before) & (outs < after)) >= count >= 1
    assert records.names[pid].startswith("python")


@needs_switches
def test_recording_with_many_open_files(recorder, many_open_files):
    """Uses file descriptors above 1023, which select() does not support."""
    recorder.start()
    recorder.pause()
    (file,) = files(recorder)
    assert read_perf_records(file).switches.size


@needs_switches
def test_each_part_of_a_recording_has_a_file(recorder):
    recorder.start()
    recorder.pause()
    recorder.resume()
    pid, _ = sleep_five_times()
    recorder.pause()
    first, second = map(read_perf_records, files(recorder))
    assert not np.any(first.switches["tid"] == pid)
    assert np.any(second.switches["tid"] == pid)
    assert recorder.name.startswith("another tracer, perf ")
    assert (recorder.prefix, recorder.environment, recorder.open_environment) == (("nice",), {"A": "1"}, {"B": "2"})


@needs_switches
def test_failed_perf_does_not_end_the_other_recording(tmp_path, monkeypatch):
    forbid("perf", tmp_path / "bin", "perf_event_open")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    recorder = WithSwitches(Other(tmp_path / "trace"), tmp_path)
    recorder.start()
    assert recorder.pause() == RecordingReport(3, 0)
    recorder.stop()
    assert recorder._recorder.calls == ["start", "pause", "stop"]
    assert "Captured" not in (tmp_path / "perf-switches.log").read_text()


def test_perf_without_permission_leaves_no_file(tmp_path, monkeypatch):
    """It refuses when it has made its file, which as a part of the trace would be damaged."""
    (tmp_path / "perf").write_text(
        '#!/bin/sh\nfor file; do :; done\n: >"$file"\necho "access is limited" >&2\nexit 255\n'
    )
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    recorder = WithSwitches(Other(tmp_path / "trace"), tmp_path)
    recorder.start()
    recorder.stop()
    assert "access is limited" in (tmp_path / "perf-switches.log").read_text()
    assert files(recorder) == []


@pytest.mark.parametrize("able", [True, False])
def test_switches_are_recorded_on_request_if_permitted(tmp_path, monkeypatch, able):
    monkeypatch.setattr(choose, "recording_available", lambda: Availability(True))
    monkeypatch.setattr(choose, "switches_available", lambda: Availability(able))
    made = choose.choose_recorder(tmp_path / "trace", tmp_path, switches=True)
    assert isinstance(made, WithSwitches) is able
    assert not isinstance(choose.choose_recorder(tmp_path / "trace", tmp_path), WithSwitches)
