"""Processes of this test run, distinguished from others on the same machine."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

OURS = "PYTEST_LDOS_TEST_RUN"
"""Names this run in the environment of all that it starts."""


def is_of_others(pid: int) -> bool:
    """True if its environment names another run or none; one that overwrote its own is judged by its parent's."""
    if pid in (0, 1, os.getpid()):
        return False
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if any(entry.startswith(b"PATH=") for entry in entries):
            return f"{OURS}={os.environ[OURS]}".encode() not in entries
        return is_of_others(psutil.Process(pid).ppid())
    except (OSError, psutil.NoSuchProcess):
        return False
