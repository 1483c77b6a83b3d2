"""Direct causal links: the message a callback runs with, and what it publishes while it runs.

A thread takes a message and runs the callback with it. Everything that the thread publishes before
the callback ends was caused by that message.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, frame_of, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.timeline import Clock, Timeline
from pytest_ldos.trace.flow.schema import DIRECT, LINKS


class Runs:
    """The callback runs of a model; finds the run on a thread at a given time."""

    def __init__(self, model: ExecutionModel) -> None:
        self.start_ns = times_of(model.callback_runs, "start_ns")
        self.thread = ids_of(model.callback_runs, "thread")
        self.end_ns = times_of(model.callback_runs, "end_ns")
        self._parent = ids_of(model.callback_runs, "parent")
        self.clock = clock_of(model)
        self.timeline = self.clock.timeline(self.thread, self.start_ns)
        self._until_ns = self.end_ns if model.stats.gaps else self._until()

    def _until(self) -> TimesNs:
        """End of each run; a run without an end in the trace lasts until the next run on its thread.

        Where events were lost, nothing is known of such a run beyond its start.
        """
        following = self.timeline.next(self.clock.keys(self.thread, self.start_ns), after=True)
        next_ns = np.where(following >= 0, pick(self.start_ns, following, NEVER), np.iinfo(np.int64).max)
        return np.where(self.end_ns == NEVER, next_ns, self.end_ns)

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
    return Clock(*(column.drop_nulls().to_numpy() for column in columns))


def link_triggers(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each callback run to its message, in the order of the messages."""
    of_run = _take_of_runs(model, runs)
    run = np.flatnonzero(of_run >= 0).astype(np.int32)
    polled_take, polling_run = _polled(model, runs, of_run)
    columns = {
        "take": np.concatenate((of_run[run], polled_take)),
        "callback_run": np.concatenate((run, polling_run)),
        "polled": np.repeat([False, True], [len(run), len(polled_take)]),
    }
    return frame_of(LINKS["triggers"], columns).sort("take")


def link_causes(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each publication to the callback run in which it happened."""
    begin = publication_begins(model)
    run = runs.at(ids_of(model.publications, "thread"), begin)
    publication = np.flatnonzero(run >= 0).astype(np.int32)
    return frame_of(LINKS["causes"], {"callback_run": run[publication], "publication": publication})


def link_direct_uses(model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """Links each publication to the messages that its callback had received by then."""
    uses = causes.join(triggers, on="callback_run", maintain_order="left")
    taken_ns = pick(times_of(model.takes, "time_ns"), ids_of(uses, "take"), NEVER)
    called_ns = pick(publication_begins(model), ids_of(uses, "publication"), NEVER)
    return uses.filter(pl.Series(taken_ns <= called_ns)).select("take", "publication", rule=pl.lit(DIRECT))


def publication_begins(model: ExecutionModel) -> TimesNs:
    """Begin of each publish call, from the highest layer that reports it."""
    table = model.publications
    return table.select(pl.coalesce("intra_ns", "rclcpp_ns", "rcl_ns", "time_ns")).to_series().to_numpy()


def _take_of_runs(model: ExecutionModel, runs: Runs) -> IdArray:
    """The last message that each run's thread took.

    -1 if it is of another subscription, or older than the previous run.
    """
    keys = runs.clock.keys(runs.thread, runs.start_ns)
    take = _takes(model, runs.clock).last(keys)
    before = runs.timeline.last(keys, before=True)
    taken_ns = times_of(model.takes, "time_ns")
    begun_ns, ended_ns = pick(runs.start_ns, before, NEVER), pick(runs.end_ns, before, NEVER)
    stale = pick(taken_ns, take, NEVER) < np.where(ended_ns <= runs.start_ns, np.maximum(begun_ns, ended_ns), begun_ns)
    callback = ids_of(model.callback_runs, "callback")
    wanted = pick(ids_of(model.callbacks, "subscription"), callback, -1)
    known = pick(model.callbacks["known"].to_numpy().astype(np.int32), callback, 0) == 1
    taken = pick(ids_of(model.takes, "subscription"), take, -1)
    intra = pick(model.takes["intra"].to_numpy().astype(np.int32), take, 0)
    other = (known & (taken != wanted)) | (intra != model.callback_runs["intra"].to_numpy())
    take[stale | other] = -1
    return take


def _polled(model: ExecutionModel, runs: Runs, of_run: IdArray) -> tuple[IdArray, IdArray]:
    """Messages taken by a callback itself: no callback ran with them, and they were taken during a run."""
    free = np.ones(len(model.takes), dtype=bool)
    free[of_run[of_run >= 0]] = False
    take = np.flatnonzero(free).astype(np.int32)
    run = runs.at(ids_of(model.takes, "thread")[take], times_of(model.takes, "time_ns")[take])
    return take[run >= 0], run[run >= 0]


def _takes(model: ExecutionModel, clock: Clock) -> Timeline:
    return clock.timeline(ids_of(model.takes, "thread"), times_of(model.takes, "time_ns"))


def first_linked(size: int, links: pl.DataFrame, key: str, value: str) -> IdArray:
    """The first `value` linked with each `key`, -1 where there is none; shape ``(size,)``."""
    found = np.full(size, -1, dtype=np.int32)
    found[ids_of(links, key)[::-1]] = ids_of(links, value)[::-1]
    return found
