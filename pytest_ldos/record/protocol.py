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
    """The tracer's report on a recording.

    Attributes:
        discarded_events: discarded because buffers were full, by the tracer's own count.
        lost_packets: whole packets lost, likewise.
        fault: any other reason why the trace is incomplete; empty without one.
    """

    discarded_events: int
    lost_packets: int
    fault: str = ""


class Recorder(Protocol):
    """A recording that processes can be started under.

    Attributes:
        name: tracer and version, for headers and records.
        prefix: command in front of every process that is to be recorded.
        environment: variables for these processes.
        open_environment: variables for processes that cannot be started behind `prefix`, instead of both.
        directory: where the trace lies.
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
        """Begins to record; processes that run already are recorded from now on."""

    def pause(self) -> RecordingReport:
        """Stops writing and flushes: the trace can be read until `resume`."""

    def resume(self) -> None:
        """Goes on after `pause`."""

    def rotate(self) -> Path:
        """Makes the recording so far readable, while recording goes on without a gap; returns its folder."""

    def stop(self) -> None:
        """Ends the recording and whatever serves it. May be called at any time, also twice."""


@dataclass(frozen=True)
class Sampled:
    """Samples of a profiler.

    Attributes:
        notes: for the reader: samples that were not understood, processes that were not sampled.
    """

    profile: FoldedStacks
    notes: tuple[str, ...] = ()


class Profiler(Protocol):
    """Samples running processes, and processes they start from now on.

    Attributes:
        name: tool, version and rate, for notes.
    """

    name: str

    def start(self, processes: Mapping[int, str]) -> None:
        """Begins to sample; returns when it does.

        Args:
            processes: names of processes, by pid.

        Raises:
            ProfilingFailed: it could not begin; quotes the tool's output.
        """

    def stop(self) -> Sampled:
        """Ends the sampling and reads the samples.

        Raises:
            ProfilingFailed: it had ended before, or wrote nothing that can be read.
        """

    def cancel(self) -> None:
        """Ends the sampling and drops the samples. May be called at any time, also twice."""


def interrupt(child: Child, *, limit_s: float) -> None:
    """Interrupts a tool; returns when it has written its results and ended, or had ended before without a failure.

    Raises:
        ProfilingFailed: it had failed before, fails now, or does not end; quotes its output.
    """
    if child.exit_code not in (None, 0):
        raise _failed(f"{child.describe_end()} before it was interrupted", child)
    child.process.send_signal(signal.SIGINT)
    try:
        code = child.process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise _failed(f"{child.name} did not end after SIGINT", child) from None
    if code not in (0, -signal.SIGINT):
        raise _failed(child.describe_end(), child)


def _failed(what: str, child: Child) -> ProfilingFailed:
    said = said_of_faults(child.last_lines())
    return ProfilingFailed(f"{what}: {said}" if said else what, remedy=f"see {child.log}")


def said_of_faults(text: str) -> str:
    """The last line that names a fault, otherwise the last line; empty without any."""
    lines = [line for each in text.splitlines() if (line := one_line(each).strip())]
    faults = [line for line in lines if any(word in line.lower() for word in ("error:", "failed", "no space", "fatal"))]
    return next(reversed(faults or lines), "")
