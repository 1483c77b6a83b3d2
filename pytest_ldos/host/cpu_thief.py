"""A process that uses a share of one CPU: ``python -m pytest_ldos.host.cpu_thief CPU SHARE``.

If permitted (`SCHED_FIFO`, root or ``CAP_SYS_NICE``), it preempts everything, even a real-time control loop
(ros2_control's has priority 50), like a neighbour on the same machine; otherwise it competes, and gets less on a busy
CPU. It never uses more, because it measures its own CPU time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final, NoReturn

NAME: Final = "cpu_thief"
PRIORITY: Final = 90  # real-time priority, below the kernel's own threads
PERIOD_NS: Final = 10_000_000
_NS_PER_S: Final = 1_000_000_000


def thief_commands(share: float) -> dict[str, list[str]]:
    """One named command for each CPU that this process may use; none for a share of 0."""
    cpus = sorted(os.sched_getaffinity(0)) if share > 0 else []
    return {f"{NAME}_{cpu}": [sys.executable, "-m", "pytest_ldos.host.cpu_thief", str(cpu), str(share)] for cpu in cpus}


def steal(cpu: int, share: float) -> NoReturn:
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    while True:
        ends_ns = time.monotonic_ns() + PERIOD_NS
        has_had_ns = time.thread_time_ns() + round(share * PERIOD_NS)
        while time.thread_time_ns() < has_had_ns and time.monotonic_ns() < ends_ns:
            pass
        time.sleep(max(0, ends_ns - time.monotonic_ns()) / _NS_PER_S)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Path("/proc/self/comm").write_text(NAME, "ascii")
    steal(int(sys.argv[1]), float(sys.argv[2]))
