"""Context switches of watched processes: per trial and per message."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.ctf.tables import EventTable
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.execution.switches import count_switches

PROC: Final = "/proc"
KERNEL_EVENTS: Final = "kernel events"
_PID: Final = "vpid"
_WHOLE: Final = 100


@dataclass(frozen=True)
class Switches:
    """Context switches of watched processes.

    Attributes:
        source: ``kernel events`` or ``/proc``.
        messages: number of publications in that time; ``None`` if unknown.
        trials: number of trials in that time; ``None`` if there were none.
    """

    counts: SwitchCounts
    seconds: float
    source: str
    messages: int | None = None
    trials: int | None = None


def with_trace(found: Switches, directory: Path, window: tuple[int, int], pids: Sequence[int]) -> Switches:
    """Adds the number of published messages, and counts switches by kernel events if these were recorded.

    Args:
        window: nanoseconds since the epoch.
        pids: processes whose switches and messages count, because loads may be recorded, too.

    Raises:
        TraceUnreadable: see `read_trace`.
    """
    trace = read_trace(directory, events={Ros2.RMW_PUBLISH, *SCHEDULING_EVENTS}, window=window)
    published = trace.events.get(Ros2.RMW_PUBLISH)
    found = dataclasses.replace(found, messages=None if published is None else _count(published, pids))
    states = build_thread_states(trace)
    if not len(states):
        return found
    tids = [int(thread.name) for pid in pids for thread in _threads(pid)]
    counts = count_switches(states, begin_ns=window[0], end_ns=window[1], tids=tids)
    return dataclasses.replace(found, counts=counts, source=KERNEL_EVENTS)


def _count(published: EventTable, pids: Sequence[int]) -> int:
    """Messages of these processes; of all processes if the trace does not contain process ids."""
    return int(np.isin(published[_PID], pids).sum()) if _PID in published.columns else len(published)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def describe_switches(counted: Sequence[Switches]) -> str:
    """Describes context switches and migrations: total, per trial and per message; empty if none were counted."""
    if not counted:
        return ""
    total = counted[0].counts
    for each in counted[1:]:
        total += each.counts
    seconds = sum(each.seconds for each in counted)
    moved = "unknown migrations" if total.migrations is None else f"{total.migrations} migrations"
    shown = f"{total.voluntary} voluntary / {total.involuntary} involuntary context switches / {moved}"
    rates = [_rates(total, what, sum(each)) for what, each in _denominators(counted) if sum(each)]
    return "; ".join([f"{shown} in {seconds:.1f} s ({counted[0].source})", *rates])


def _denominators(counted: Sequence[Switches]) -> Iterator[tuple[str, list[int]]]:
    for what, values in (
        ("trial", [each.trials for each in counted]),
        ("message", [each.messages for each in counted]),
    ):
        known = [value for value in values if value is not None]
        if len(known) == len(counted):
            yield what, known


def _rates(total: SwitchCounts, what: str, number: int) -> str:
    each = [total.voluntary, total.involuntary, *([] if total.migrations is None else [total.migrations])]
    return f"{' / '.join(_short(value / number) for value in each)} a {what} ({number})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= _WHOLE else f"{value:.3g}"
