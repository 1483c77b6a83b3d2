"""Times of whole runs, in a form that survives a machine shared with others.

What disturbs a machine only ever makes it slower, so the least of several runs counts; and what is
compared runs interleaved, so that a busy moment falls on both.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Seconds of a run.

    Attributes:
        wall_s: from begin to end.
        cpu_s: of all threads, in the kernel too; of waited-for children where they ran it.
        kernel_s: the part of `cpu_s` in the kernel: pages of memory and of the file, mostly.
        busiest_s: CPU seconds of this thread or of all others together, whichever is more: with two
            threads, what the wall clock would show if each had a core to itself.
    """

    wall_s: float
    cpu_s: float
    kernel_s: float = 0.0
    busiest_s: float = 0.0


def cost_of(work: Callable[[], object]) -> Cost:
    wall, (cpu, kernel), own = time.perf_counter(), _cpu_seconds(), time.thread_time()
    result = work()
    wall, (cpu_after, kernel_after), own = time.perf_counter() - wall, _cpu_seconds(), time.thread_time() - own
    del result
    used = cpu_after - cpu
    return Cost(wall, used, kernel_after - kernel, max(own, used - own))


def cost_of_children(work: Callable[[], object]) -> Cost:
    """CPU time of the processes that the work waits for, without this one."""
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    kernel = after.ru_stime - before.ru_stime
    return Cost(wall, after.ru_utime - before.ru_utime + kernel, kernel)


def least_costs(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Cost]:
    """The least wall and the least CPU seconds of each, run interleaved."""
    runs = [{name: cost_of(work) for name, work in works.items()} for _ in range(repeats)]
    return {name: _least([each[name] for each in runs]) for name in works}


def _least(costs: Sequence[Cost]) -> Cost:
    cheapest = min(costs, key=lambda cost: cost.cpu_s)
    return Cost(
        wall_s=min(cost.wall_s for cost in costs),
        cpu_s=cheapest.cpu_s,
        kernel_s=cheapest.kernel_s,
        busiest_s=min(cost.busiest_s for cost in costs),
    )


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _cpu_seconds() -> tuple[float, float]:
    """CPU time of this process and its children: total, and in the kernel."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    kernel = sum(each.ru_stime for each in used)
    return kernel + sum(each.ru_utime for each in used), kernel
