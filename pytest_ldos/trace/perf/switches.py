"""Context switches that perf recorded beside a trace, as the table that lttng-modules' kernel events give.

perf sees who leaves a CPU, whether it could have run on, and who gets the CPU. It sees no wakeups: a thread counts as
blocked until it runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.tracepoints import Kernel
from pytest_ldos.trace.ctf.origin import TraceInfo
from pytest_ldos.trace.ctf.place import opened
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.stats import Gap, StreamStats
from pytest_ldos.trace.ctf.tables import Column, EventTable
from pytest_ldos.trace.perf.data import PerfRecords, read_perf_records

SWITCHES_FOLDER: Final = "switches"
"""Folder in that of a trace with perf's data files, one for each time that the recording went on."""

_IDLE, _ENDED = 0, -1
"""Thread ids: of the idle threads, and of a thread that leaves its CPU for the last time."""

_RUNS_ON, _SLEEPS, _DEAD = 0, 1, 0x10
"""Values of `prev_state`: none, ``TASK_INTERRUPTIBLE``, ``EXIT_DEAD``."""

Numbers = npt.NDArray[np.int64]


def with_switches(trace: DecodedTrace) -> DecodedTrace:
    """The trace with the context switches that perf recorded beside it; kernel events of its own are preferred.

    Raises:
        TraceUnreadable: a file of perf's is damaged.
    """
    clocks = [each for each in trace.traces if each.domain == "ust"]
    own = trace.events.get(Kernel.SWITCH)
    if not clocks or (own is not None and len(own)):
        return trace
    found = _records(trace)
    if not found:
        return trace
    origin, number = clocks[0], len(trace.traces)
    files, parts = list(found), list(found.values())
    environment: Mapping[str, str | int] = {"hostname": origin.host, "domain": "kernel", "tracer_name": "perf"}
    info = TraceInfo(files[0].parent, environment, origin.clock, origin.clock_offset_ns)
    events = sum(len(part.switches) for part in parts)
    stream = StreamStats(files[0], number, len(parts), events, 0, tuple(_gaps(parts, origin.clock_offset_ns)))
    return replace(
        trace,
        events={**trace.events, Kernel.SWITCH: _to_table(parts, origin.clock_offset_ns, number)},
        traces=(*trace.traces, info),
        stats=replace(trace.stats, streams=(*trace.stats.streams, stream)),
    )


def thread_owners(trace: DecodedTrace) -> dict[int, int]:
    """Pid of each thread that perf saw, by tid; empty without perf's files.

    Raises:
        TraceUnreadable: a file of perf's is damaged.
    """
    parts = [each.switches[["tid", "pid"]] for each in _records(trace).values()]
    return dict(np.unique(np.concatenate(parts)).tolist()) if parts else {}


def _records(trace: DecodedTrace) -> dict[Path, PerfRecords]:
    """Content of each of perf's files, in their order."""
    with opened(trace.directory) as found:
        files = sorted((found.folder / SWITCHES_FOLDER).glob("*.data"))
        return {found.name_of(file): read_perf_records(file) for file in files}


def _to_table(parts: Sequence[PerfRecords], offset_ns: int, number: int) -> EventTable:
    """One row for each switch: perf's record of who leaves, or that of who comes where there is no other."""
    switches = np.concatenate([part.switches for part in parts])
    is_out, preempted = (np.concatenate([getattr(part, name) for part in parts]) for name in ("is_out", "is_preempted"))
    one = is_out | ~_follows_its_out(switches, is_out)
    order = np.flatnonzero(one)[np.argsort(switches["time"][one], kind="stable")]
    found, leaves = switches[order], is_out[order]
    tids, others, times = (found[name].astype(np.int64) for name in ("tid", "other", "time"))
    before, after = np.where(leaves, tids, others), np.maximum(np.where(leaves, others, tids), _IDLE)
    has_ended = before <= _ENDED
    before = np.where(has_ended, _occupants(found["cpu"].astype(np.int64), after), before)
    state = np.where(has_ended, _DEAD, np.where(preempted[order], _RUNS_ON, _SLEEPS))
    known = before > _ENDED
    found, times, before, after, state = found[known], times[known], before[known], after[known], state[known]
    names = {tid: name for part in parts for tid, name in part.names.items()}
    columns = [
        _names("prev_comm", before, names),
        Column(name="prev_tid", values=before.astype(np.int32)),
        Column(name="prev_state", values=state),
        _names("next_comm", after, names),
        Column(name="next_tid", values=after.astype(np.int32)),
    ]
    return EventTable(
        Kernel.SWITCH,
        times + offset_ns,
        found["cpu"].astype(np.int32),
        np.full(len(found), number, dtype=np.uint32),
        {column.name: column for column in columns},
    )


def _follows_its_out(switches: npt.NDArray[Any], is_out: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """True for a thread that gets the CPU where the record before says of another that it leaves it to this one.

    Idle threads have no records of their own, nor have some of the kernel's.
    """
    order = np.lexsort((switches["time"], switches["cpu"]))
    then, here = order[:-1], order[1:]
    found = np.zeros(len(switches), dtype=np.bool_)
    is_pair = is_out[then] & ~is_out[here] & (switches["cpu"][then] == switches["cpu"][here])
    found[here] = is_pair & (switches["other"][then] == switches["tid"][here])
    return found


def _occupants(cpus: Numbers, after: Numbers) -> Numbers:
    """Thread that had the CPU before each switch, by the one before on the same CPU; `_ENDED` where there was none."""
    order = np.argsort(cpus, kind="stable")
    found = np.full(len(cpus), _ENDED, dtype=np.int64)
    is_next = cpus[order][1:] == cpus[order][:-1]
    found[order[1:][is_next]] = after[order[:-1][is_next]]
    return found


def _names(name: str, tids: Numbers, names: Mapping[int, str]) -> Column:
    distinct, codes = np.unique(tids, return_inverse=True)
    words = tuple("swapper" if tid == _IDLE else names.get(tid, "") for tid in distinct.tolist())
    return Column(name=name, values=codes.astype(np.int32), dictionary=words)


def _gaps(parts: Sequence[PerfRecords], offset_ns: int) -> Iterator[Gap]:
    """Spans without records: between two files, and before each report of a loss."""
    for part in parts:
        for time_ns, cpu, lost in part.losses:
            times = part.switches["time"][part.switches["cpu"] == cpu]
            earlier = times[times <= time_ns]
            since_ns = int(earlier.max()) if earlier.size else 0
            yield Gap(since_ns + offset_ns, time_ns + offset_ns, lost, 0)
    spans = [(int(each.min()), int(each.max())) for part in parts if (each := part.switches["time"]).size]
    for (_, ended_ns), (began_ns, _) in pairwise(sorted(spans)):
        yield Gap(ended_ns + offset_ns, began_ns + offset_ns - 1, 0, 0)
