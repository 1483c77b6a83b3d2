"""Converts an execution model and its message flow to events on tracks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.show.export.perfetto.events import Events, counts, instants, slices
from pytest_ldos.show.export.perfetto.interned import Vocabulary
from pytest_ldos.show.export.perfetto.nesting import nested_ends
from pytest_ldos.show.export.perfetto.tracks import Tracks
from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.executors import executor_states
from pytest_ldos.trace.flow.names import Names

_NS_PER_S: Final = 1_000_000_000

Ids = npt.NDArray[np.int64]


class Keys:
    """Keys by which flows refer to publications, takes and callback runs."""

    def __init__(self, model: ExecutionModel) -> None:
        self._takes = len(model.publications)
        self._runs = self._takes + len(model.takes)
        self.count = self._runs + len(model.callback_runs)

    def publications(self, rows: npt.NDArray[Any]) -> Ids:
        return rows.astype(np.int64)

    def takes(self, rows: npt.NDArray[Any]) -> Ids:
        return self._takes + rows.astype(np.int64)

    def runs(self, rows: npt.NDArray[Any]) -> Ids:
        return self._runs + rows.astype(np.int64)


class Content:
    """Converts tables to events, and collects the tracks and texts that they need."""

    def __init__(self, model: ExecutionModel) -> None:
        self._model = model
        self._names = Names(model)
        self.tracks = Tracks(model)
        self.words = Vocabulary()
        self.keys = Keys(model)
        self._thread_tracks = self.tracks.of_threads()

    def callback_runs(self) -> Events:
        """Slices on the threads' own tracks."""
        runs, callbacks = self._model.callback_runs, self._model.callbacks
        callback = ids_of(runs, "callback")
        names = self.words.names.numbers(self._names.callback(row) for row in range(len(callbacks)))
        names[-1] = self.words.names.number("unknown callback")
        return slices(
            times_of(runs, "start_ns"),
            nested_ends(runs, last_ns=last_moment(self._model)),
            track=self._thread_tracks[ids_of(runs, "thread")],
            name=names[callback],
            category=self.words.categories.number("callback"),
            argument=self.words.arguments.number("symbol"),
            text=self.words.values.numbers(callbacks["symbol"])[callback],
            key=self.keys.runs(np.arange(len(runs))),
        )

    def publications(self) -> Events:
        """Instants at which a message left."""
        table = self._model.publications
        return self._instants(table, self._model.publishers, "publish", ids_of(table, "publisher"))

    def takes(self) -> Events:
        """Instants at which a message was taken."""
        table = self._model.takes
        return self._instants(table, self._model.subscriptions, "take", ids_of(table, "subscription"))

    def _instants(self, table: pl.DataFrame, entities: pl.DataFrame, verb: str, entity: IdArray) -> Events:
        names = self.words.names.numbers(f"{verb} {topic or 'unknown'}" for topic in entities["topic"])
        names[-1] = self.words.names.number(f"{verb} unknown")
        times = times_of(table, "time_ns")
        rows = np.flatnonzero(times != NEVER)
        is_reception = verb == "take"
        return instants(
            times[rows],
            track=self._thread_tracks[ids_of(table, "thread")[rows]],
            name=names[entity[rows]],
            category=self.words.categories.number("message"),
            key=self.keys.takes(rows) if is_reception else self.keys.publications(rows),
            is_reception=is_reception,
        )

    def executor_states(self) -> Events:
        """Slices on a track of their own below each executor thread."""
        states = executor_states(self._model)
        tracks = self.tracks.below_threads("executor", states["thread"])
        return self._states(states, tracks[ids_of(states, "thread")], "executor")

    def thread_states(self, states: pl.DataFrame) -> Events:
        """Slices on a track of their own below each thread that kernel events name."""
        hosts = self._model.hosts.select(host=pl.col("name"), host_row="id")
        threads = self._model.threads.select("tid", "process", thread="id")
        owners = threads.join(self._model.processes.select(process="id", host_row="host"), on="process")
        found = states.cast({"host": pl.String, "preempted_by_name": pl.String})
        found = found.join(hosts.join(owners, on="host_row"), on=["host", "tid"])
        rival = pl.format("{} ({})", "preempted_by_name", "preempted_by")
        found = found.with_columns(rival=rival).sort("thread", "begin_ns")
        tracks = self.tracks.below_threads("thread state", found["thread"])
        return self._states(found, tracks[ids_of(found, "thread")], "scheduling", rival=found["rival"])

    def _states(
        self, states: pl.DataFrame, tracks: npt.NDArray[np.uint64], category: str, *, rival: pl.Series | None = None
    ) -> Events:
        return slices(
            states["begin_ns"].to_numpy(),
            states["end_ns"].to_numpy(),
            track=tracks,
            name=self.words.names.of_column(states["state"].cast(pl.String)),
            category=self.words.categories.number(category),
            argument=self.words.arguments.number("preempted by"),
            text=0 if rival is None else self.words.values.of_column(rival),
        )

    def trials(self) -> list[Events]:
        """Slices of trials and, within them, of their phases; simultaneous trials are on separate tracks."""
        lanes: list[tuple[int, int]] = []
        parts: list[Events] = []
        for trial in sorted(self._model.trials.values(), key=lambda trial: trial.begin_ns):
            phases = sorted((at, phase.value) for phase, at in trial.phases.items())
            last = max([trial.begin_ns, *(at for at, _ in phases)])
            end = last if trial.end_ns is None else max(trial.end_ns, last)
            lane = next((row for row, (_, until) in enumerate(lanes) if until <= trial.begin_ns), len(lanes))
            lanes[lane : lane + 1] = [(lanes[lane][0] if lane < len(lanes) else self.tracks.add("trials"), end)]
            edges = [at for at, _ in phases if at >= trial.begin_ns] + [end]
            names = [name for at, name in phases if at >= trial.begin_ns]
            parts.append(
                slices(
                    np.array([trial.begin_ns, *edges[:-1]]),
                    np.array([end, *edges[1:]]),
                    track=lanes[lane][0],
                    name=self.words.names.numbers([f"{trial.scenario} {trial.index}", *names])[:-1],
                    category=self.words.categories.number("trial"),
                    argument=self.words.arguments.number("goal id"),
                    text=self.words.values.number(trial.goal_id),
                )
            )
        return parts

    def counters(self) -> list[Events]:
        """Periods of control loops and simulators, and messages per second of each topic."""
        parts = self._periods(self._model.control_cycles, "control period")
        parts += self._periods(self._model.sim_steps, "simulator step interval")
        return parts + self._message_rates()

    def _periods(self, marks: pl.DataFrame, name: str) -> list[Events]:
        process = self._model.threads.select(thread="id", process="process")
        parts = []
        for (owner,), times in marks.join(process, on="thread", how="left").group_by("process", maintain_order=True):
            parent = None if owner is None else self.tracks.process[owner]
            at = times["time_ns"].to_numpy()
            parts.append(counts(at[1:], np.diff(at), track=self.tracks.add_counter(name, parent=parent)))
        return parts

    def _message_rates(self) -> list[Events]:
        """Counted in whole seconds from the first publication."""
        published = self._model.publications.join(
            self._model.publishers.select(publisher="id", topic="topic"), on="publisher"
        ).drop_nulls(["topic", "time_ns"])
        first = int(published["time_ns"].to_numpy().min(initial=np.iinfo(np.int64).max))
        second = (pl.col("time_ns") - first) // _NS_PER_S
        per_second = published.group_by("topic", second=second).len().sort("topic", "second")
        parts = []
        for (topic,), rates in per_second.group_by("topic", maintain_order=True):
            track = self.tracks.add_counter(f"{topic} messages", unit="1/s")
            seconds, values = _with_zeros(rates["second"].to_numpy(), rates["len"].to_numpy())
            at, inside = first + seconds * _NS_PER_S, first + seconds * _NS_PER_S <= last_moment(self._model)
            parts.append(counts(at[inside], values[inside], track=track))
        return parts


def _with_zeros(seconds: Ids, values: npt.NDArray[Any]) -> tuple[Ids, Ids]:
    """Counts as steps, with a zero after each second that no other follows."""
    silent = np.setdiff1d(seconds + 1, seconds)
    at = np.concatenate((seconds, silent))
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate((values.astype(np.int64), np.zeros(len(silent), dtype=np.int64)))[order]


def last_moment(model: ExecutionModel) -> int:
    """The last time of any publication, take, wait or callback run."""
    columns = [model.publications["time_ns"], model.takes["time_ns"], model.waits["begin_ns"], model.waits["end_ns"]]
    columns += [model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return max((int(column.drop_nulls().to_numpy().max()) for column in columns if column.count()), default=0)
