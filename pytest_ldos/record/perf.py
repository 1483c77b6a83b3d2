"""perf: samples of processes, and context switches of the whole machine.

perf records the thread that leaves a CPU and the next one, on the clock of LTTng's user-space traces; `trace.perf`
reads its files. Each resumption of the recording gets a new file, because a file is complete only after perf's end.

Reference: ``perf-record(1)`` (``--control``, ``-D``), ``perf-script(1)``, ``perf_event_open(2)``
(``PERF_RECORD_SWITCH_CPU_WIDE``); the kernel's ``Documentation/admin-guide/perf-security.rst``.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.files import writing
from pytest_ldos.host.availability import Availability, find_programs, program_version
from pytest_ldos.host.counters import Counters, Event, switches_permitted
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.processes import Child
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.record.profiles import MOST_FRAMES, FoldedStacks, Stack, frame_name
from pytest_ldos.record.protocol import AttachedTool, Recorder, RecordingReport, Sampled, first_reason, probe, run_tool

_READY_S: Final = 15.0
_END_S: Final = 30.0
_POLL_S: Final = 0.005


class PerfProcess(AttachedTool):
    """A ``perf record`` process that writes to a file; `name` is that of its log."""

    def __init__(self, log_directory: Path, name: str = "perf-record") -> None:
        super().__init__(log_directory)
        self._name = name

    @contextmanager
    def starting(self, arguments: Sequence[str], data: Path) -> Iterator[None]:
        """Starts perf; the exit of the ``with`` block waits until it records, or raises `ProfilingFailed`."""
        with temporary_folder("ldos-perf-") as folder, ExitStack() as resources:
            control, answer = folder / "control", folder / "answer"
            os.mkfifo(control)
            os.mkfifo(answer)
            command = ["perf", "record", *arguments, "-D", "-1", f"--control=fifo:{control},{answer}", "-o", str(data)]
            self._child = self._group.start(self._name, command, fresh_log=True)
            try:
                reader = os.open(answer, os.O_RDWR | os.O_NONBLOCK)
                resources.callback(os.close, reader)
                writer = os.open(control, os.O_RDWR | os.O_NONBLOCK)
                resources.callback(os.close, writer)
                os.write(writer, b"enable\n")
                yield
                self._await_begin(self._child, reader)
            except BaseException:
                self.cancel()
                raise

    def _await_begin(self, child: Child, reader: int) -> None:
        deadline = time.monotonic() + _READY_S
        answered = select.poll()  # unlike select, it accepts file descriptors of any size
        answered.register(reader, select.POLLIN)
        while time.monotonic() < deadline and child.exit_code is None:
            if answered.poll(1000 * _POLL_S):
                os.read(reader, 64)
                return
        how = "did not begin" if child.exit_code is None else "ended"
        raise ProfilingFailed(f"perf record {how}: {first_reason(child.last_lines())}", remedy=f"see {child.log}")

    def complete(self) -> None:
        """Stops perf and waits until its file is complete; raises `ProfilingFailed` if it failed or does not end."""
        self._finish(lambda: None, limit_s=_END_S)


FIELDS: Final = "comm,pid,tid,time,event,ip,sym,dso"  # argument of ``perf script -F``

_HEADER: Final = re.compile(r"^(?P<comm>.*\S)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\d+\.\d+:\s+\S+:\s*$")
_FRAMES: Final = (
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*) \((?P<dso>[^()]+(?: \(deleted\))?)\)$"),
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*?) \((?P<dso>[/\[].*)\)$"),
)
"""The last bracket is the file; function names and paths may also contain brackets."""

_UNKNOWN: Final = "[unknown]"


@dataclass(frozen=True)
class ReadSamples:
    """Samples, and the number of invalid lines and of samples without a frame."""

    profile: FoldedStacks
    damaged: int


def fold_perf_script(lines: Iterable[str], names: Mapping[int, str]) -> ReadSamples:
    """Parses the output of ``perf script -F`` `FIELDS`.

    A sample is a line with its thread, process and event, then one line per frame, the innermost first, then an empty
    line::

        move_group 5321/5330  59866.039831: cpu-clock:
                 100960 _PyEval_EvalFrameDefault (/usr/lib/libpython3.11.so.1.0)

    `names` are those of processes by pid; others are named after their main thread, or any with samples.
    """
    counts: Counter[tuple[int, Stack]] = Counter()
    threads: dict[int, str] = {}
    files: dict[str, str] = {}
    damaged = 0
    for sample in _samples(lines):
        header, stack = _HEADER.match(sample[0]), _stack(sample[1:], files)
        if header is None or stack is None:
            damaged += len(sample)
            continue
        pid = int(header["pid"])
        counts[pid, stack] += 1
        if pid not in threads or header["pid"] == header["tid"]:
            threads[pid] = header["comm"]
    named: Counter[Stack] = Counter()
    for (pid, stack), count in counts.items():
        named[frame_name(names.get(pid, threads[pid])), *stack] += count
    return ReadSamples(FoldedStacks(dict(named), files), damaged)


def _samples(lines: Iterable[str]) -> Iterator[list[str]]:
    found: list[str] = []
    for line in lines:
        text = line.rstrip("\n")
        if text.strip():
            if not text.startswith("#"):
                found.append(text)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _stack(lines: list[str], files: dict[str, str]) -> Stack | None:
    """Frames, the outermost first, whose libraries are added to `files`; ``None`` for none, or a malformed line."""
    names = []
    for line in reversed(lines):
        frame = next((found for each in _FRAMES if (found := each.match(line)) is not None), None)
        if frame is None:
            return None
        is_named = frame["name"] != _UNKNOWN or frame["dso"].startswith("[unknown")
        names.append(frame_name(frame["name"] if is_named else f"[{PurePosixPath(frame['dso']).name}]"))
        files[names[-1]] = frame_name(frame["dso"])
    return tuple(names[: MOST_FRAMES - 1]) or None


CALL_GRAPH: Final = "dwarf,8192"
"""Copies stack memory and unwinds it afterwards, because most distributions' libraries lack frame pointers."""

_PACKAGE: Final = "linux-perf (Ubuntu: linux-tools-generic)"
_READ_S: Final = 600.0
_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_NOT_PERMITTED: Final = "sudo sysctl kernel.perf_event_paranoid=1, or run it as root; or --ldos-profiler=py-spy"
_INTERPRETER: Final = "_PyEval_EvalFrameDefault"
_DIE_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL", "--")


def perf_available(*sampled: str) -> Availability:
    """Checks that perf is installed for this kernel and permitted, by recording `sampled` events of a short program."""
    programs = find_programs(("perf",), package=_PACKAGE)
    if not programs.ok:
        return programs
    arguments = [word for each in sampled for word in SAMPLED[each]] or ["-e", "cpu-clock"]
    command = ["perf", "record", "--quiet", *arguments, "-o", os.devnull, "--", "true"]
    able = probe(command, by_hand=f"perf record {' '.join(arguments[:2])} true")
    if able.ok or able.remedy:
        return able
    known = f" (kernel.perf_event_paranoid is {read_setting(_PARANOID) or 'unknown'})"
    remedy = "run it as root, or leave the metric out" if sampled else _NOT_PERMITTED
    return Availability(False, f"perf may not sample here: {able.reason}{known}", remedy)


class PerfProfiler(PerfProcess):
    """See `Profiler`; samples at a rate per second on each CPU that runs these processes."""

    def __init__(self, log_directory: Path, *, rate_hz: int) -> None:
        super().__init__(log_directory)
        self._rate_hz = rate_hz
        self._log_directory = log_directory
        self._data: Path | None = None
        self._names: Mapping[int, str] = {}
        counters = Counters(Event.CPU_CYCLES, [os.getpid()])
        counters.close()
        self._event = "cpu-clock" if counters.reason else "cycles"  # the kernel's timer if the CPU counts no cycles
        self.name = f"{program_version('perf', 'perf')}, {self._event} at {rate_hz} Hz"

    def start(self, processes: Mapping[int, str]) -> None:
        self._names = dict(processes)
        arguments = ["-e", self._event, "-F", str(self._rate_hz), "--call-graph", CALL_GRAPH]
        arguments += ["-p", ",".join(map(str, processes))]
        with self._starting("ldos-perf-") as folder:
            self._data = folder / "perf.data"
            with self.starting(arguments, self._data):
                pass

    def stop(self) -> Sampled:
        return self._finish(self._read, limit_s=_END_S)

    def _read(self) -> Sampled:
        """Unwinds the samples, without inlined functions, which would take minutes."""
        assert self._data is not None
        command = [*_DIE_WITH_US, "perf", "script", "-i", str(self._data), "--no-inline", "-F", FIELDS]
        text, log = self._data.with_suffix(".txt"), self._log_directory / "perf-script.log"
        with text.open("wb") as out, log.open("wb") as errors:
            try:
                code = subprocess.run(command, stdout=out, stderr=errors, timeout=_READ_S, check=False).returncode
            except subprocess.TimeoutExpired:
                raise ProfilingFailed("perf script did not end", remedy="sample less: --ldos-profile-rate") from None
        with text.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            read = fold_perf_script(lines, self._names)
        reason = first_reason(log.read_text("utf-8", errors="replace"))
        if code != 0 and not read.profile:
            raise ProfilingFailed(f"perf script cannot read what perf record wrote: {reason}", remedy=f"see {log}")
        notes = [] if code == 0 else [f"perf script did not read all samples: {reason}"]
        if read.damaged:
            notes.append(f"{read.damaged} lines of perf script were not understood and are left out")
        if any(_INTERPRETER in stack for stack in read.profile.counts):
            notes.append("functions of Python have no names in it (the profiler py-spy gives them)")
        return Sampled(read.profile, tuple(notes))


SWITCHES_FOLDER: Final = "switches"  # folder of perf's files in the trace's folder, as read by `trace.perf.switches`

_ARGUMENTS: Final = ("-e", "dummy:u", "--switch-events", "-k", "mono", "-a", "--synth=task")


def switches_available() -> Availability:
    """Checks that perf is installed and may record context switches of all processes."""
    programs = find_programs(("perf",), package=_PACKAGE)
    return switches_permitted() if programs.ok else programs


_BLOCKED: Final = "prev_state > 0 && prev_state < 256"  # a preempted thread has the state 256
SAMPLED: Final = {
    "perf_faults:*": ("-e", "page-faults", "-c", "1"),
    "perf_blocked:*": ("-e", "sched:sched_switch", "-c", "1", "--filter", _BLOCKED),
}
"""Arguments of ``perf record`` for events of followed processes, which have the user's function."""


class WithSwitches:
    """Adds context switches by perf, and `sampled` events of followed processes, to another recorder; see `Recorder`.

    If perf fails, the other recording continues; perf's log has the reason, and time without switches is unknown.
    """

    def __init__(self, recorder: Recorder, log_directory: Path, *, sampled: Sequence[str] = ()) -> None:
        self._recorder = recorder
        self._perf = PerfProcess(log_directory, "perf-switches")
        self._sampler = PerfProcess(log_directory, "perf-samples")
        self._sampled = [word for each in sampled for word in SAMPLED[each]]
        self._pids = ""
        self._is_running = False
        self._files = 0
        self.name = f"{recorder.name}, {program_version('perf', 'perf')}"
        self.directory, self.processes = recorder.directory, recorder.processes

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

    def follow(self, pids: Collection[int]) -> None:
        self._recorder.follow(pids)
        self._pids = ",".join(map(str, pids))
        self._begin_samples()

    def _begin_samples(self) -> None:
        if self._sampled and self._pids:
            options = ("--call-graph", "fp", "--user-callchains", "-k", "mono", "-p", self._pids)
            data = self.directory / SWITCHES_FOLDER / f"{self._files:03d}.samples"
            with self._sampler.starting([*self._sampled, *options], data):
                pass

    def _end_samples(self) -> None:
        """Writes the samples as text while their programs are there to name the functions."""
        self._sampler.complete()
        data = self.directory / SWITCHES_FOLDER / f"{self._files:03d}.samples"
        options = ("--ns", "--no-inline", "--show-lost-events")
        done = run_tool(["perf", "script", *options, "-F", FIELDS, "-i", str(data)], limit_s=_READ_S)
        if done is None or done.returncode:
            raise ProfilingFailed("perf script cannot read what perf record wrote", remedy=f"see {data}")
        with writing(data):
            data.with_suffix(".txt").write_text(f"{self._pids}\n\n{done.stdout}", "utf-8")
            data.unlink()

    def pause(self) -> RecordingReport:
        if self._sampled and self._pids:
            self._end_samples()
        if self._is_running:
            self._is_running = False
            with contextlib.suppress(ProfilingFailed):  # its file is read up to the last whole record
                self._perf.complete()
        return self._recorder.pause()

    def resume(self) -> None:
        self._begin(self._recorder.resume)
        self._begin_samples()

    def rotate(self) -> Path:
        return self._recorder.rotate()

    def stop(self) -> None:
        self._perf.cancel()
        self._sampler.cancel()
        self._recorder.stop()

    def _begin(self, other: Callable[[], None]) -> None:
        """Starts the other recording and perf concurrently; each takes a third of a second."""
        self._files += 1
        data = self.directory / SWITCHES_FOLDER / f"{self._files:03d}.data"
        with writing(data.parent):
            data.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._perf.starting(_ARGUMENTS, data):
                other()
            self._is_running = True
        except ProfilingFailed:
            data.unlink(missing_ok=True)  # empty, and thus no file of perf
