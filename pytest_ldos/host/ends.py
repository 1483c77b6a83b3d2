"""Words for the end of a process."""

from __future__ import annotations

import signal
from typing import Final

_CAUSES: Final[dict[int, str]] = {signal.SIGBUS: ", as where a file in memory has no room: is /dev/shm full?"}
"""Likely causes of a signal, for messages."""


def describe_end(name: str, code: int) -> str:
    """``arm-1 ended with exit code 1``, or ``arm-1 was killed by SIGKILL``.

    Args:
        code: its exit code, or minus the number of the signal that killed it.
    """
    if code >= 0:
        return f"{name} ended with exit code {code}"
    return f"{name} was killed by {_signal_name(-code)}{_CAUSES.get(-code, '')}"


def _signal_name(number: int) -> str:
    """``SIGKILL``; most real-time signals have no name: ``signal 40``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
