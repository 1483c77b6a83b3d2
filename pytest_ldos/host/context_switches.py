"""Context switches and migrations of processes, as the kernel counts them for each thread.

Reference: ``proc(5)`` (``/proc/PID/task/TID/status``); the kernel's ``kernel/sched/debug.c`` (``sched``).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pytest_ldos.base.switch_counts import SwitchCounts

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
