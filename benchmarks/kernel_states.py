"""States of threads from ten million events of the kernel's scheduler, which are made up in memory.

python -m benchmarks.kernel_states [EVENTS]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.timing import least_costs
from pytest_ldos.base.ros2 import Kernel
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.stats import ReadStats, StreamStats, TraceInfo
from pytest_ldos.trace.execution.scheduling import build_thread_states

EVENTS = 10_000_000
REPEATS = 5
CPUS = 8
THREADS = 200
EPOCH_NS = 1_700_000_000_000_000_000
_BETWEEN_NS = 1000
_PREEMPTED, _SLEEPS = 0x100, 1

Ints = npt.NDArray[np.int32]


def made_up(events: int) -> DecodedTrace:
    """Half switches, half wakeups, of threads chosen at random."""
    random = np.random.default_rng(1)
    switches = events // 2
    cpu = random.integers(0, CPUS, switches).astype(np.int32)
    following = np.where(random.random(switches) < 0.3, 0, random.integers(1, THREADS, switches)).astype(np.int32)
    state = np.where(random.random(switches) < 0.3, _PREEMPTED, _SLEEPS).astype(np.int64)
    leaving = _occupants(cpu, following)
    switch: dict[str, npt.NDArray[Any]] = {
        "prev_comm": leaving.astype(np.uint32),
        "prev_tid": leaving,
        "prev_state": state,
        "next_comm": following.astype(np.uint32),
        "next_tid": following,
    }
    woken = random.integers(1, THREADS, events - switches).astype(np.int32)
    target = random.integers(0, CPUS, len(woken)).astype(np.int32)
    wakeup = {"comm": woken.astype(np.uint32), "tid": woken, "target_cpu": target}
    tables = (_table(Kernel.SWITCH, cpu, switch, random), _table(Kernel.WAKEUP, target, wakeup, random))
    info = TraceInfo(Path("kernel"), {"hostname": "made up", "domain": "kernel"}, "monotonic", 0)
    stats = ReadStats((StreamStats(Path("kernel/s"), 0, 1, events, 0, ()),))
    return DecodedTrace(Path("kernel"), {table.name: table for table in tables}, (info,), stats)


def _occupants(cpu: Ints, following: Ints) -> Ints:
    """The thread that each switch takes off its CPU."""
    order = np.argsort(cpu, kind="stable")
    leaving = np.zeros_like(following)
    leaving[order[1:]] = np.where(cpu[order][1:] == cpu[order][:-1], following[order[:-1]], 0)
    return leaving


def _table(name: str, cpu: Ints, columns: Mapping[str, npt.NDArray[Any]], random: np.random.Generator) -> EventTable:
    words = tuple(f"thread-{number}" for number in range(THREADS))
    times_ns = np.sort(random.integers(0, 2 * len(cpu) * _BETWEEN_NS, len(cpu))) + EPOCH_NS
    made = {
        key: Column(name=key, values=values, dictionary=words if key.endswith("comm") else None)
        for key, values in columns.items()
    }
    return EventTable(name, times_ns, cpu, np.broadcast_to(np.uint32(0), len(cpu)), made)


def main() -> None:
    events = int(float(sys.argv[1])) if len(sys.argv) > 1 else EVENTS
    trace = made_up(events)
    cost = least_costs({"": partial(build_thread_states, trace)}, REPEATS)[""]
    print(
        f"Thread states of {events:,} kernel events take {cost.cpu_s:.2f} s of CPU, {cost.kernel_s:.2f} s of it in the"
        f" kernel, for pages; {cost.cpu_s / events * 1e9:.0f} ns an event."
    )


if __name__ == "__main__":
    main()
