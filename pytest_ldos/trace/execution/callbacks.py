"""Callbacks with their owners, symbols and runs, and the executors that run them.

Tracepoints: ``rclcpp_callback_register``, ``rclcpp_*_callback_added``, ``rclcpp_subscription_init``,
``callback_start``, ``callback_end``, ``rclcpp_executor_*``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.ros2 import Ros2
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, Columns, IdArray, TimesNs, frame_of, ids_of, pick, times_of
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, Registry, registry_of
from pytest_ldos.trace.execution.model import ENTITIES, Frames
from pytest_ldos.trace.execution.observed import Events, Observed

_MANGLED: Final = "_Z"


def demangle(symbol: str) -> str:
    """Readable form of a mangled C++ name, for those that tracetools did not demangle; any other text unchanged."""
    if not symbol.startswith(_MANGLED):
        return symbol
    status = ctypes.c_int(-1)
    function = getattr(ctypes.CDLL("libstdc++.so.6"), "__cxa_demangle")  # which the decoder is linked with
    function.restype = ctypes.c_void_p
    readable = function(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not readable:
        return symbol
    try:
        return ctypes.string_at(readable).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(readable))


def build_callbacks(observed: Observed, endpoints: Endpoints) -> Kind:
    """All registered callbacks with their owners, in the order of their registration."""
    registers = observed.events(Ros2.CALLBACK_REGISTER)
    added = observed.events(Ros2.SUBSCRIPTION_CALLBACK_ADDED)
    objects, subscriptions = subscriptions_by_object(observed, endpoints)
    found = objects.find_nearest(added.process, added.handles("subscription"), added.times_ns)
    owners = {"subscription": _owners(registers, added, pick(subscriptions, found, -1))}
    for name, event, kind in (
        ("timer", Ros2.TIMER_CALLBACK_ADDED, endpoints.timers),
        ("service", Ros2.SERVICE_CALLBACK_ADDED, endpoints.services),
    ):
        added = observed.events(event)
        owner = kind.registry.find(added.process, added.handles(f"{name}_handle"), added.times_ns)
        owners[name] = _owners(registers, added, owner)
    node = np.full(len(registers), -1, dtype=np.int32)
    kinds = (endpoints.subscriptions, endpoints.timers, endpoints.services)
    for name, kind in zip(("subscription", "timer", "service"), kinds, strict=True):
        of_kind = np.asarray(kind.columns["node"], dtype=np.int32)
        node = np.where(node >= 0, node, pick(of_kind, np.where(owners[name] < len(of_kind), owners[name], -1), -1))
    columns = {"symbol": [demangle(symbol) for symbol in registers.texts("symbol")], "node": node, **owners}
    return Kind("callbacks", registers, "callback", registry_of(registers, "callback"), columns)


def subscriptions_by_object(observed: Observed, endpoints: Endpoints) -> tuple[Registry, IdArray]:
    """Subscription objects of rclcpp, and the subscription that each represents.

    With intra-process communication a subscription has two objects. The second is announced after
    its callback was added, so both are found by the nearest announcement.
    """
    inits = observed.events(Ros2.RCLCPP_SUBSCRIPTION_INIT)
    owners = endpoints.subscriptions_by_rcl.find(inits.process, inits.handles("subscription_handle"), inits.times_ns)
    return registry_of(inits, "subscription"), owners


def _owners(registers: Events, added: Events, owner: IdArray) -> IdArray:
    """The owner announced nearest in time to each registration."""
    announced = registry_of(added, "callback")
    return pick(owner, announced.find_nearest(registers.process, registers.handles("callback"), registers.times_ns), -1)


def build_callback_runs(observed: Observed, callbacks: Kind, *, lossy: bool) -> tuple[Columns, IdArray]:
    """Builds the table; returns it with the rows whose end may still follow.

    Runs on one thread may nest (a callback that spins). Where events were lost, a callback
    that starts while it already runs on the thread is taken as proof that an end was lost.
    """
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    calls = ((each.thread, each.times_ns, each.handles("callback")) for each in (starts, ends))
    end, parent, running = _states.pair(*calls, lossy=lossy)
    columns = {
        "start_ns": starts.times_ns,
        "end_ns": pick(ends.times_ns, end, NEVER),
        "thread": starts.thread,
        "callback": callbacks.registry.resolve(starts.process, starts.handles("callback"), starts.times_ns),
        "intra": starts["is_intra_process"] != 0,
        "parent": parent,
    }
    return columns, running


def count_unpaired(runs: pl.DataFrame, ends: int, gaps: Sequence[Gap]) -> dict[str, int]:
    """Counts starts and ends (`ends` in all) without a counterpart, or with a possibly wrong one."""
    start_ns, end_ns = times_of(runs, "start_ns"), times_of(runs, "end_ns")
    paired = len(runs) - runs["end_ns"].null_count()
    touched = 0  # such a run may be two: the end of one and the start of the next were lost
    for part in mapped.chunks(len(runs)):
        is_touched = np.zeros(part.stop - part.start, dtype=bool)
        for gap in gaps:
            is_touched |= (start_ns[part] <= gap.to_ns) & (end_ns[part] >= gap.from_ns)
        touched += int(np.count_nonzero(is_touched))
    return {
        "callback starts without an end": len(runs) - paired,
        "callback ends without a start": ends - paired,
        "callback runs during which events were lost": touched,
    }


def build_waits(observed: Observed) -> tuple[Columns, npt.NDArray[np.bool_]]:
    """Table of waits, and true for those whose end may follow: when their thread next looks for ready entities."""
    waits = observed.events(Ros2.EXECUTOR_WAIT_FOR_WORK)
    ready = observed.events(Ros2.EXECUTOR_GET_NEXT_READY)
    timeline = observed.timeline(Ros2.EXECUTOR_WAIT_FOR_WORK)
    end = observed.timeline(Ros2.EXECUTOR_GET_NEXT_READY).next_for(timeline)
    again = timeline.next_for(timeline, after=True)
    lost = (again >= 0) & (pick(ready.times_ns, end, NEVER) > pick(waits.times_ns, again, NEVER))
    columns = {
        "begin_ns": waits.times_ns,
        "end_ns": pick(ready.times_ns, np.where(lost, -1, end), NEVER),
        "thread": waits.thread,
        "timeout_ns": waits["timeout"].astype(np.int64),
    }
    return columns, (again < 0) & (columns["end_ns"] == NEVER)


def build_executions(
    observed: Observed, endpoints: Endpoints, earlier: Sequence[TimesNs] = ()
) -> tuple[Columns, npt.NDArray[np.bool_], tuple[TimesNs, TimesNs]]:
    """Table of executions; each ends with its callback, or with the failed take if no callback ran.

    Also returns true for those that are open, because their thread did not look for work again, and the last take and
    callback end in each, `NEVER` without one; `earlier` are these times of the first ones, from earlier windows.
    """
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    timeline = observed.timeline(Ros2.EXECUTOR_EXECUTE)
    ready = observed.events(Ros2.EXECUTOR_GET_NEXT_READY)
    waits = observed.events(Ros2.EXECUTOR_WAIT_FOR_WORK)
    next_ready = observed.timeline(Ros2.EXECUTOR_GET_NEXT_READY).next_for(timeline)
    next_wait = observed.timeline(Ros2.EXECUTOR_WAIT_FOR_WORK).next_for(timeline)
    looks = pick(ready.times_ns, next_ready, NEVER), pick(waits.times_ns, next_wait, NEVER)
    earlier_look = np.minimum(*looks)
    look = np.where(earlier_look == NEVER, np.maximum(*looks), earlier_look)
    subscription, timer = _subjects(observed, endpoints)
    taken_ns, ended_ns = (_last_in(observed, name, look) for name in (Ros2.RMW_TAKE, Ros2.CALLBACK_END))
    for last_ns, before_ns in zip((taken_ns, ended_ns), earlier, strict=False):
        last_ns[: len(before_ns)] = np.maximum(last_ns[: len(before_ns)], before_ns)
    columns = {
        "begin_ns": executed.times_ns,
        "end_ns": np.where(ended_ns != NEVER, ended_ns, np.where(taken_ns != NEVER, taken_ns, executed.times_ns)),
        "thread": executed.thread,
        "subscription": subscription,
        "timer": timer,
    }
    return columns, look == NEVER, (taken_ns, ended_ns)


def _subjects(observed: Observed, endpoints: Endpoints) -> tuple[IdArray, IdArray]:
    """The subscription or timer of each execution: the latest owner of the address."""
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    subject = (executed.process, executed.handles("handle"), executed.times_ns)
    subscription, timer = endpoints.subscriptions_by_rcl.find(*subject), endpoints.timers.registry.find(*subject)
    found = ((endpoints.subscriptions, subscription), (endpoints.timers, timer))
    born_ns = [pick(kind.inits.times_ns, entity, NEVER) for kind, entity in found]
    since = [np.where(each <= executed.times_ns, each, NEVER) for each in born_ns]
    of_timer = (timer >= 0) & ((subscription < 0) | (since[1] > since[0]))
    return np.where(of_timer, -1, subscription), np.where(of_timer, timer, -1)


def _last_in(observed: Observed, name: str, look_ns: TimesNs) -> TimesNs:
    """Time of the last event of a name in each execution, before its thread looks for ready entities again."""
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    timeline = observed.timeline(Ros2.EXECUTOR_EXECUTE)
    until_ns = np.where(look_ns == NEVER, observed.clock.last_ns, look_ns)[timeline.rows]
    keys = observed.clock.keys(executed.thread[timeline.rows], until_ns)
    last = observed.timeline(name).last(keys, places=timeline.rows)
    last_ns = pick(observed.events(name).times_ns, last, NEVER)
    return np.where(last_ns > executed.times_ns, last_ns, NEVER)


def build_executors(threads: pl.DataFrame, runs: pl.DataFrame, waits: pl.DataFrame) -> Frames:
    """Groups threads that serve one executor; returns the tables `executors` and `threads`.

    No event names an executor. Threads of a process that ran the same callback belong
    together; a thread that waited for work without running anything is an executor of its own.
    """
    pairs = mapped.distinct_rows(ids_of(runs, "callback"), ids_of(runs, "thread")).tolist()
    waited = mapped.distinct_rows(ids_of(waits, "thread"))[:, 0].tolist()
    group = {each: each for each in sorted({*waited, *(thread for _, thread in pairs)})}
    for (one, first), (other, second) in pairwise(pairs):
        if one == other:
            group[_root(group, second)] = _root(group, first)
    roots = sorted({_root(group, each) for each in group})
    numbers = {each: roots.index(_root(group, each)) for each in group}
    executor = np.array([numbers.get(each, -1) for each in range(len(threads))], dtype=np.int32)
    process, sizes = ids_of(threads, "process"), np.bincount(executor[executor >= 0], minlength=len(roots))
    owners = process[np.array(roots, dtype=np.int32)]
    columns = {"process": process, "tid": threads["tid"], "name": threads["name"], "executor": executor}
    return {
        "executors": frame_of(ENTITIES["executors"], {"process": owners, "threads": sizes}),
        "threads": frame_of(ENTITIES["threads"], columns),
    }


def _root(group: dict[int, int], thread: int) -> int:
    while group[thread] != thread:
        thread = group[thread]
    return thread
