"""Samples with Linux's own profiler: ``perf record`` attached to processes, ``perf script`` to read it.

Reference: ``perf-record(1)``, ``perf-script(1)``; the kernel's ``Documentation/admin-guide/perf-security.rst``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.host.availability import Availability, find_programs, program_version
from pytest_ldos.host.hardware_counters import Counters, Event
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.record.perf_process import PerfProcess, first_reason
from pytest_ldos.record.profiler import Sampled
from pytest_ldos.record.profiles.perf_script import FIELDS, ReadSamples, fold_perf_script

CALL_GRAPH: Final = "dwarf,8192"
"""Keeps bytes of the stack and unwinds them afterwards: most distributions' libraries have no frame pointers."""

_READ_S: Final = 600.0
_PROBE_S: Final = 20.0
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_NOT_PERMITTED: Final = "sudo sysctl kernel.perf_event_paranoid=1, or run it as root; or --ldos-profiler=py-spy"
_INTERPRETER: Final = "_PyEval_EvalFrameDefault"
_DIE_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL", "--")


def perf_available() -> Availability:
    """Checks that perf is installed for this kernel and permitted, by sampling a program that ends at once."""
    programs = find_programs(("perf",), package="linux-perf (Ubuntu: linux-tools-generic)")
    if not programs.ok:
        return programs
    command = ["perf", "record", "--quiet", "-e", "cpu-clock", "-o", os.devnull, "--", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=_PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Availability(False, "perf does not return", "run by hand: perf record -e cpu-clock true")
    if done.returncode == 0:
        return Availability(True)
    return Availability(False, f"perf may not sample here: {first_reason(done.stderr)}{_paranoia()}", _NOT_PERMITTED)


def _paranoia() -> str:
    with contextlib.suppress(OSError):
        return f" (kernel.perf_event_paranoid is {_PARANOID.read_text('ascii').strip()})"
    return ""


class PerfProfiler:
    """See `Profiler`.

    Args:
        rate_hz: samples per second of each CPU that runs these processes.
        log_directory: gets perf's log.
    """

    def __init__(self, log_directory: Path, *, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._log_directory = log_directory
        self._perf = PerfProcess(log_directory)
        self._resources = ExitStack()
        self._folder: Path | None = None
        self._names: Mapping[int, str] = {}
        self._event = _find_event()
        self.name = f"{program_version('perf', 'perf')}, {self._event} at {rate_hz} Hz"

    @property
    def _data(self) -> Path:
        assert self._folder is not None
        return self._folder / "perf.data"

    def start(self, processes: Mapping[int, str]) -> None:
        self._names = dict(processes)
        self._folder = self._resources.enter_context(temporary_folder("ldos-perf-"))
        arguments = ["-e", self._event, "-F", str(self._rate_hz), "--call-graph", CALL_GRAPH]
        try:
            self._perf.start([*arguments, "-p", ",".join(map(str, processes))], self._data)
        except BaseException:
            self.cancel()
            raise

    def stop(self) -> Sampled:
        try:
            self._perf.stop()
            return self._read()
        finally:
            self.cancel()

    def _read(self) -> Sampled:
        """Unwinds the samples. Inlined functions are not looked up, which would take minutes."""
        command = [*_DIE_WITH_US, "perf", "script", "-i", str(self._data), "--no-inline", "-F", FIELDS]
        text, log = self._data.with_suffix(".txt"), self._log_directory / "perf-script.log"
        with text.open("wb") as out, log.open("wb") as errors:
            try:
                code = subprocess.run(command, stdout=out, stderr=errors, timeout=_READ_S, check=False).returncode
            except subprocess.TimeoutExpired:
                raise ProfilingFailed("perf script did not end", remedy="sample less: --ldos-profile-rate") from None
        with text.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            read = fold_perf_script(lines, self._names)
        said = first_reason(log.read_text("utf-8", errors="replace"))
        if code != 0 and not read.profile:
            raise ProfilingFailed(f"perf script cannot read what perf record wrote: {said}", remedy=f"see {log}")
        return Sampled(read.profile, tuple(_remarks(read, said if code != 0 else "")))

    def cancel(self) -> None:
        self._perf.cancel()
        self._resources.close()


def _remarks(read: ReadSamples, fault: str) -> Iterator[str]:
    if fault:
        yield f"perf script did not read all samples: {fault}"
    if read.damaged:
        yield f"{read.damaged} lines of perf script were not understood and are left out"
    if any(_INTERPRETER in stack for stack in read.profile.counts):
        yield "functions of Python have no names in it (the profiler py-spy gives them)"


def _find_event() -> str:
    """The event to sample: cycles if the CPU counts them, otherwise the kernel's timer."""
    counters = Counters(Event.CPU_CYCLES, [os.getpid()])
    counters.close()
    return "cpu-clock" if counters.reason else "cycles"
