"""Part of a stack's work that is done on its own CPUs, as the proof that it has them.

Source: context switches of its threads, or, if none were recorded, the CPUs of its own events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from pytest_ldos.host.cpu import MOST_CPUS
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.scheduling import RUNNING
from pytest_ldos.trace.perf import thread_owners


@dataclass(frozen=True)
class Placed:
    """Work of a stack in a trial, and the part of it on its CPUs: nanoseconds of CPU time, or numbers of events."""

    on: int
    whole: int
    is_time: bool


def find_work(
    trace: DecodedTrace, states: pl.DataFrame, cpus: Mapping[int, Collection[int]]
) -> Callable[[TrialSpan], Placed | None]:
    """Finds the work of processes whose CPUs are given by pid; the result returns that in a trial, if there is any."""
    if not cpus:
        return lambda trial: None
    owners = thread_owners(trace) if len(states) else {}
    allowed = {tid: cpus[pid] for tid, pid in owners.items() if pid in cpus}
    runs = states.filter((pl.col("state") == RUNNING) & pl.col("tid").is_in(list(allowed)))
    is_time = len(runs) > 0
    if is_time:
        begins, ends, who, on = (runs[name].to_numpy() for name in ("begin_ns", "end_ns", "tid", "cpu"))
    else:
        allowed = dict(cpus)
        tables = [each for each in trace.events.values() if "vpid" in each.columns]
        rows = [np.stack([each.timestamp_ns, each["vpid"], each.cpu_id]) for each in tables]
        begins, who, on = np.concatenate([np.zeros((3, 0), np.int64), *rows], axis=1)
        ends = begins + 1
    is_ours = np.isin(who, list(allowed)) & (on >= 0)
    places = [owner * MOST_CPUS + cpu for owner, its in allowed.items() for cpu in its]
    is_on = np.isin(who.astype(np.int64) * MOST_CPUS + on, places)

    def within(trial: TrialSpan) -> Placed | None:
        until = max([trial.end_ns or 0, *trial.phases.values()])
        parts = np.clip(np.minimum(ends, until) - np.maximum(begins, trial.begin_ns), 0, None)
        whole = int(parts[is_ours].sum())
        return Placed(int(parts[is_on].sum()), whole, is_time) if whole else None

    return within
