"""Times of whole runs, in a form that survives a machine shared with others.

What disturbs a machine only ever makes it slower, so the least of several runs counts; and what is
compared runs in turns, so that a busy moment falls on both.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Seconds of a run.

    Attributes:
        wall_s: from begin to end.
        cpu_s: of all threads, in the kernel too; of waited-for children where they ran it.
    """

    wall_s: float
    cpu_s: float


def cost_of(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), _cpu_seconds()
    work()
    return Cost(time.perf_counter() - wall, _cpu_seconds() - cpu)


def least_costs(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Cost]:
    """The least wall and the least CPU seconds of each, run in turns."""
    runs = [{name: cost_of(work) for name, work in works.items()} for _ in range(repeats)]
    return {name: Cost(min(run[name].wall_s for run in runs), min(run[name].cpu_s for run in runs)) for name in works}


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
