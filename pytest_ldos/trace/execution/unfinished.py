"""Calls that a window cuts: their events are held back for the next window.

A publication and a take are reported by several events, one right after the other on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.ctf.tables import EventTable
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs
from pytest_ldos.trace.execution.threads import ThreadIndex


@dataclass(frozen=True)
class _Call:
    """Events of one call.

    Attributes:
        first: the one that always begins a call, where it is reported.
        steps: those after which another may follow; any other event of the thread ends the call.
    """

    first: str
    steps: tuple[str, ...]


_CALLS: Final = (
    _Call(
        Ros2.RCLCPP_PUBLISH,
        (Ros2.RCLCPP_PUBLISH, Ros2.INTRA_PUBLISH, Ros2.RING_BUFFER_ENQUEUE, Ros2.RCL_PUBLISH),
    ),
    _Call(Ros2.RMW_TAKE, (Ros2.RMW_TAKE, Ros2.RCL_TAKE)),
)


def find_unfinished(tables: Mapping[str, EventTable], threads: ThreadIndex) -> dict[str, npt.NDArray[np.bool_]]:
    """True for each event of a call that may go on behind the end of the tables; names without any are left out.

    Args:
        tables: all events of the threads whose time is over with the window.
    """
    of_thread = {name: threads.index(table) for name, table in tables.items()}
    count = 1 + max((int(each.max(initial=-1)) for each in of_thread.values()), default=-1)
    last_ns = {name: _last(tables[name], thread, count) for name, thread in of_thread.items()}
    found = {}
    for call in _CALLS:
        done_ns = np.full(count, NEVER, dtype=np.int64)
        for name, times_ns in last_ns.items():
            if name not in call.steps:
                done_ns = np.maximum(done_ns, times_ns)
        begun_ns = last_ns.get(call.first, done_ns)
        for name in call.steps:
            if name in tables:
                times_ns, thread = tables[name].timestamp_ns, of_thread[name]
                is_held = (times_ns > done_ns[thread]) & (times_ns >= begun_ns[thread])
                if is_held.any():
                    found[name] = is_held
    return found


def _last(table: EventTable, thread: IdArray, count: int) -> TimesNs:
    """Time of the last event of each thread."""
    times_ns = np.full(count, NEVER, dtype=np.int64)
    times_ns[thread] = table.timestamp_ns
    return times_ns
