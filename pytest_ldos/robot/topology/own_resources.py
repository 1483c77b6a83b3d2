"""CPU and memory usage of this process."""

from __future__ import annotations

import ctypes
import os
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

_FIELDS: Final = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)
_KIB: Final = 1024
_STATM: Final = Path("/proc/self/statm")


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc's malloc.h."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def own_resources() -> dict[str, int]:
    """Returns CPU time since the start (``cpu_ns``), and memory in KiB according to glibc and the kernel.

    ``arena_kb`` is the allocator's memory from ``sbrk``, ``mmap_kb`` that from ``mmap``, ``in_use_kb`` the allocated
    part; all are zero with another C library, or glibc before 2.33.

    Reference: mallinfo(3), proc_pid_statm(5).
    """
    virtual_pages, resident_pages = (int(word) for word in _STATM.read_text("ascii").split()[:2])
    page_kb = os.sysconf("SC_PAGESIZE") // _KIB
    heap = _mallinfo2()
    found = heap() if heap is not None else _Mallinfo2()
    return {
        "cpu_ns": time.process_time_ns(),
        "arena_kb": found.arena // _KIB,
        "in_use_kb": found.uordblks // _KIB,
        "mmap_kb": found.hblkhd // _KIB,
        "rss_kb": resident_pages * page_kb,
        "vsz_kb": virtual_pages * page_kb,
    }


@cache
def _mallinfo2() -> Any:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is not None:
        function.restype = _Mallinfo2
    return function
