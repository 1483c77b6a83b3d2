"""Choice of the recorder."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.host.availability import Availability
from pytest_ldos.record.lttng import LttngRecorder, lttng_available, lttng_version
from pytest_ldos.record.protocol import Recorder
from pytest_ldos.record.switches import WithSwitches, switches_available


def recording_available() -> Availability:
    """Checks that a recorder can be used here."""
    return lttng_available()


def recorder_name() -> str:
    """Tracer and version."""
    return lttng_version()


def choose_recorder(directory: Path, log_directory: Path, *, switches: bool = False) -> Recorder:
    """A recorder that writes to `directory`.

    Args:
        switches: records context switches of the machine, too, where that is permitted.

    Raises:
        Unavailable: there is none; the message says why and what to install. A run without a trace
            would measure nothing.
    """
    recording_available().demand()
    recorder = LttngRecorder(directory, log_directory)
    return WithSwitches(recorder, log_directory) if switches and switches_available().ok else recorder
