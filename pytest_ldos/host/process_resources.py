"""CPU time, peak memory, context switches and page faults of processes during a time span.

Use during a span is the growth of counters. A process that began within the span counts completely. One that ended
within it counts up to its end, if the kernel reports exits (`host.task_exits`). The peak of memory is reset when the
span begins.

Reference: ``proc(5)`` (``/proc/PID/stat``, ``status``, ``clear_refs``, ``task/TID/schedstat``);
``clock_getcpuclockid(3)`` for the CPU time of a process, which has that of threads which ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from pytest_ldos.host.process_times import Key, ProcessTimes, process_cpu_ns, read_process_times
from pytest_ldos.host.task_exits import TaskExit, TaskExits

Names = Mapping[int, str]
"""Names of a stack's processes, by pid."""

_RESET_PEAK: Final = "5"
_KIB: Final = 1024
_SWITCHES: Final = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


@dataclass(frozen=True, kw_only=True)
class ThreadUse:
    """Resource use of a thread in a span.

    Attributes:
        cpu_ns: ``None`` if the kernel does not count it.
    """

    name: str
    cpu_ns: int | None
    switches: int
    faults: int


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """Resource use of a process and its children in a span.

    Attributes:
        name: name in the stack; a child process has its parent's.
        has_begun: True if it began within the span.
        has_ended: True if it ended within the span.
        peak_bytes: peak of private memory, without file pages and shared memory such as the tracer's
            buffers.
        resident_bytes: peak of resident memory.
        grown_bytes: growth of private memory over the span.
        is_peak_known: False if the kernel could not reset the peak, which is then the larger value at the ends.
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
    has_ended: bool = False
    threads: tuple[ThreadUse, ...] = ()


@dataclass(frozen=True)
class StackUse:
    """Resource use of a stack's processes in a span.

    Attributes:
        lost: names, by pid, of processes that ended within the span and whose use is unknown.
    """

    processes: tuple[ProcessUse, ...]
    lost: Mapping[int, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of its processes, including ended ones."""
        return sorted({*(each.name for each in self.processes), *self.lost.values()})


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
    """Measures resource use from its creation until it is closed.

    Args:
        processes: returns a stack's running processes, by pid; called at both ends of the span.
        all_processes: the same including ended processes.
    """

    def __init__(self, processes: Callable[[], Names], all_processes: Callable[[], Names] = dict) -> None:
        self._processes = processes
        self._all_processes = all_processes
        self._ends = TaskExits()
        self._exits: list[TaskExit] = []
        named = processes()
        self._named = frozenset(named)
        self._before = _read_all(named)
        self._is_reset = {key for key in self._before if _reset_peak(key[0])}

    def measure(self) -> StackUse:
        """Resource use since creation."""
        now = _read_all(self._processes())
        self._exits += self._ends.take()
        ended = self._ended(now)
        known = {each.pid for each in ended} if self._ends.is_whole else set()
        gone = {key[0]: each.name for key, each in self._before.items() if key not in now and key[0] in self._named}
        return StackUse(
            (*(self._use(key, each) for key, each in now.items()), *ended),
            {pid: name for pid, name in gone.items() if pid not in known},
        )

    def _use(self, key: Key, now: _Process) -> ProcessUse:
        before = self._before.get(key, _NOTHING)
        is_peak_known = key in self._is_reset or key not in self._before
        resident = now.peak_bytes if is_peak_known else max(before.resident_bytes, now.resident_bytes)
        over = [each for each in self._exits if each.pid == key[0] and str(each.tid) not in now.threads]
        threads = (
            *(_thread_use(before.threads.get(tid, _NO_THREAD), each) for tid, each in now.threads.items()),
            *(_ended_thread(before, each) for each in over),
        )
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

    def _ended(self, now: Mapping[Key, _Process]) -> list[ProcessUse]:
        """Use of the stack's ended processes, up to their ends."""
        running = {key[0] for key in now}
        before = {key[0]: each for key, each in self._before.items() if key[0] not in running}
        exits: dict[int, list[TaskExit]] = {}
        for each in self._exits:
            if each.pid not in running:
                exits.setdefault(each.pid, []).append(each)
        names = dict(self._all_processes())
        names.update({key[0]: each.name for known in (self._before, now) for key, each in known.items()})
        parents = {pid: threads[0].parent for pid, threads in exits.items()}
        shared = {each.name: each.shared_bytes for known in (self._before, now) for each in known.values()}
        found = []
        for pid, threads in exits.items():
            name = _name_of(pid, names, parents)
            if name is not None and any(each.tid == pid for each in threads):
                first = before.get(pid, _Process(name, 0, 0, 0, shared.get(name, 0), 0))
                found.append(_ended_process(pid, first, threads, has_begun=pid not in before))
        return found

    def close(self) -> None:
        self._ends.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _name_of(pid: int | None, names: Names, parents: Mapping[int, int]) -> str | None:
    """Name of an ended process, or of its nearest named ancestor."""
    for _ in range(len(parents) + 1):
        if pid is None or pid in names:
            break
        pid = parents.get(pid)
    return None if pid is None else names.get(pid)


def _ended_process(pid: int, before: _Process, exits: Sequence[TaskExit], *, has_begun: bool) -> ProcessUse:
    threads = tuple(_ended_thread(before, each) for each in exits)
    resident = max(each.peak_bytes for each in exits)
    return ProcessUse(
        name=before.name,
        pid=pid,
        has_begun=has_begun,
        has_ended=True,
        cpu_ns=sum(each.cpu_ns or 0 for each in threads),
        switches=sum(each.switches for each in threads),
        faults=sum(each.faults for each in threads),
        peak_bytes=max(resident - before.shared_bytes, 0),
        resident_bytes=resident,
        grown_bytes=-before.private_bytes,
        threads=threads,
    )


def _ended_thread(process: _Process, end: TaskExit) -> ThreadUse:
    """Use of a thread from the begin of the span to its exit."""
    before = process.threads.get(str(end.tid), _NO_THREAD)
    now = _Thread(end.name, end.cpu_ns, end.switches, end.faults)
    return _thread_use(before, now)


def _thread_use(before: _Thread, now: _Thread) -> ThreadUse:
    cpu_ns = None if now.cpu_ns is None or before.cpu_ns is None else now.cpu_ns - before.cpu_ns
    return ThreadUse(
        name=now.name, cpu_ns=cpu_ns, switches=now.switches - before.switches, faults=now.faults - before.faults
    )


def _read_all(names: Names) -> dict[Key, _Process]:
    """Reads the processes and their descendants; skips those that end meanwhile."""
    found = {}
    times = read_process_times()
    for key, name in _with_descendants(names, times).items():
        with contextlib.suppress(OSError, ValueError, IndexError, KeyError):  # it has ended
            found[key] = _read(key[0], name)
    return found


def _with_descendants(names: Names, times: ProcessTimes) -> dict[Key, str]:
    """Name of each process: its own, or that of its nearest named ancestor."""
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
    """Run time of a thread; ``None`` if the kernel does not count it."""
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
    """Resets a process's peak of memory; False if that is not possible."""
    try:
        Path(f"/proc/{pid}/clear_refs").write_text(_RESET_PEAK, "ascii")
    except OSError:
        return False
    return True
