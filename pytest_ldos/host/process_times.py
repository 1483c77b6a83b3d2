"""CPU time and context switches of processes, and process trees.

A process's time includes that of reaped children, so that the sum over a tree never decreases.

Reference: ``proc(5)`` (``/proc/PID/stat``).

Reference: ``proc(5)`` (``/proc/PID/task/TID/status``); the kernel's ``kernel/sched/debug.c`` (``sched``).
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.host.processes import OWNER_VARIABLE, living_owner

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
"""Unit of the kernel's CPU times, s."""

Key = tuple[int, int]
"""A pid and the start time of its process, which identify a process uniquely."""


@dataclass(frozen=True)
class ProcessTime:
    """A process and its CPU time so far.

    Attributes:
        name: the kernel's name (15 characters).
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
        """Time of the process and its reaped children."""
        return self.own + self.ended_children


ProcessTimes = Mapping[Key, ProcessTime]


def read_process_times(root: Path = Path("/")) -> ProcessTimes:
    """Reads all visible processes; empty without ``/proc``."""
    try:
        names = os.listdir(root / "proc")  # noqa: PTH208 - twice in each trial, of a thousand processes
    except OSError:
        return {}
    found = (_read(f"{root}/proc/{name}/stat") for name in names if name.isdecimal())
    return dict(each for each in found if each is not None)


def _read(file: str) -> tuple[Key, ProcessTime] | None:
    """Reads one process; ``None`` if it has ended."""
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
    """A process and its descendants; in other sessions only those that it owns (see `host.processes`)."""
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
    """True if a process inherited its owner's variable, in any session and also as an orphan."""
    try:
        with open(f"{root}/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            entries = file.read().split(b"\0")
    except OSError:
        return False
    prefix = f"{OWNER_VARIABLE}=".encode()
    return any(living_owner({OWNER_VARIABLE: each}) == owner for each in _values(entries, prefix))


def _values(entries: list[bytes], prefix: bytes) -> Iterator[str]:
    return (each.removeprefix(prefix).decode("ascii", "replace") for each in entries if each.startswith(prefix))


class CpuTime:
    """CPU time of processes since creation; an ended process counts with its last known time.

    Args:
        pids: running processes; those added later count with their whole time.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._at_begin = _read_cpu_time(pids)
        self._last = dict(self._at_begin)
        self._began_s = self._noted_s = time.monotonic()

    def note(self, pids: Iterable[int]) -> None:
        """Reads the current CPU time of the processes."""
        self._last.update(_read_cpu_time(pids))
        self._noted_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Time until the last reading, s."""
        return self._noted_s - self._began_s

    @property
    def used_s(self) -> float:
        """CPU time until the last reading, s; the kernel's resolution is 0.01 s."""
        return sum(self._last.values()) - sum(self._at_begin.values())

    @property
    def used_percent(self) -> float:
        """CPU time until the last reading, percent of a CPU."""
        return 100.0 * self.used_s / self.elapsed_s if self.elapsed_s > 0 else 0.0


def _read_cpu_time(pids: Iterable[int]) -> dict[int, float]:
    found = {}
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            found[pid] = times.user + times.system
    return found


def process_cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process so far, including ended ones, from the kernel's clock.

    Raises:
        OSError: there is no such process.

    Reference: ``clock_getcpuclockid(3)``: the clock id is the inverted pid, shifted, plus 2 for the scheduler's.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


_VOLUNTARY: Final = "voluntary_ctxt_switches"
_INVOLUNTARY: Final = "nonvoluntary_ctxt_switches"
_MIGRATIONS: Final = "se.nr_migrations"


class SwitchCounter:
    """Counts context switches of processes from its creation on.

    New threads are counted from their start; threads that have ended are not counted.

    Args:
        root: below which ``proc`` is, for tests.
    """

    def __init__(self, pids: Iterable[int], root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._pids = list(pids)
        self._before = self._read()

    def counts(self) -> SwitchCounts:
        """Counts so far, summed over all threads."""
        since = (_since(self._before.get(thread, SwitchCounts()), now) for thread, now in self._read().items())
        return sum(since, SwitchCounts())

    def _read(self) -> dict[Path, SwitchCounts]:
        return {thread: counts for pid in self._pids for thread, counts in self._threads(pid)}

    def _threads(self, pid: int) -> Iterator[tuple[Path, SwitchCounts]]:
        try:
            threads = list((self._proc / str(pid) / "task").iterdir())
        except OSError:
            return
        for thread in threads:
            status = _numbers(thread / "status")
            if _VOLUNTARY in status and _INVOLUNTARY in status:
                moved = _numbers(thread / "sched").get(_MIGRATIONS)
                yield thread, SwitchCounts(status[_VOLUNTARY], status[_INVOLUNTARY], moved)


class OwnSwitchCounter:
    """Counts context switches of this process and its children from now on, without ended children's migrations."""

    def __init__(self) -> None:
        self._own = SwitchCounter([os.getpid()])
        self._children = _of_ended_children()

    def counts(self) -> SwitchCounts:
        """Counts so far."""
        ended = _of_ended_children()
        own = self._own.counts()
        voluntary = ended.voluntary - self._children.voluntary
        involuntary = ended.involuntary - self._children.involuntary
        return SwitchCounts(own.voluntary + voluntary, own.involuntary + involuntary, None)


def _of_ended_children() -> SwitchCounts:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return SwitchCounts(usage.ru_nvcsw, usage.ru_nivcsw, None)


def _since(before: SwitchCounts, now: SwitchCounts) -> SwitchCounts:
    known = before.migrations is not None and now.migrations is not None
    return SwitchCounts(
        now.voluntary - before.voluntary,
        now.involuntary - before.involuntary,
        (now.migrations or 0) - (before.migrations or 0) if known else None,
    )


def _numbers(file: Path) -> dict[str, int]:
    """Reads lines of a name and an integer; empty if the thread or file does not exist."""
    try:
        pairs = (line.split(":", 1) for line in file.read_text("utf-8", errors="replace").splitlines() if ":" in line)
        return {name.strip(): int(value) for name, value in pairs if value.strip().isdigit()}
    except OSError:
        return {}
