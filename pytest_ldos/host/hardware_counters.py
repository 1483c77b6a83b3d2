"""Hardware and kernel counters of processes, and the permission to attach to processes.

Reference: ``perf_event_open(2)``. Virtual machines often lack hardware counters; the kernel may refuse them
to users (``kernel.perf_event_paranoid``).

Reference: ``ptrace(2)``; the kernel's ``Documentation/admin-guide/LSM/Yama.rst``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final

from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import read_setting

_SYSCALLS: Final = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")
_READING: Final = struct.Struct("=QQQ")
_TIME_ENABLED_AND_RUNNING: Final = 3
_INHERIT: Final = 1 << 1
_CLOSE_ON_EXEC: Final = 8
_ANY_CPU: Final = -1
_ANY_PROCESS: Final = -1
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
    """Counts an event of processes and their later children until `close`.

    Attributes:
        reason: reason why it cannot be counted here; empty if it can.
    """

    def __init__(self, event: Event, pids: Iterable[int]) -> None:
        self.reason = ""
        self._descriptors: list[int] = []
        try:
            self._descriptors.extend(_open(event, pid) for pid in pids)
        except OSError as error:
            self.reason = _explain(error)
            self.close()

    def read(self) -> int | None:
        """Events of all processes so far; ``None`` if they cannot be counted.

        If the CPU multiplexed its counters, the counts are scaled to the whole time.
        """
        if not self._descriptors:
            return None
        return sum(_read(descriptor) for descriptor in self._descriptors)

    def close(self) -> None:
        """Stops counting. May be called repeatedly."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def switches_permitted(root: Path = Path("/")) -> Availability:
    """Checks if the kernel permits recording context switches of all processes.

    Args:
        root: below which ``proc`` is, for tests.
    """
    try:
        os.close(_open(Event.NOTHING, _ANY_PROCESS, cpu=min(os.sched_getaffinity(0)), flags=_SWITCHES))
    except OSError as error:
        level = read_setting(root / _PARANOID)
        text = f"context switches of all processes are {_explain(error)}{f', which is {level}' if level else ''}"
        return Availability(False, text, "sudo sysctl kernel.perf_event_paranoid=0, or run it as root")
    return Availability(True)


def _open(event: Event, pid: int, *, cpu: int = _ANY_CPU, flags: int = _INHERIT) -> int:
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


def _read(descriptor: int) -> int:
    value, enabled, running = _READING.unpack(os.read(descriptor, _READING.size))
    return int(value) if running in (0, enabled) else int(value * enabled / running)


def _explain(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not permitted (kernel.perf_event_paranoid)"
    if error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this CPU has no such counter, or the virtual machine does not pass it on"
    return str(error.strerror)


_CAP_SYS_PTRACE: Final = 19


def tracing_permitted(program: str, root: Path = Path("/")) -> Availability:
    """Checks if a child process may attach to other processes of this user.

    Args:
        root: below which ``proc`` is, for tests.
    """
    scope = _number(root / "proc/sys/kernel/yama/ptrace_scope")
    allowed = bool(_capabilities(root / "proc/self/status") >> _CAP_SYS_PTRACE & 1)
    if scope == 0 or (allowed and scope < 3):
        return Availability(True)
    remedy = "reboot with kernel.yama.ptrace_scope below 3" if scope >= 3 else "sudo sysctl kernel.yama.ptrace_scope=0"
    return Availability(
        False,
        f"{program} may not attach to processes (kernel.yama.ptrace_scope is {scope})",
        f"{remedy}, or run it as root",
    )


def _number(file: Path) -> int:
    """The number in a file; 0 if the kernel has no such module."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):
        return 0


def _capabilities(status: Path) -> int:
    try:
        lines = status.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
