"""Direct causal links: the message a callback runs with, and what is published while it runs.

A thread takes a message, runs the callback with it, and whatever it publishes before the
callback ends was caused by it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pytest_ldos.execution.columns import NEVER, IdArray, TimesNs, frame_of, ids_of, pick, times_of
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.execution.timeline import Clock, Timeline
from pytest_ldos.flow.schema import DIRECT, LINKS


class Runs:
    """The callback runs of a model, to ask which of them ran on a thread at a moment."""

    def __init__(self, model: ExecutionModel) -> None:
        self.start_ns = times_of(model.callback_runs, "start_ns")
        self.thread = ids_of(model.callback_runs, "thread")
        self._end_ns = times_of(model.callback_runs, "end_ns")
        self._parent = ids_of(model.callback_runs, "parent")
        self.clock = clock_of(model)
        self.timeline = self.clock.timeline(self.thread, self.start_ns)

    def at(self, thread: IdArray, times_ns: TimesNs) -> IdArray:
        """The innermost run on each thread at each moment, -1 where it ran none."""
        run = self.timeline.last(self.clock.keys(thread, times_ns))
        while True:
            over = (run >= 0) & (pick(self._end_ns, run, NEVER) < times_ns)
            if not over.any():
                return run
            run[over] = self._parent[run[over]]


def clock_of(model: ExecutionModel) -> Clock:
    """Covers every moment of the model's publications, takes and runs."""
    columns = [model.publications["time_ns"], model.publications["rclcpp_ns"], model.takes["time_ns"]]
    columns += [model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    filled = [column.drop_nulls().to_numpy() for column in columns if column.count()]
    first = min((int(column.min()) for column in filled), default=0)
    return Clock(first, max((int(column.max()) for column in filled), default=0))


def link_triggers(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Each callback run with the message it got, in the order of the messages."""
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
    """Each publication with the callback run in which it happened."""
    begin = publication_begins(model)
    run = runs.at(ids_of(model.publications, "thread"), begin)
    publication = np.flatnonzero(run >= 0).astype(np.int32)
    return frame_of(LINKS["causes"], {"callback_run": run[publication], "publication": publication})


def link_direct_uses(triggers: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """Each publication with the messages that its callback got."""
    uses = causes.join(triggers, on="callback_run", maintain_order="left")
    return uses.select("take", "publication", rule=pl.lit(DIRECT))


def publication_begins(model: ExecutionModel) -> TimesNs:
    """When each publish call began: in the highest layer that reports it."""
    table = model.publications
    return table.select(pl.coalesce("rclcpp_ns", "rcl_ns", "time_ns")).to_series().to_numpy()


def _take_of_runs(model: ExecutionModel, runs: Runs) -> IdArray:
    """The last message its thread took for the run's subscription, after the run before it began."""
    keys = runs.clock.keys(runs.thread, runs.start_ns)
    take = _takes(model, runs.clock).last(keys)
    before = runs.timeline.last(keys, before=True)
    taken_ns = times_of(model.takes, "time_ns")
    stale = pick(taken_ns, take, NEVER) < pick(runs.start_ns, before, NEVER)
    callback = ids_of(model.callback_runs, "callback")
    wanted = pick(ids_of(model.callbacks, "subscription"), callback, -1)
    known = pick(model.callbacks["known"].to_numpy().astype(np.int32), callback, 0) == 1
    taken = pick(ids_of(model.takes, "subscription"), take, -1)
    intra = pick(model.takes["intra"].to_numpy().astype(np.int32), take, 0)
    other = (known & (taken != wanted)) | (intra != model.callback_runs["intra"].to_numpy())
    take[stale | other] = -1
    return take


def _polled(model: ExecutionModel, runs: Runs, of_run: IdArray) -> tuple[IdArray, IdArray]:
    """Messages no callback was run with, taken while one ran: the callback took them itself."""
    free = np.ones(len(model.takes), dtype=bool)
    free[of_run[of_run >= 0]] = False
    take = np.flatnonzero(free).astype(np.int32)
    run = runs.at(ids_of(model.takes, "thread")[take], times_of(model.takes, "time_ns")[take])
    return take[run >= 0], run[run >= 0]


def _takes(model: ExecutionModel, clock: Clock) -> Timeline:
    return clock.timeline(ids_of(model.takes, "thread"), times_of(model.takes, "time_ns"))
