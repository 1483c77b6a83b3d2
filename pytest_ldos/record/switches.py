"""Context switches of the whole machine beside another recording, by perf: no kernel module is needed.

perf writes who leaves a CPU and who gets it, by the clock of LTTng's user-space traces; `trace.perf` reads it. Each
time that the recording goes on gets a file of its own, because perf's is whole only when perf has ended.

Reference: ``perf_event_open(2)`` (``PERF_RECORD_SWITCH_CPU_WIDE``); the kernel's
``Documentation/admin-guide/perf-security.rst``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.writable import writing
from pytest_ldos.host.availability import Availability, find_programs, program_version
from pytest_ldos.host.hardware_counters import switches_permitted
from pytest_ldos.record.perf_process import PerfProcess
from pytest_ldos.record.protocol import Recorder, RecordingReport

SWITCHES_FOLDER: Final = "switches"
"""Folder for perf's files in that of the trace; `trace.perf.switches` looks there."""

_ARGUMENTS: Final = ("-e", "dummy:u", "--switch-events", "-k", "mono", "-a", "--synth=task")


def switches_available() -> Availability:
    """Checks that perf is installed and the kernel reports context switches of all processes to this user."""
    programs = find_programs(("perf",), package="linux-perf (Ubuntu: linux-tools-generic)")
    return switches_permitted() if programs.ok else programs


class WithSwitches:
    """A recorder beside which perf records context switches; see `Recorder`.

    If perf fails, the other recording goes on; its log says why, and spans without switches are unknown.
    """

    def __init__(self, recorder: Recorder, log_directory: Path) -> None:
        self._recorder = recorder
        self._perf = PerfProcess(log_directory, "perf-switches")
        self._is_running = False
        self._files = 0
        self.name = f"{recorder.name}, {program_version('perf', 'perf')}"
        self.directory = recorder.directory

    @property
    def prefix(self) -> Sequence[str]:
        return self._recorder.prefix

    @property
    def environment(self) -> Mapping[str, str]:
        return self._recorder.environment

    @property
    def open_environment(self) -> Mapping[str, str]:
        return self._recorder.open_environment

    def start(self) -> None:
        self._begin(self._recorder.start)

    def pause(self) -> RecordingReport:
        self._end()
        return self._recorder.pause()

    def resume(self) -> None:
        self._begin(self._recorder.resume)

    def rotate(self) -> Path:
        return self._recorder.rotate()

    def stop(self) -> None:
        self._perf.cancel()
        self._recorder.stop()

    def _begin(self, other: Callable[[], None]) -> None:
        """Has the other recording begin while perf starts, which takes each a third of a second."""
        folder = self.directory / SWITCHES_FOLDER
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        try:
            with self._perf.starting(_ARGUMENTS, folder / f"{self._files:03d}.data"):
                other()
            self._is_running = True
        except ProfilingFailed:
            self._is_running = False

    def _end(self) -> None:
        if self._is_running:
            self._is_running = False
            try:
                self._perf.stop()
            except ProfilingFailed:
                return  # what it wrote is read up to its last whole record
