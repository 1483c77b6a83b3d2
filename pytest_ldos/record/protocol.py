"""What records a trace, whatever the tracer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class RecordingReport:
    """What the tracer says about a recording.

    Attributes:
        discarded_events: thrown away because buffers were full, by the tracer's own count.
        lost_packets: whole packets lost, likewise.
        fault: why the trace is not whole beyond that; empty where it is.
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
        """Begins to record; processes started before are recorded from now on."""

    def pause(self) -> RecordingReport:
        """Stops writing and flushes: the trace can be read until `resume`."""

    def resume(self) -> None:
        """Goes on after `pause`."""

    def rotate(self) -> Path:
        """Where what was recorded so far can be read, while recording goes on; nothing is missed."""

    def stop(self) -> None:
        """Ends the recording and whatever serves it. May be called at any time, also twice."""
