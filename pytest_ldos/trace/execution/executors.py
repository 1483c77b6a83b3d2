"""Executors: waits of their threads, and executions of callbacks.

Tracepoints: ``rclcpp_executor_wait_for_work``, ``rclcpp_executor_get_next_ready``,
``rclcpp_executor_execute``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, distinct_rows, frame_of, ids_of, pick
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.model import Frames
from pytest_ldos.trace.execution.observed import Observed, in_table
from pytest_ldos.trace.execution.schema import ENTITIES, INSTANCES


def build_waits(observed: Observed) -> pl.DataFrame:
    """Table of waits; a wait ends when its thread next looks for ready entities."""
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
    return frame_of(INSTANCES["waits"], columns)


@dataclass(frozen=True)
class Executions:
    """Table of executions, with the state needed to continue those still open at the end of a window.

    Attributes:
        is_open: true for those after which their thread did not look for work.
        taken_ns, ended_ns: last take and last callback end in each; `NEVER` without one.
    """

    frame: pl.DataFrame
    is_open: npt.NDArray[np.bool_]
    taken_ns: TimesNs
    ended_ns: TimesNs


_NOTHING: Final = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def build_executions(
    observed: Observed, endpoints: Endpoints, earlier: tuple[TimesNs, TimesNs] = _NOTHING
) -> Executions:
    """Table of executions; each ends with its callback, or with the failed take if no callback ran.

    Args:
        earlier: last take and last callback end of the first executions, from earlier windows.
    """
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    timeline = observed.timeline(Ros2.EXECUTOR_EXECUTE)
    ready = observed.events(Ros2.EXECUTOR_GET_NEXT_READY)
    waits = observed.events(Ros2.EXECUTOR_WAIT_FOR_WORK)
    next_ready = observed.timeline(Ros2.EXECUTOR_GET_NEXT_READY).next_for(timeline)
    next_wait = observed.timeline(Ros2.EXECUTOR_WAIT_FOR_WORK).next_for(timeline)
    look = _earlier(pick(ready.times_ns, next_ready, NEVER), pick(waits.times_ns, next_wait, NEVER))
    subscription, timer = _subjects(observed, endpoints)
    taken_ns, ended_ns = (_last_in(observed, name, look) for name in (Ros2.RMW_TAKE, Ros2.CALLBACK_END))
    for last_ns, before_ns in zip((taken_ns, ended_ns), earlier, strict=True):
        last_ns[: len(before_ns)] = np.maximum(last_ns[: len(before_ns)], before_ns)
    columns = {
        "begin_ns": executed.times_ns,
        "end_ns": np.where(ended_ns != NEVER, ended_ns, np.where(taken_ns != NEVER, taken_ns, executed.times_ns)),
        "thread": executed.thread,
        "subscription": subscription,
        "timer": timer,
    }
    return Executions(frame_of(INSTANCES["executions"], columns), look == NEVER, taken_ns, ended_ns)


def _subjects(observed: Observed, endpoints: Endpoints) -> tuple[IdArray, IdArray]:
    """The subscription or timer of each execution: the latest owner of the address."""
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    subject = (executed.process, executed.handles("handle"), executed.times_ns)
    subscription, timer = endpoints.subscriptions_by_rcl.find(*subject), endpoints.timers.registry.find(*subject)
    since = [
        np.where(born_ns <= executed.times_ns, born_ns, NEVER)
        for born_ns in (
            pick(endpoints.subscriptions.inits.times_ns, subscription, NEVER),
            pick(endpoints.timers.inits.times_ns, timer, NEVER),
        )
    ]
    of_timer = (timer >= 0) & ((subscription < 0) | (since[1] > since[0]))
    return np.where(of_timer, -1, subscription), np.where(of_timer, timer, -1)


def _last_in(observed: Observed, name: str, look_ns: TimesNs) -> TimesNs:
    """Time of the last event of a name in each execution, before its thread looks for ready entities again."""
    executed = observed.events(Ros2.EXECUTOR_EXECUTE)
    timeline = observed.timeline(Ros2.EXECUTOR_EXECUTE)
    until_ns = np.where(look_ns == NEVER, observed.clock.last_ns, look_ns)[timeline.rows]
    keys = observed.clock.keys(executed.thread[timeline.rows], until_ns)
    last_ns = pick(observed.events(name).times_ns, in_table(timeline, observed.timeline(name).last(keys)), NEVER)
    return np.where(last_ns > executed.times_ns, last_ns, NEVER)


def _earlier(one: TimesNs, other: TimesNs) -> TimesNs:
    both = np.minimum(one, other)
    return np.where(both == NEVER, np.maximum(one, other), both)


def build_executors(threads: pl.DataFrame, runs: pl.DataFrame, waits: pl.DataFrame) -> Frames:
    """Groups threads that serve one executor; returns the tables `executors` and `threads`.

    No event names an executor. Threads of a process that ran the same callback belong
    together; a thread that waited for work without running anything is an executor of its own.
    """
    pairs = distinct_rows(ids_of(runs, "callback"), ids_of(runs, "thread")).tolist()
    waited = distinct_rows(ids_of(waits, "thread"))[:, 0].tolist()
    group = {each: each for each in sorted({*waited, *(thread for _, thread in pairs)})}
    for (one, first), (other, second) in pairwise(pairs):
        if one == other:
            _unite(group, first, second)
    roots = sorted({_root(group, each) for each in group})
    numbers = {each: roots.index(_root(group, each)) for each in group}
    executor = np.array([numbers.get(each, -1) for each in range(len(threads))], dtype=np.int32)
    process = ids_of(threads, "process")
    return {
        "executors": frame_of(
            ENTITIES["executors"],
            {"process": process[_ids(roots)], "threads": np.bincount(executor[executor >= 0], minlength=len(roots))},
        ),
        "threads": frame_of(
            ENTITIES["threads"],
            {"process": process, "tid": threads["tid"], "name": threads["name"], "executor": executor},
        ),
    }


def _ids(values: list[int]) -> npt.NDArray[Any]:
    return np.array(values, dtype=np.int32)


def _root(group: dict[int, int], thread: int) -> int:
    while group[thread] != thread:
        thread = group[thread]
    return thread


def _unite(group: dict[int, int], one: int, other: int) -> None:
    group[_root(group, other)] = _root(group, one)
