"""Ending a tool that works until it is told to end."""

from __future__ import annotations

import signal
import subprocess

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.base.text import one_line
from pytest_ldos.host.processes import Child


def interrupt(child: Child, *, limit_s: float) -> None:
    """Returns when it has ended and written what it knows; that it had ended by itself, content, is no fault.

    Raises:
        ProfilingFailed: it had failed before, fails now, or does not end; says what it said.
    """
    if child.exit_code not in (None, 0):
        raise _failed(f"{child.describe_end()} before it was told to end", child)
    child.process.send_signal(signal.SIGINT)
    try:
        code = child.process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise _failed(f"{child.name} did not end when it was told to", child) from None
    if code not in (0, -signal.SIGINT):
        raise _failed(child.describe_end(), child)


def _failed(what: str, child: Child) -> ProfilingFailed:
    said = said_of_faults(child.last_lines())
    return ProfilingFailed(f"{what}: {said}" if said else what, remedy=f"see {child.log}")


def said_of_faults(text: str) -> str:
    """The last line that names a fault; else the last one; empty where nothing was said."""
    lines = [line for each in text.splitlines() if (line := one_line(each).strip())]
    faults = [line for line in lines if any(word in line.lower() for word in ("error:", "failed", "no space", "fatal"))]
    return next(reversed(faults or lines), "")
