"""Finds processes by variables that they inherited; a child keeps them in whatever session it runs."""

from __future__ import annotations

from collections.abc import Mapping

import psutil


def pids_with(environment: Mapping[str, str]) -> list[int]:
    """Processes that were started with all these variables, except zombies and those of other users."""
    entries = {f"{name}={value}".encode() for name, value in environment.items()}
    return [pid for pid in psutil.pids() if _has(pid, entries)]


def _has(pid: int, entries: set[bytes]) -> bool:
    """True if the process has all entries; a zombie's environment is empty, another user's is secret."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - a thousand times a second at the end
            return entries <= set(file.read().split(b"\0"))
    except OSError:
        return False
