"""Interrupts tools that run until SIGINT."""

from __future__ import annotations

import signal
import subprocess

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.processes import Child


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
