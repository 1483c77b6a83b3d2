"""Interfaces of the recorders and of the profilers."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.availability import Availability, run_program
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.host.temporary import temporary_folder
from pytest_ldos.record.profiles import FoldedStacks


@dataclass(frozen=True)
class RecordingReport:
    """The tracer's report on a recording: its own counts of losses, and another reason why the trace is incomplete."""

    discarded_events: int
    lost_packets: int
    fault: str = ""


class Recorder(Protocol):
    """A recording of processes.

    Attributes:
        name: tracer and version, for headers and records.
        prefix: command prefix of recorded processes.
        environment: environment variables of recorded processes.
        open_environment: environment variables of recorded processes that cannot use `prefix`; replace both.
        directory: folder of the trace.
        processes: names, by pid, of the running processes that it is confined to; empty if it records those it starts.
    """

    name: str
    directory: Path
    processes: Mapping[int, str]

    @property
    def prefix(self) -> Sequence[str]: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def open_environment(self) -> Mapping[str, str]: ...

    def start(self) -> None:
        """Starts recording; running processes are recorded from now on."""

    def follow(self, pids: Collection[int]) -> None:
        """Records calls, page faults and waits of these processes from now on, as far as its events include them."""

    def pause(self) -> RecordingReport:
        """Pauses recording and flushes buffers: the trace can be read until `resume`."""

    def resume(self) -> None:
        """Resumes recording after `pause`."""

    def rotate(self) -> Path:
        """Makes the recording so far readable without interrupting it; returns its folder."""

    def stop(self) -> None:
        """Ends the recording and its processes. May be called at any time and repeatedly."""


@dataclass(frozen=True)
class Sampled:
    """Samples of a profiler, with notes on invalid samples and processes without samples."""

    profile: FoldedStacks
    notes: tuple[str, ...] = ()


class Profiler(Protocol):
    """Samples running processes, and processes that they start later; `name` is tool, version and rate."""

    name: str

    def start(self, processes: Mapping[int, str]) -> None:
        """Starts sampling processes, named by pid; returns once it is active, or raises `ProfilingFailed`."""

    def stop(self) -> Sampled:
        """Stops sampling and reads the samples; raises `ProfilingFailed` if it had ended or its output is damaged."""

    def cancel(self) -> None:
        """Stops sampling and discards the samples. May be called at any time and repeatedly."""


def run_tool(
    command: Sequence[str], *, limit_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Runs a short program without input; ``None`` if it does not end in time."""
    try:
        return run_program(command, timeout_s=limit_s, environment=environment, given="")
    except subprocess.TimeoutExpired:
        return None


def probe(command: Sequence[str], *, by_hand: str, limit_s: float = 20.0) -> Availability:
    """Availability of a tool from a short run of it; without a remedy if the run failed."""
    done = run_tool(command, limit_s=limit_s)
    if done is None:
        return Availability(False, f"{command[0]} does not return", f"run by hand: {by_hand}")
    return Availability(True) if done.returncode == 0 else Availability(False, first_reason(done.stderr))


Result = TypeVar("Result")


class AttachedTool:
    """Processes of a tool that observes others, and their temporary folder; all of it ends together."""

    def __init__(self, log_directory: Path) -> None:
        self._group = ProcessGroup(log_directory=log_directory)
        self._resources = ExitStack()
        self._child: Child | None = None

    @contextmanager
    def _starting(self, prefix: str) -> Iterator[Path]:
        """Yields the temporary folder; everything ends if the ``with`` block fails."""
        try:
            yield self._resources.enter_context(temporary_folder(prefix))
        except BaseException:
            self.cancel()
            raise

    def _finish(self, read: Callable[[], Result], *, limit_s: float) -> Result:
        """Interrupts the process, and reads its results; raises `ProfilingFailed`, with its output, if it failed."""
        assert self._child is not None
        try:
            failure = _interrupt(self._child, limit_s)
            if failure:
                reason = last_error_line(self._child.last_lines())
                raise ProfilingFailed(f"{failure}: {reason}" if reason else failure, remedy=f"see {self._child.log}")
            return read()
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Stops the tool and discards its results. May be called at any time and repeatedly."""
        self._group.stop()
        self._resources.close()


def _interrupt(child: Child, limit_s: float) -> str:
    """The failure of a child that is interrupted; empty if it ends normally, or had already done so."""
    if child.exit_code not in (None, 0):
        return f"{child.describe_end()} before it was interrupted"
    child.process.send_signal(signal.SIGINT)
    try:
        code = child.process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"{child.name} did not end after SIGINT"
    return "" if code in (0, -signal.SIGINT) else child.describe_end()


def clean_lines(output: str) -> list[str]:
    """Lines of a tool's output that are not blank, safe to print."""
    return [line for each in output.splitlines() if (line := one_line(each).strip())]


def first_reason(output: str) -> str:
    """The error in a tool's output: its first line that is no heading."""
    return next((line for line in clean_lines(output) if not line.endswith("Error:")), "no reason given")


def last_error_line(output: str) -> str:
    """The last line that mentions an error, or the last line; empty without lines."""
    lines = clean_lines(output)
    faults = [line for line in lines if any(word in line.lower() for word in ("error:", "failed", "no space", "fatal"))]
    return next(reversed(faults or lines), "")
