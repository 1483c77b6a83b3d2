"""CPU time and context switches of processes, and the tree of those that belong to one.

A process's time contains that of the children that it has waited for, so the sum over a tree only grows: what ends
goes on counting in its parent.

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
    """A process and its descendants; of those in other sessions only those that it owns (see `host.processes`)."""
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


class CpuTime:
    """CPU time that processes used since this object was made; an ended process counts with its last known time.

    Args:
        pids: processes that run already; those noted later count with all their time.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._at_begin = _read_cpu_time(pids)
        self._last = dict(self._at_begin)
        self._began_s = self._noted_s = time.monotonic()

    def note(self, pids: Iterable[int]) -> None:
        """Reads the present CPU time of the processes."""
        self._last.update(_read_cpu_time(pids))
        self._noted_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Time until the last note, s."""
        return self._noted_s - self._began_s

    @property
    def used_s(self) -> float:
        """CPU time until the last note, s; the kernel counts it in hundredths."""
        return sum(self._last.values()) - sum(self._at_begin.values())

    @property
    def used_percent(self) -> float:
        """CPU time until the last note, percent of a CPU."""
        return 100.0 * self.used_s / self.elapsed_s if self.elapsed_s > 0 else 0.0


def _read_cpu_time(pids: Iterable[int]) -> dict[int, float]:
    found = {}
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            found[pid] = times.user + times.system
    return found


def process_cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process so far, also of those that ended, by the kernel's own clock.

    Raises:
        OSError: there is no such process.

    Reference: ``clock_getcpuclockid(3)``: the clock of a process is its number, inverted, and 2 for the scheduler's.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


_VOLUNTARY: Final = "voluntary_ctxt_switches"
_INVOLUNTARY: Final = "nonvoluntary_ctxt_switches"
_MIGRATIONS: Final = "se.nr_migrations"


class SwitchCounter:
    """Counts switches of processes from now on.

    Threads that start later are counted from their start; threads that are gone at the end are not counted.

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
    """Counts switches of this process and its children from now on; migrations of ended children are not known."""

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
    """Reads lines of a name and an integer; empty if the thread is gone or the kernel has no such file."""
    try:
        pairs = (line.split(":", 1) for line in file.read_text("utf-8", errors="replace").splitlines() if ":" in line)
        return {name.strip(): int(value) for name, value in pairs if value.strip().isdigit()}
    except OSError:
        return {}
