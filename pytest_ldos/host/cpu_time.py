"""CPU time of processes that come and go."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

import psutil


class CpuTime:
    """CPU time that processes used since this object was made; an ended process counts with its last known time.

    Args:
        pids: processes that run already; those noted later count with all their time.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._at_begin = _read(pids)
        self._last = dict(self._at_begin)
        self._began_s = self._noted_s = time.monotonic()

    def note(self, pids: Iterable[int]) -> None:
        """Reads the present CPU time of the processes."""
        self._last.update(_read(pids))
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


def _read(pids: Iterable[int]) -> dict[int, float]:
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
