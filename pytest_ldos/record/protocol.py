"""Interfaces of the recorders and of the profilers."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.processes import Child
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
    """

    name: str
    directory: Path

    @property
    def prefix(self) -> Sequence[str]: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def open_environment(self) -> Mapping[str, str]: ...

    def start(self) -> None:
        """Starts recording; running processes are recorded from now on."""

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
        """Starts sampling processes, named by pid; returns once it is active.

        Raises:
            ProfilingFailed: it could not start; the message quotes the tool's output.
        """

    def stop(self) -> Sampled:
        """Stops sampling and reads the samples; raises `ProfilingFailed` if it had ended or its output is damaged."""

    def cancel(self) -> None:
        """Stops sampling and discards the samples. May be called at any time and repeatedly."""


def run_tool(
    command: Sequence[str], *, limit_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Runs a short program without input; ``None`` if it does not end in time."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def interrupt(child: Child, *, limit_s: float) -> None:
    """Interrupts a tool, and waits until it has written its results; succeeds if it had already ended normally.

    Raises `ProfilingFailed`, with its output, if it failed or does not end.
    """
    failure = ""
    if child.exit_code not in (None, 0):
        failure = f"{child.describe_end()} before it was interrupted"
    else:
        child.process.send_signal(signal.SIGINT)
        try:
            code = child.process.wait(limit_s)
            failure = "" if code in (0, -signal.SIGINT) else child.describe_end()
        except subprocess.TimeoutExpired:
            failure = f"{child.name} did not end after SIGINT"
    if failure:
        reason = last_error_line(child.last_lines())
        raise ProfilingFailed(f"{failure}: {reason}" if reason else failure, remedy=f"see {child.log}")


def last_error_line(text: str) -> str:
    """The last line that mentions an error, or the last line; empty without lines."""
    lines = [line for each in text.splitlines() if (line := one_line(each).strip())]
    faults = [line for line in lines if any(word in line.lower() for word in ("error:", "failed", "no space", "fatal"))]
    return next(reversed(faults or lines), "")
