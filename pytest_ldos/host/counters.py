"""Counters of processes: CPU time, context switches, hardware events; the permission to attach.

Reference: ``proc(5)``; the kernel's ``kernel/sched/debug.c``; ``perf_event_open(2)``, which virtual machines and the
kernel may refuse (``kernel.perf_event_paranoid``); ``ptrace(2)`` and ``Documentation/admin-guide/LSM/Yama.rst``.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import read_fields, read_setting
from pytest_ldos.host.fingerprint import read_environment
from pytest_ldos.host.processes import OWNER_VARIABLE, living_owner

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")  # unit of the kernel's CPU times, s

Key = tuple[int, int]  # a pid and the start time of its process, which identify a process uniquely


@dataclass(frozen=True)
class ProcessTime:
    """A process, its name in the kernel (15 characters), and its user and system time so far, in ticks (`TICK_S`)."""

    pid: int
    parent: int
    session: int
    name: str
    own: int
    ended_children: int

    @property
    def ticks(self) -> int:
        """Time with that of reaped children, so that the sum over a tree never decreases."""
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
    prefix, entries = f"{OWNER_VARIABLE}=".encode(), read_environment(pid, root)
    marks = (each.removeprefix(prefix).decode("ascii", "replace") for each in entries if each.startswith(prefix))
    return any(living_owner({OWNER_VARIABLE: each}) == owner for each in marks)


class CpuTime:
    """CPU time of processes since creation; later processes count completely, ended ones with their last known time."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._at_begin = _read_cpu_time(pids)
        self._last = dict(self._at_begin)
        self._began_s = self._noted_s = time.monotonic()

    def note(self, pids: Iterable[int]) -> None:
        self._last.update(_read_cpu_time(pids))
        self._noted_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
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
    """CPU time of all threads of a process so far, including ended ones; raises `OSError` if there is no such process.

    Reference: ``clock_getcpuclockid(3)``: the clock id is the inverted pid, shifted, plus 2 for the scheduler's.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


_VOLUNTARY: Final = "voluntary_ctxt_switches"
_INVOLUNTARY: Final = "nonvoluntary_ctxt_switches"
_MIGRATIONS: Final = "se.nr_migrations"


class SwitchCounter:
    """Counts context switches of processes since its creation: new threads from their start, ended threads never."""

    def __init__(self, pids: Iterable[int], root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._pids = list(pids)
        self._before = self._read()

    def counts(self) -> SwitchCounts:
        since = (_since(self._before.get(thread, SwitchCounts()), now) for thread, now in self._read().items())
        return sum(since, SwitchCounts())

    def _read(self) -> dict[Path, SwitchCounts]:
        found = {}
        for pid in self._pids:
            with contextlib.suppress(OSError):
                for thread in (self._proc / str(pid) / "task").iterdir():
                    status = read_fields(thread / "status")
                    if _VOLUNTARY in status and _INVOLUNTARY in status:
                        moved = read_fields(thread / "sched").get(_MIGRATIONS, "")
                        counts = (int(status[_VOLUNTARY]), int(status[_INVOLUNTARY]))
                        found[thread] = SwitchCounts(*counts, int(moved) if moved.isdigit() else None)
        return found


class OwnSwitchCounter:
    """Counts context switches of this process and its children from now on, without ended children's migrations."""

    def __init__(self) -> None:
        self._own = SwitchCounter([os.getpid()])
        self._children = _of_ended_children()

    def counts(self) -> SwitchCounts:
        return self._own.counts() + _since(self._children, _of_ended_children())


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


_SYSCALLS: Final = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")
_READING: Final = struct.Struct("=QQQ")
_TIME_ENABLED_AND_RUNNING: Final = 3
_INHERIT: Final = 1 << 1
_CLOSE_ON_EXEC: Final = 8
_ANY: Final = -1  # CPU or process
_PARANOID: Final = "proc/sys/kernel/perf_event_paranoid"
_SWITCHES: Final = 1 << 5 | 1 << 18 | 1 << 26
"""Flags: exclude kernel events, thread and time in each record, context switches."""
_NO_GROUP: Final = -1


class Event(Enum):
    """An event to count, by the kernel's type and number."""

    CPU_CYCLES = (0, 0)
    CACHE_MISSES = (0, 3)
    PAGE_FAULTS = (1, 2)
    CPU_MIGRATIONS = (1, 4)
    NOTHING = (1, 9)


class Counters:
    """Counts an event of processes and their later children until `close`; otherwise has a `reason` why it cannot."""

    def __init__(self, event: Event, pids: Iterable[int]) -> None:
        self.reason = ""
        self._descriptors: list[int] = []
        try:
            self._descriptors.extend(_open(event, pid) for pid in pids)
        except OSError as error:
            self.reason = _explain(error)
            self.close()

    def read(self) -> int | None:
        """Events so far, scaled if the CPU multiplexed its counters; ``None`` if they cannot be counted."""
        if not self._descriptors:
            return None
        total = 0
        for descriptor in self._descriptors:
            value, enabled, running = _READING.unpack(os.read(descriptor, _READING.size))
            total += int(value) if running in (0, enabled) else int(value * enabled / running)
        return total

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def switches_permitted(root: Path = Path("/")) -> Availability:
    """Checks if the kernel permits recording context switches of all processes; `root` is the folder of ``proc``."""
    try:
        os.close(_open(Event.NOTHING, _ANY, cpu=min(os.sched_getaffinity(0)), flags=_SWITCHES))
    except OSError as error:
        level = read_setting(root / _PARANOID)
        text = f"context switches of all processes are {_explain(error)}{f', which is {level}' if level else ''}"
        return Availability(False, text, "sudo sysctl kernel.perf_event_paranoid=0, or run it as root")
    return Availability(True)


def _open(event: Event, pid: int, *, cpu: int = _ANY, flags: int = _INHERIT) -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    kind, config = event.value
    attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, 0, 0, _TIME_ENABLED_AND_RUNNING, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    descriptor: int = libc.syscall(number, attributes, pid, cpu, _NO_GROUP, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor


def _explain(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not permitted (kernel.perf_event_paranoid)"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this CPU has no such counter, or the virtual machine does not pass it on"
    return str(error.strerror)


_CAP_SYS_PTRACE: Final = 19


def tracing_permitted(program: str, root: Path = Path("/")) -> Availability:
    """Checks if a child process may attach to other processes of this user; `root` is the folder of ``proc``."""
    text = read_setting(root / "proc/sys/kernel/yama/ptrace_scope")
    scope = int(text) if text.isdecimal() else 0  # the kernel may have no such module
    if scope == 0 or (has_capability(_CAP_SYS_PTRACE, root) and scope < 3):
        return Availability(True)
    remedy = "reboot with kernel.yama.ptrace_scope below 3" if scope >= 3 else "sudo sysctl kernel.yama.ptrace_scope=0"
    reason = f"{program} may not attach to processes (kernel.yama.ptrace_scope is {scope})"
    return Availability(False, reason, f"{remedy}, or run it as root")


def has_capability(number: int, root: Path = Path("/")) -> bool:
    """True if this process has a capability, by the kernel's number; `root` is the folder of ``proc``."""
    return bool(int(read_fields(root / "proc/self/status").get("CapEff", "0"), 16) >> number & 1)
