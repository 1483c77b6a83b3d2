"""Interface of the recorders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
