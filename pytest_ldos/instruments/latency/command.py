"""The prefix of a program's command, which sets its CPUs and scheduling class."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

from pytest_ldos.instruments.latency.spec import NO_CPU, NOT_SET, LatencySpec

_CHRT: Final = "chrt"
TASKSET: Final = "taskset"


def prefix_of(spec: LatencySpec, cpus: tuple[int, ...]) -> list[str]:
    """Returns a command that ends in an ``exec``, or an empty list.

    Args:
        cpus: CPUs to pin the program to; `NO_CPU` among them leaves it unpinned.
    """
    pinned = [] if NO_CPU in cpus else [TASKSET, "--cpu-list", ",".join(map(str, sorted(set(cpus))))]
    real_time = [_CHRT, "--fifo", str(spec.priority)] if spec.priority != NOT_SET else []
    return [*pinned, *real_time]


def why_no_priority(priority: int) -> str:
    """Returns why processes may not have SCHED_FIFO; empty if they may, or if `priority` is not set."""
    if priority == NOT_SET:
        return ""
    if shutil.which(_CHRT) is None:
        return f"{_CHRT} not found (sudo apt-get install util-linux)"
    tried = subprocess.run(
        [_CHRT, "--fifo", str(priority), "true"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=10,
    )
    if tried.returncode == 0:
        return ""
    return f"{tried.stderr.strip() or 'refused'} (needs CAP_SYS_NICE, or rtprio in /etc/security/limits.conf)"
