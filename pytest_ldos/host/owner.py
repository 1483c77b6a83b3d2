"""Owners of processes, by a variable that all our descendants inherit, in whatever session they run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

OWNER_VARIABLE: Final = "PYTEST_LDOS_OWNER"
"""Variable with the process that started another and ends it: its pid, and its start in ticks since boot."""

_STATE, _BEGAN = 0, 19
"""Fields of ``/proc/PID/stat`` behind the name; see proc(5)."""

_ENDED: Final = frozenset({"Z", "X"})


def owned_by_us() -> Mapping[str, str]:
    """The variable that marks a process as ours."""
    return {OWNER_VARIABLE: f"{os.getpid()} {_began(os.getpid())}"}


def living_owner(environment: Mapping[str, str]) -> int | None:
    """Pid of the owner named in a process's environment; ``None`` if it does not run."""
    pid, _, began = environment.get(OWNER_VARIABLE, "").partition(" ")
    return int(pid) if pid.isascii() and pid.isdecimal() and began and _began(pid) == began else None


def _began(pid: int | str) -> str:
    """Start of a process, which distinguishes it from an earlier one with its pid; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE] in _ENDED else fields[_BEGAN]
