"""Choice of the recorder."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.host.availability import Availability
from pytest_ldos.record.lttng import LttngRecorder, lttng_available, lttng_version
from pytest_ldos.record.protocol import Recorder


def recording_available() -> Availability:
    """Checks that a recorder can be used here."""
    return lttng_available()


def recorder_name() -> str:
    """Tracer and version."""
    return lttng_version()


def choose_recorder(directory: Path, log_directory: Path) -> Recorder:
    """A recorder that writes to `directory`.

    Raises:
        Unavailable: there is none; the message says why and what to install. A run without a trace
            would measure nothing.
    """
    recording_available().demand()
    return LttngRecorder(directory, log_directory)
