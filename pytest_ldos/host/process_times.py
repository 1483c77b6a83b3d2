"""CPU time of all processes at one moment, and the tree of those that belong to one.

A process's time contains that of the children that it has waited for, so the sum over a tree only grows: what ends
goes on counting in its parent.

Reference: ``proc(5)`` (``/proc/PID/stat``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.owner import OWNER_VARIABLE, living_owner

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
"""Unit of the kernel's CPU times, s."""

Key = tuple[int, int]
"""A pid and the begin of its process, which together name one process only."""


@dataclass(frozen=True)
class ProcessTime:
    """A process and the CPU time that it has used so far.

    Attributes:
        name: as the kernel has it (15 characters).
        own, ended_children: user and system time, in ticks (`TICK_S`).
    """

    pid: int
    parent: int
    session: int
    name: str
    own: int
    ended_children: int

    @property
    def ticks(self) -> int:
        """Time of the process and of the children that it has waited for."""
        return self.own + self.ended_children


ProcessTimes = Mapping[Key, ProcessTime]


def read_process_times(root: Path = Path("/")) -> ProcessTimes:
    """Reads all processes that can be seen; empty without ``/proc``."""
    try:
        names = os.listdir(root / "proc")  # noqa: PTH208 - twice in each trial, of a thousand processes
    except OSError:
        return {}
    found = (_read(f"{root}/proc/{name}/stat") for name in names if name.isdecimal())
    return dict(each for each in found if each is not None)


def _read(file: str) -> tuple[Key, ProcessTime] | None:
    """One process; ``None`` if it has ended."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - as above
            text = opened.read().decode("utf-8", "replace")
        pid, _, rest = text.partition(" (")
        name, _, after = rest.rpartition(") ")
        fields = after.split()
        parent, session, began = int(fields[1]), int(fields[3]), int(fields[19])
        own, ended = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        return (int(pid), began), ProcessTime(int(pid), parent, session, name, own, ended)
    except (OSError, ValueError, IndexError):
        return None


def tree_of(top: int, processes: ProcessTimes, root: Path = Path("/")) -> set[Key]:
    """A process and its descendants; of those in other sessions only those that it owns (see `host.owner`)."""
    children: dict[int, list[Key]] = defaultdict(list)
    for key, process in processes.items():
        children[process.parent].append(key)
    found = {key for key in processes if key[0] == top}
    session = next((processes[key].session for key in found), None)
    waiting = list(found)
    while waiting:
        here = waiting.pop()
        mine = {
            key
            for key in children.get(here[0], ())
            if key not in found and (processes[key].session == session or is_owned(key[0], top, root))
        }
        found |= mine
        waiting += mine
    return found


def is_owned(pid: int, owner: int, root: Path = Path("/")) -> bool:
    """True if a process inherited the variable of its owner; also for an orphan in whatever session."""
    try:
        with open(f"{root}/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            entries = file.read().split(b"\0")
    except OSError:
        return False
    prefix = f"{OWNER_VARIABLE}=".encode()
    return any(living_owner({OWNER_VARIABLE: each}) == owner for each in _values(entries, prefix))


def _values(entries: list[bytes], prefix: bytes) -> Iterator[str]:
    return (each.removeprefix(prefix).decode("ascii", "replace") for each in entries if each.startswith(prefix))
