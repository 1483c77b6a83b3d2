"""Callbacks with their owners and symbols, and their runs.

Tracepoints: ``rclcpp_callback_register``, ``rclcpp_subscription_callback_added``,
``rclcpp_subscription_init``, ``rclcpp_timer_callback_added``, ``rclcpp_service_callback_added``.

Tracepoints: ``callback_start``, ``callback_end``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.ctf.stats import Gap
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, frame_of, pick, times_of
from pytest_ldos.trace.execution.endpoints import Endpoints, Kind, Registry, registry_of
from pytest_ldos.trace.execution.mapped import chunks
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.schema import INSTANCES

_MANGLED: Final = "_Z"


def demangle(symbol: str) -> str:
    """Readable form of a mangled C++ name; any other text unchanged.

    tracetools demangles most names. The rest, and names in other recorders' traces, are demangled
    by the C++ runtime.
    """
    if not symbol.startswith(_MANGLED):
        return symbol
    status = ctypes.c_int(-1)
    readable = _demangler()(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not readable:
        return symbol
    try:
        return ctypes.string_at(readable).decode(errors="replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(readable))


@cache
def _demangler() -> Any:
    """Demangling function of the C++ runtime that the decoder is linked with."""
    function = getattr(ctypes.CDLL("libstdc++.so.6"), "__cxa_demangle")
    function.restype = ctypes.c_void_p
    return function


def build_callbacks(observed: Observed, endpoints: Endpoints) -> Kind:
    """All registered callbacks with their owners, in the order of their registration."""
    registers = observed.events(Ros2.CALLBACK_REGISTER)
    timers = _owner_by_handle(observed, Ros2.TIMER_CALLBACK_ADDED, "timer_handle", endpoints.timers.registry)
    services = _owner_by_handle(observed, Ros2.SERVICE_CALLBACK_ADDED, "service_handle", endpoints.services.registry)
    owners = {
        "subscription": _owners(registers, *_subscription_of(observed, endpoints)),
        "timer": _owners(registers, *timers),
        "service": _owners(registers, *services),
    }
    symbols = [demangle(symbol) for symbol in registers.texts("symbol")]
    columns = {"symbol": symbols, "node": _nodes(owners, endpoints), **owners}
    return Kind("callbacks", registers, "callback", registry_of(registers, "callback"), columns)


def subscriptions_by_object(observed: Observed, endpoints: Endpoints) -> tuple[Registry, IdArray]:
    """Subscription objects of rclcpp, and the subscription that each represents.

    With intra-process communication a subscription has two objects. The second is announced after
    its callback was added, so both are found by the nearest announcement.
    """
    inits = observed.events(Ros2.RCLCPP_SUBSCRIPTION_INIT)
    owners = endpoints.subscriptions_by_rcl.find(inits.process, inits.handles("subscription_handle"), inits.times_ns)
    return registry_of(inits, "subscription"), owners


def _subscription_of(observed: Observed, endpoints: Endpoints) -> tuple[Events, IdArray]:
    added = observed.events(Ros2.SUBSCRIPTION_CALLBACK_ADDED)
    objects, owners = subscriptions_by_object(observed, endpoints)
    found = objects.find_nearest(added.process, added.handles("subscription"), added.times_ns)
    return added, pick(owners, found, -1)


def _owner_by_handle(observed: Observed, name: str, handle: str, registry: Registry) -> tuple[Events, IdArray]:
    added = observed.events(name)
    return added, registry.find(added.process, added.handles(handle), added.times_ns)


def _owners(registers: Events, added: Events, owner: IdArray) -> IdArray:
    """The owner announced nearest in time to each registration."""
    announced = registry_of(added, "callback")
    found = announced.find_nearest(registers.process, registers.handles("callback"), registers.times_ns)
    return pick(owner, found, -1)


def _nodes(owners: dict[str, IdArray], endpoints: Endpoints) -> IdArray:
    kinds = {"subscription": endpoints.subscriptions, "timer": endpoints.timers, "service": endpoints.services}
    node = np.full(len(owners["timer"]), -1, dtype=np.int32)
    for name, kind in kinds.items():
        of_kind = np.asarray(kind.columns["node"], dtype=np.int32)
        owner = np.where(owners[name] < len(of_kind), owners[name], -1)
        node = np.where(node >= 0, node, pick(of_kind, owner, -1))
    return node


def build_callback_runs(observed: Observed, callbacks: Kind, *, lossy: bool) -> tuple[pl.DataFrame, IdArray]:
    """Builds the table; returns it with the rows whose end may still follow.

    Runs on one thread may nest (a callback that spins). Where events were lost, a callback
    that starts while it already runs on the thread is taken as proof that an end was lost.
    """
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    end, parent, running = _pair(observed, lossy=lossy)
    columns = {
        "start_ns": starts.times_ns,
        "end_ns": pick(ends.times_ns, end, NEVER),
        "thread": starts.thread,
        "callback": callbacks.registry.resolve(starts.process, starts.handles("callback"), starts.times_ns),
        "intra": starts["is_intra_process"] != 0,
        "parent": parent,
    }
    return frame_of(INSTANCES["callback_runs"], columns), running


def count_unpaired(runs: pl.DataFrame, ends: int, gaps: Sequence[Gap]) -> dict[str, int]:
    """Counts starts and ends without a counterpart, or with a possibly wrong one.

    Args:
        ends: number of `callback_end`.
    """
    start_ns, end_ns = times_of(runs, "start_ns"), times_of(runs, "end_ns")
    paired = len(runs) - runs["end_ns"].null_count()
    touched = sum(_count_touched(start_ns[part], end_ns[part], gaps) for part in chunks(len(runs)))
    return {
        "callback starts without an end": len(runs) - paired,
        "callback ends without a start": ends - paired,
        "callback runs during which events were lost": touched,
    }


def _count_touched(start_ns: TimesNs, end_ns: TimesNs, gaps: Sequence[Gap]) -> int:
    """Number of runs that may be two: the end of one and the start of the next were lost."""
    touched = np.zeros(len(start_ns), dtype=bool)
    for gap in gaps:
        touched |= (start_ns <= gap.to_ns) & (end_ns >= gap.from_ns)
    return int(np.count_nonzero(touched))


def _pair(observed: Observed, *, lossy: bool) -> tuple[IdArray, IdArray, IdArray]:
    """For each start, its end and its enclosing start; also the starts without an end."""
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    parent = np.full(len(starts), -1, dtype=np.int32)
    if len(starts) == 0:
        return parent.copy(), parent, parent.copy()
    timeline = observed.timeline(Ros2.CALLBACK_START)
    end = observed.timeline(Ros2.CALLBACK_END).next_for(timeline)
    following = timeline.next_for(timeline, after=True)
    until = np.where(following >= 0, starts.times_ns[following], np.iinfo(np.int64).max)
    plain = (end >= 0) & (pick(ends.times_ns, end, NEVER) <= until)
    plain &= pick(ends.handles("callback"), end, 0) == starts.handles("callback")
    end = np.where(plain, end, -1).astype(np.int32)
    running = [] if plain.all() else _pair_nested(observed, end, parent, lossy=lossy)
    return end, parent, np.array(sorted(running), dtype=np.int32)


def _pair_nested(observed: Observed, end: IdArray, parent: IdArray, *, lossy: bool) -> list[int]:
    """Pairs the remaining starts event by event, thread by thread; returns those without an end."""
    running: list[int] = []
    starts, ends = observed.events(Ros2.CALLBACK_START), observed.events(Ros2.CALLBACK_END)
    for thread in np.unique(starts.thread[end < 0]).tolist():
        of_start = np.flatnonzero(starts.thread == thread)
        of_end = np.flatnonzero(ends.thread == thread)
        times = np.concatenate((starts.times_ns[of_start], ends.times_ns[of_end]))
        is_end = np.repeat([False, True], [len(of_start), len(of_end)])
        rows = np.concatenate((of_start, of_end))
        handles = np.concatenate((starts.handles("callback")[of_start], ends.handles("callback")[of_end]))
        order = np.argsort(times, kind="stable")
        events = zip(is_end[order].tolist(), rows[order].tolist(), handles[order].tolist(), strict=True)
        running += _walk(events, end, parent, lossy=lossy)
    return running


def _walk(events: Iterable[tuple[bool, int, int]], end: IdArray, parent: IdArray, *, lossy: bool) -> list[int]:
    """Follows one thread; returns the callbacks that still run.

    `running` holds (start row, callback) from the outermost to the innermost.
    """
    running: list[tuple[int, int]] = []
    for is_end, row, callback in events:
        if not is_end:
            if lossy:
                running = [each for each in running if each[1] != callback]
            parent[row] = running[-1][0] if running else -1
            running.append((row, callback))
            continue
        depth = next((at for at in reversed(range(len(running))) if running[at][1] == callback), None)
        if depth is not None:
            end[running[depth][0]] = row
            del running[depth:]
    return [row for row, _ in running]
