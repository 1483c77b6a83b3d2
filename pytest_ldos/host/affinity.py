"""CPU affinity: sets it for all threads of processes, and reads it back from each.

Affinity belongs to a thread. A new thread inherits it from its creator, also across ``fork`` and ``exec``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

Cpus = frozenset[int]

_MOST_PASSES: Final = 20


@dataclass(frozen=True)
class Thread:
    """One thread of a process.

    Attributes:
        name: as the kernel has it, ``move_group/dq.recv`` where it differs from the process's.
    """

    pid: int
    tid: int
    name: str

    def describe(self) -> str:
        return f"thread {self.tid} of {self.name} (pid {self.pid})"


def our_cpus() -> Cpus:
    """The CPUs that this process may use: those of the machine that we were given."""
    return frozenset(os.sched_getaffinity(0))


def describe_cpus(cpus: Collection[int]) -> str:
    """``0-2,5``, as the kernel writes it."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def with_descendants(pids: Iterable[int]) -> list[int]:
    """Those of the processes that still run, and all their descendants."""
    found: dict[int, None] = {}
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found.update(dict.fromkeys([pid, *(child.pid for child in process.children(recursive=True))]))
    return list(found)


def read_affinities(pids: Iterable[int]) -> dict[Thread, Cpus]:
    """CPUs of every thread of the processes, without those that have ended meanwhile."""
    found = {}
    for pid in pids:
        for thread in _threads(pid):
            with contextlib.suppress(ProcessLookupError):
                found[thread] = frozenset(os.sched_getaffinity(thread.tid))
    return found


def confine(pids: Callable[[], Iterable[int]], cpus: Cpus) -> dict[Thread, Cpus]:
    """Confines all threads of the processes to `cpus`; returns the CPUs that each had before.

    A thread that is confined to fewer of them already stays so. Passes are repeated until they find no new
    thread; whoever reads back sees a thread that resists.

    Raises:
        PermissionError: the processes are another user's; those that were confined have their CPUs back.
        OSError: none of the CPUs exists.
    """
    before = read_affinities(pids())
    try:
        for _ in range(_MOST_PASSES):
            outside = {thread: had for thread, had in read_affinities(pids()).items() if not had <= cpus}
            if not outside:
                break
            for thread, had in outside.items():
                before.setdefault(thread, had)
                _set(thread, had & cpus or cpus)
    except OSError:
        release(pids, before)
        raise
    return before


def release(pids: Callable[[], Iterable[int]], before: dict[Thread, Cpus]) -> None:
    """Gives every thread its former CPUs, and a thread created since those that its process had.

    Finds threads that are created meanwhile as `confine` does.
    """
    if not before:
        return
    of_process: dict[int, Cpus] = {}
    for thread, had in before.items():
        of_process[thread.pid] = of_process.get(thread.pid, frozenset()) | had
    widest = frozenset().union(*before.values())
    had_by_tid = {thread.tid: had for thread, had in before.items()}
    released: set[Thread] = set()
    for _ in range(_MOST_PASSES):
        left = read_affinities(pids()).keys() - released
        for thread in left:
            with contextlib.suppress(PermissionError):  # one that may not be touched was never confined
                _set(thread, had_by_tid.get(thread.tid, of_process.get(thread.pid, widest)))
        released |= left
        if not left:
            break


def _set(thread: Thread, cpus: Cpus) -> None:
    """Sets the CPUs of a thread; does nothing if it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(thread.tid, cpus)


def _threads(pid: int) -> Iterator[Thread]:
    folder = Path(f"/proc/{pid}/task")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        process = _name(folder / str(pid))
        for entry in os.listdir(folder):  # noqa: PTH208 - hundreds of threads, now and then while a stack is measured
            name = _name(folder / entry)
            yield Thread(pid, int(entry), name if name == process else f"{process}/{name}")


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text("utf-8", errors="replace").strip()
    except OSError:
        return "?"
