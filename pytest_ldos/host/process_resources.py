"""CPU time, peak memory, context switches and page faults of processes during a span of time.

Counters grow, so a span is what they gained; a process that began within it has gained all that it has. The peak of
memory is reset when the span begins.

Reference: ``proc(5)`` (``/proc/PID/stat``, ``status``, ``clear_refs``, ``task/TID/schedstat``);
``clock_getcpuclockid(3)`` for the CPU time of a process, which has that of threads which ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.host.cpu_time import process_cpu_ns
from pytest_ldos.host.process_times import Key, ProcessTimes, read_process_times

Names = Mapping[int, str]
"""Processes by pid, under the names that they have in their stack."""

_RESET_PEAK: Final = "5"
_KIB: Final = 1024
_SWITCHES: Final = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


@dataclass(frozen=True, kw_only=True)
class ThreadUse:
    """Resources that a thread used in a span; one that ended within it is not known.

    Attributes:
        cpu_ns: ``None`` where the kernel does not count it.
    """

    name: str
    cpu_ns: int | None
    switches: int
    faults: int


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """Resources that a process and those that it started used in a span.

    Attributes:
        name: that in its stack; a process that another one started has that one's.
        has_begun: True if it began within the span, in place of another one of its name or beside it.
        peak_bytes: most memory of its own at one time: neither pages of files nor shared memory, such as the tracer's
            buffers; of a process that began within the span since then.
        resident_bytes: most memory at one time, all of it.
        grown_bytes: memory of its own at the end beyond that at the begin.
        is_peak_known: False where the kernel could not be told to begin again: the peak is then that at either end.
    """

    name: str
    pid: int
    has_begun: bool
    cpu_ns: int
    switches: int
    faults: int
    peak_bytes: int
    resident_bytes: int
    grown_bytes: int
    is_peak_known: bool = True
    threads: tuple[ThreadUse, ...] = ()


@dataclass(frozen=True)
class StackUse:
    """Resources that the processes of a stack used in a span.

    Attributes:
        ended: names of processes that ran at the begin and have no successor at the end.
    """

    processes: tuple[ProcessUse, ...]
    ended: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of its processes, also of those that ended."""
        return sorted({*(each.name for each in self.processes), *self.ended})


@dataclass(frozen=True)
class _Thread:
    name: str
    cpu_ns: int | None
    switches: int
    faults: int


@dataclass(frozen=True)
class _Process:
    name: str
    cpu_ns: int
    faults: int
    private_bytes: int
    shared_bytes: int
    peak_bytes: int
    threads: Mapping[str, _Thread] = field(default_factory=dict)

    @property
    def resident_bytes(self) -> int:
        return self.private_bytes + self.shared_bytes


_NOTHING: Final = _Process("", 0, 0, 0, 0, 0)
_NO_THREAD: Final = _Thread("", 0, 0, 0)


class ResourceMeter:
    """Measures the use of resources from when it is made.

    Args:
        processes: tells the processes of a stack that run, by pid; is asked at both ends of the span.
    """

    def __init__(self, processes: Callable[[], Names]) -> None:
        self._processes = processes
        self._before = _read_all(processes())
        self._is_reset = {key for key in self._before if _reset_peak(key[0])}

    def measure(self) -> StackUse:
        """Use of resources since this object was made."""
        now = _read_all(self._processes())
        return StackUse(
            tuple(self._use(key, each) for key, each in now.items()),
            tuple(sorted({each.name for each in self._before.values()} - {each.name for each in now.values()})),
        )

    def _use(self, key: Key, now: _Process) -> ProcessUse:
        before = self._before.get(key, _NOTHING)
        is_peak_known = key in self._is_reset or key not in self._before
        resident = now.peak_bytes if is_peak_known else max(before.resident_bytes, now.resident_bytes)
        threads = tuple(_thread_use(before.threads.get(tid, _NO_THREAD), each) for tid, each in now.threads.items())
        return ProcessUse(
            name=now.name,
            pid=key[0],
            has_begun=key not in self._before,
            cpu_ns=max(0, now.cpu_ns - before.cpu_ns),
            switches=sum(each.switches for each in threads),
            faults=now.faults - before.faults,
            peak_bytes=max(resident - now.shared_bytes, now.private_bytes),
            resident_bytes=resident,
            grown_bytes=now.private_bytes - before.private_bytes,
            is_peak_known=is_peak_known,
            threads=threads,
        )


def _thread_use(before: _Thread, now: _Thread) -> ThreadUse:
    cpu_ns = None if now.cpu_ns is None or before.cpu_ns is None else now.cpu_ns - before.cpu_ns
    return ThreadUse(
        name=now.name, cpu_ns=cpu_ns, switches=now.switches - before.switches, faults=now.faults - before.faults
    )


def _read_all(names: Names) -> dict[Key, _Process]:
    """The processes and their descendants; those that end meanwhile are left out."""
    found = {}
    times = read_process_times()
    for key, name in _with_descendants(names, times).items():
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # it has ended
            found[key] = _read(key[0], name)
    return found


def _with_descendants(names: Names, times: ProcessTimes) -> dict[Key, str]:
    """Names by process: its own, or that of the nearest ancestor that has one."""
    parents = {key[0]: each.parent for key, each in times.items()}
    found = {}
    for key in times:
        pid: int | None = key[0]
        while pid is not None and pid not in names:
            pid = parents.get(pid)
        if pid is not None:
            found[key] = names[pid]
    return found


def _read(pid: int, name: str) -> _Process:
    folder = Path(f"/proc/{pid}")
    status = _status(folder / "status")
    sizes = {key: int(status[key].split()[0]) * _KIB for key in ("RssAnon", "RssFile", "RssShmem", "VmHWM")}
    threads = {}
    for task in (folder / "task").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # the thread has ended
            threads[task.name] = _read_thread(task)
    return _Process(
        name=name,
        cpu_ns=process_cpu_ns(pid),
        faults=_faults(folder / "stat"),
        private_bytes=sizes["RssAnon"],
        shared_bytes=sizes["RssFile"] + sizes["RssShmem"],
        peak_bytes=sizes["VmHWM"],
        threads=threads,
    )


def _read_thread(task: Path) -> _Thread:
    status = _status(task / "status")
    switches = sum(int(status[key]) for key in _SWITCHES)
    return _Thread(status["Name"], _schedstat_ns(task / "schedstat"), switches, _faults(task / "stat"))


def _schedstat_ns(file: Path) -> int | None:
    """Time for which a thread ran; ``None`` with a kernel that does not count it."""
    try:
        return int(file.read_text("ascii").split()[0])
    except (FileNotFoundError, IndexError):
        return None


def _faults(file: Path) -> int:
    """Minor and major page faults."""
    fields = file.read_text("utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[7]) + int(fields[9])


def _status(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8", errors="replace").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _reset_peak(pid: int) -> bool:
    """Makes a process' peak of memory that of now; False where that is not possible."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK, "ascii")
    except OSError:
        return False
    return True
