"""Direct causal links: the message a callback runs with, and what it publishes while it runs.

A thread takes a message and runs the callback with it. Everything that the thread publishes before
the callback ends was caused by that message.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import (
    NEVER,
    IdArray,
    TimesNs,
    frame_of,
    ids_at,
    ids_of,
    pick,
    rows_of,
    times_at,
    times_of,
)
from pytest_ldos.trace.execution.grouping import index_by
from pytest_ldos.trace.execution.mapped import Array, Growing, chunks, computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.timeline import Clock, Timeline, edges
from pytest_ldos.trace.flow.schema import DIRECT, LINKS, RULES


class Runs:
    """The callback runs of a model; finds the run on a thread at a given time."""

    def __init__(self, model: ExecutionModel) -> None:
        self.start_ns = times_of(model.callback_runs, "start_ns")
        self.thread = ids_of(model.callback_runs, "thread")
        self.end_ns = times_of(model.callback_runs, "end_ns")
        self._parent = ids_of(model.callback_runs, "parent")
        self.clock = clock_of(model)
        self.timeline = self.clock.timeline(self.thread, self.start_ns)
        self._until_ns = self.end_ns if model.stats.losses else computed(len(self.start_ns), np.int64, self._until)

    def _until(self, part: slice) -> TimesNs:
        """End of some runs; a run without an end in the trace lasts until the next run on its thread.

        Where events were lost, nothing is known of such a run beyond its start.
        """
        until_ns = self.end_ns[part].copy()
        endless = np.flatnonzero(until_ns == NEVER) + part.start
        following = self.timeline.next(self.clock.keys(self.thread[endless], self.start_ns[endless]), after=True)
        next_ns = np.where(following >= 0, pick(self.start_ns, following, NEVER), np.iinfo(np.int64).max)
        until_ns[endless - part.start] = next_ns
        return until_ns

    def at(self, thread: IdArray, times_ns: TimesNs) -> IdArray:
        """The innermost run on each thread at each time, -1 where none was running."""
        run = self.timeline.last(self.clock.keys(thread, times_ns))
        while True:
            over = (run >= 0) & (pick(self._until_ns, run, NEVER) < times_ns)
            if not over.any():
                return run
            run[over] = self._parent[run[over]]


def clock_of(model: ExecutionModel) -> Clock:
    """Clock that covers all times of the model's publications, takes and runs."""
    columns = [model.publications[name] for name in ("time_ns", "rclcpp_ns", "rcl_ns", "intra_ns")]
    columns += [model.takes["time_ns"], model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return Clock(*(edges(_times_in(column, part)) for column in columns for part in chunks(len(column))))


def _times_in(column: pl.Series, part: slice) -> TimesNs:
    return column.slice(part.start, part.stop - part.start).drop_nulls().to_numpy()


def link_triggers(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each callback run to its message, in the order of the messages."""
    takes = _takes(model, runs.clock)
    of_run = computed(len(runs.start_ns), np.int32, lambda part: _take_of_runs(model, runs, takes, part))
    runs_of_take = index_by(of_run, len(model.takes))
    columns = {"take": Growing(np.int32), "callback_run": Growing(np.int32), "polled": Growing(np.bool_)}
    for part in chunks(len(model.takes)):
        which, run = runs_of_take.of(np.arange(part.start, part.stop))
        free = np.flatnonzero(np.bincount(which, minlength=part.stop - part.start) == 0)
        polling_run = runs.at(*_moments(rows_of(model.takes, part)[free]))
        is_polled = polling_run >= 0
        take = np.concatenate((which, free[is_polled]))
        order = np.argsort(take, kind="stable")
        columns["take"].add(take[order] + part.start)
        columns["callback_run"].add(np.concatenate((run, polling_run[is_polled]))[order])
        columns["polled"].add(np.repeat([False, True], [len(run), int(is_polled.sum())])[order])
    return frame_of(LINKS["triggers"], {name: column.finish() for name, column in columns.items()})


def link_causes(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each publication to the callback run in which it happened."""
    columns = {"callback_run": Growing(np.int32), "publication": Growing(np.int32)}
    for part in chunks(len(model.publications)):
        table = rows_of(model.publications, part)
        run = runs.at(ids_of(table, "thread"), begins_of(table))
        columns["callback_run"].add(run[run >= 0])
        columns["publication"].add(np.flatnonzero(run >= 0) + part.start)
    return frame_of(LINKS["causes"], {name: column.finish() for name, column in columns.items()})


def link_direct_uses(model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """Links each publication to the messages that its callback had received by then."""
    by_run = index_by(ids_of(triggers, "callback_run"), len(model.callback_runs))
    columns = {"take": Growing(np.int32), "publication": Growing(np.int32)}
    for part in chunks(len(causes)):
        links = rows_of(causes, part)
        which, trigger = by_run.of(ids_of(links, "callback_run"))
        take = ids_at(triggers, "take", trigger)
        publication = ids_of(links, "publication")[which]
        called_ns = begins_of(model.publications[ids_of(links, "publication")])[which]
        is_used = times_at(model.takes, "time_ns", take) <= called_ns
        columns["take"].add(take[is_used])
        columns["publication"].add(publication[is_used])
    rule = filled(columns["take"].rows, np.uint32, RULES.index(DIRECT))
    return frame_of(LINKS["uses"], {name: column.finish() for name, column in columns.items()} | {"rule": rule})


def publication_begins(model: ExecutionModel) -> TimesNs:
    """Begin of each publish call, from the highest layer that reports it."""
    return computed(len(model.publications), np.int64, lambda part: begins_of(rows_of(model.publications, part)))


def begins_of(publications: pl.DataFrame) -> TimesNs:
    """See `publication_begins`; of some publications."""
    return publications.select(pl.coalesce("intra_ns", "rclcpp_ns", "rcl_ns", "time_ns")).to_series().to_numpy()


def _moments(instances: pl.DataFrame) -> tuple[IdArray, TimesNs]:
    """Thread and time of each row."""
    return ids_of(instances, "thread"), times_of(instances, "time_ns")


def _take_of_runs(model: ExecutionModel, runs: Runs, takes: Timeline, part: slice) -> IdArray:
    """The last message that each run's thread took.

    -1 if it is of another subscription, or older than the previous run.
    """
    start_ns, table = runs.start_ns[part], rows_of(model.callback_runs, part)
    keys = runs.clock.keys(runs.thread[part], start_ns)
    take = takes.last(keys)
    before = runs.timeline.last(keys, before=True)
    begun_ns, ended_ns = pick(runs.start_ns, before, NEVER), pick(runs.end_ns, before, NEVER)
    taken = model.takes[np.maximum(take, 0)] if len(model.takes) else model.takes
    taken_ns = _where(take, times_of(taken, "time_ns"), NEVER)
    stale = taken_ns < np.where(ended_ns <= start_ns, np.maximum(begun_ns, ended_ns), begun_ns)
    callback = ids_of(table, "callback")
    wanted = pick(ids_of(model.callbacks, "subscription"), callback, -1)
    known = pick(model.callbacks["known"].to_numpy().astype(np.int32), callback, 0) == 1
    subscription = _where(take, ids_of(taken, "subscription"), -1)
    intra = _where(take, taken["intra"].to_numpy().astype(np.int32), 0)
    other = (known & (subscription != wanted)) | (intra != table["intra"].to_numpy())
    take[stale | other] = -1
    return take


def _where(rows: IdArray, values: Array, otherwise: int) -> Array:
    """Values of rows, and `otherwise` where a row is -1."""
    if len(values) != len(rows):
        return np.full(len(rows), otherwise, dtype=values.dtype)
    return np.where(rows >= 0, values, values.dtype.type(otherwise))


def _takes(model: ExecutionModel, clock: Clock) -> Timeline:
    return clock.timeline(*_moments(model.takes))


def first_linked(size: int, links: pl.DataFrame, key: str, value: str) -> IdArray:
    """The first `value` linked with each `key`, -1 where there is none; shape ``(size,)``."""
    found = filled(size, np.int32, -1)
    for part in reversed(list(chunks(len(links)))):
        some = rows_of(links, part)
        found[ids_of(some, key)[::-1]] = ids_of(some, value)[::-1]
    return found
