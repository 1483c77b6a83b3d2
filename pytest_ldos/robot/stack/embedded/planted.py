"""Resource faults for nodes of the embedded stack: leaked memory and wasted CPU time."""

from __future__ import annotations

import time
from typing import Final

_BYTES_PER_MB: Final = 1_000_000


class Leak:
    """Leaks memory.

    Args:
        megabytes: leaked each time; 0 leaks nothing.
    """

    def __init__(self, megabytes: float) -> None:
        self._size = round(megabytes * _BYTES_PER_MB)
        self._kept: list[bytes] = []

    def leak(self) -> None:
        if self._size:
            self._kept.append(b"\1" * self._size)  # written to, so that each page is allocated


class CpuWaste:
    """Makes its process use more CPU time.

    Args:
        share: of the CPU time that the process uses otherwise; 0 wastes nothing.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began_s = time.process_time()
        self._wasted_s = 0.0

    def waste(self) -> None:
        """Computes until the share of the CPU time used since the creation of this object is reached."""
        due_s = self._share * (time.process_time() - self._began_s - self._wasted_s) - self._wasted_s
        begin_s = time.thread_time()
        while time.thread_time() - begin_s < due_s:
            pass
        self._wasted_s += time.thread_time() - begin_s if due_s > 0 else 0.0
