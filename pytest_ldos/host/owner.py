"""Owners of processes, by a variable that everything we start inherits, however far it goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

OWNER_VARIABLE: Final = "PYTEST_LDOS_OWNER"
"""Process that started another and ends it: its pid, and when it began in ticks since boot."""

_STATE, _BEGAN = 0, 19
"""Fields of ``/proc/PID/stat`` behind the name; see proc(5)."""

_ENDED: Final = frozenset({"Z", "X"})


def owned_by_us() -> Mapping[str, str]:
    """The variable that says that a process is ours."""
    return {OWNER_VARIABLE: f"{os.getpid()} {_began(os.getpid())}"}


def living_owner(environment: Mapping[str, str]) -> int | None:
    """Pid of the owner that the environment of a process names, while it runs."""
    pid, _, began = environment.get(OWNER_VARIABLE, "").partition(" ")
    return int(pid) if pid.isascii() and pid.isdecimal() and began and _began(pid) == began else None


def _began(pid: int | str) -> str:
    """When a process began, which tells it from an earlier one with its pid; empty for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE] in _ENDED else fields[_BEGAN]
