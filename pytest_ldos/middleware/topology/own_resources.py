"""What this process uses of CPU and memory."""

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
    """Of glibc's malloc.h."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def own_resources() -> dict[str, int]:
    """CPU time since the start (``cpu_ns``), glibc's allocator and the kernel's figures of memory in KiB.

    ``arena_kb`` is what the allocator has by ``sbrk``, ``mmap_kb`` what it has by ``mmap``, ``in_use_kb`` what of it is
    given out; zeros where the C library is another, or older than 2.33.

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
