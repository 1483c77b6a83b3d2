"""Converts an execution model and its message flow to events on tracks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.show.export.perfetto import wire
from pytest_ldos.show.export.perfetto.wire import (
    UNIT_TIME_NS,
    Counter,
    Events,
    Interned,
    Process,
    Thread,
    Track,
    counts,
    instants,
    slices,
)
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.executors import executor_states
from pytest_ldos.trace.flow.graph import FlowGraph, Names


class Texts:
    """Numbers texts from 1 on, each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """0 for no text."""
        return 0 if text is None else self._numbers.setdefault(text, len(self._numbers) + 1)

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.uint32]:
        """One number per text, followed by a 0 for row -1."""
        return np.array([*(self.number(text) for text in texts), 0], dtype=np.uint32)

    def of_column(self, column: pl.Series) -> npt.NDArray[np.uint32]:
        """One number per row, 0 for null."""
        numbers = {text: self.number(text) for text in column.unique().drop_nulls().sort()}
        if not numbers:
            return np.zeros(len(column), dtype=np.uint32)
        return column.replace_strict(numbers, default=0, return_dtype=pl.UInt32).to_numpy()

    def encoded(self, field: Interned) -> bytes:
        return b"".join(
            wire.message(field, wire.number(1, number), wire.text(2, text)) for text, number in self._numbers.items()
        )


class Vocabulary:
    """All texts of a trace, by field."""

    def __init__(self) -> None:
        self.names = Texts()
        self.categories = Texts()
        self.arguments = Texts()
        self.values = Texts()

    def encoded(self) -> bytes:
        """Fields of an ``InternedData``."""
        parts: Sequence[tuple[Interned, Texts]] = (
            (Interned.CATEGORIES, self.categories),
            (Interned.NAMES, self.names),
            (Interned.ANNOTATION_NAMES, self.arguments),
            (Interned.ANNOTATION_TEXTS, self.values),
        )
        return b"".join(texts.encoded(field) for field, texts in parts)


def nested_ends(runs: pl.DataFrame, *, last_ns: int) -> TimesNs:
    """An end for each callback run, such that runs of one thread are nested or disjoint.

    A run without an end in the trace ends with the enclosing run, before the next run on its level, or at `last_ns`,
    whichever comes first. Known ends are kept unless they contradict each other.

    Args:
        runs: columns of `callback_runs`, in the order of their starts.
    """
    start, end = times_of(runs, "start_ns"), times_of(runs, "end_ns")
    end = np.maximum(np.where(end == NEVER, last_ns, end), start)
    parent = ids_of(runs, "parent").astype(np.int64)
    thread = ids_of(runs, "thread")
    if not runs["end_ns"].null_count() and np.all(parent < 0):
        return end
    for _ in range(len(runs)):
        parent = _enclosing(parent, start, end)
        closer = np.minimum(end, np.where(parent >= 0, end[parent], end))
        closer = np.maximum(np.minimum(closer, _next_sibling(thread, parent, start)), start)
        if np.array_equal(closer, end):
            break
        end = closer
    return end


def _enclosing(parent: npt.NDArray[np.int64], start: TimesNs, end: TimesNs) -> npt.NDArray[np.int64]:
    """For each run, the innermost enclosing run that has not ended before it starts."""
    while True:
        over = (parent >= 0) & (end[parent] < start)
        if not over.any():
            return parent
        parent = np.where(over, parent[parent], parent)


def _next_sibling(thread: npt.NDArray[Any], parent: npt.NDArray[np.int64], start: TimesNs) -> TimesNs:
    """Start of the next run of the same thread within the same enclosing run."""
    order = np.lexsort((np.arange(len(start)), parent, thread))
    following = np.full(len(start), np.iinfo(np.int64).max)
    same = (thread[order][1:] == thread[order][:-1]) & (parent[order][1:] == parent[order][:-1])
    following[order[:-1][same]] = start[order[1:][same]]
    return following


_PIDS_PER_HOST: Final = 10_000_000
"""Offset of pids and tids of the second host and later, a multiple for each; above the kernel's limit (2^22)."""

_NO_NUMBER: Final = 0

Uuids = npt.NDArray[np.uint64]


class Tracks:
    """Numbers the tracks of a trace and keeps their descriptors, parents before children."""

    def __init__(self, model: ExecutionModel) -> None:
        self._descriptors: list[bytes] = []
        self._last = 0
        self._several_hosts = len(model.hosts) > 1
        self.process = [self._add_process(model, row) for row in model.processes.iter_rows(named=True)]
        self.thread = [self._add_thread(model, row) for row in model.threads.iter_rows(named=True)]

    def descriptors(self) -> Iterable[bytes]:
        """Encoded fields of each ``TrackDescriptor``."""
        return self._descriptors

    def add(self, name: str, *, parent: int | None = None) -> int:
        """Adds a track of slices."""
        return self._add(wire.text(Track.NAME, name), parent=parent)

    def add_counter(self, name: str, *, unit: str | None = None, parent: int | None = None) -> int:
        """Adds a track of values, in nanoseconds unless a unit is given."""
        counted = wire.number(Counter.UNIT, UNIT_TIME_NS) if unit is None else wire.text(Counter.UNIT_NAME, unit)
        return self._add(wire.text(Track.NAME, name), wire.message(Track.COUNTER, counted), parent=parent)

    def below_threads(self, name: str, threads: pl.Series) -> Uuids:
        """Adds a track of that name below each thread in `threads`; returns its number by thread, 0 for others."""
        found = np.zeros(len(self.thread) + 1, dtype=np.uint64)
        for thread in threads.unique().drop_nulls().sort():
            found[thread] = self.add(name, parent=self.thread[thread])
        return found

    def of_threads(self) -> Uuids:
        """Track numbers by thread; the last, found by row -1, is for unknown threads."""
        return np.array([*self.thread, self.add("unknown thread")], dtype=np.uint64)

    def _add(self, *fields: bytes, parent: int | None = None) -> int:
        self._last += 1
        above = b"" if parent is None else wire.number(Track.PARENT_UUID, parent)
        self._descriptors.append(b"".join((wire.number(Track.UUID, self._last), above, *fields)))
        return self._last

    def _add_process(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        host, pid = int(row["host"] or 0), int(row["pid"] or 0)
        name = str(row["name"] or "unknown")
        if self._several_hosts:
            name = f"{name} @ {model.hosts['name'][host]}"
        if pid <= _NO_NUMBER:
            return self._add(wire.text(Track.NAME, name))
        nodes = model.nodes.filter(pl.col("process") == row["id"])["name"].drop_nulls().unique().sort()
        described = [wire.number(Process.PID, _numbered(host, pid)), wire.text(Process.NAME, name)]
        described += [wire.text(Process.LABELS, node) for node in nodes]
        return self._add(wire.message(Track.PROCESS, *described))

    def _add_thread(self, model: ExecutionModel, row: dict[str, int | str | None]) -> int:
        process = int(row["process"] or 0)
        host, pid = (int(model.processes[column][process]) for column in ("host", "pid"))
        tid, name = int(row["tid"] or 0), str(row["name"] or "unknown")
        parent = self.process[process]
        if pid <= _NO_NUMBER or tid <= _NO_NUMBER:
            return self._add(wire.text(Track.NAME, name), parent=parent)
        numbers = wire.number(Thread.PID, _numbered(host, pid)), wire.number(Thread.TID, _numbered(host, tid))
        return self._add(wire.message(Track.THREAD, *numbers, wire.text(Thread.NAME, name)), parent=parent)


def _numbered(host: int, pid: int) -> int:
    return host * _PIDS_PER_HOST + pid


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
    """Converts tables to events, and collects their tracks and texts."""

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
        """Instants at which messages were published."""
        table = self._model.publications
        return self._instants(table, self._model.publishers, "publish", ids_of(table, "publisher"))

    def takes(self) -> Events:
        """Instants at which messages were taken."""
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
        """Slices on a separate track below each executor thread."""
        states = executor_states(self._model)
        tracks = self.tracks.below_threads("executor", states["thread"])
        return self._states(states, tracks[ids_of(states, "thread")], "executor")

    def thread_states(self, states: pl.DataFrame) -> Events:
        """Slices on a separate track below each thread in the kernel events."""
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
        """Slices of trials, with nested slices of their phases; simultaneous trials are on separate tracks."""
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
        """Messages per second, counted from the first publication."""
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
    """Counts as steps, with a zero after each second that is not followed by another count."""
    silent = np.setdiff1d(seconds + 1, seconds)
    at = np.concatenate((seconds, silent))
    order = np.argsort(at, kind="stable")
    return at[order], np.concatenate((values.astype(np.int64), np.zeros(len(silent), dtype=np.int64)))[order]


def last_moment(model: ExecutionModel) -> int:
    """The last time of any publication, take, wait or callback run."""
    columns = [model.publications["time_ns"], model.takes["time_ns"], model.waits["begin_ns"], model.waits["end_ns"]]
    columns += [model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return max((int(column.drop_nulls().to_numpy().max()) for column in columns if column.count()), default=0)


@dataclass(frozen=True)
class Flows:
    """Flows of some events.

    Attributes:
        number: from 1 on; shape ``(events, most of one event)``.
        present: True for the numbers that the event has; same shape.
    """

    number: npt.NDArray[np.uint64]
    present: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Arrows:
    """Flows that touch each event.

    Attributes:
        first: index of the first flow of an event, by its key (see `Keys`); shape ``(keys + 1,)``.
        flow: the flows' numbers.
    """

    first: npt.NDArray[np.int64]
    flow: npt.NDArray[np.uint64]

    def of_events(self, keys: npt.NDArray[np.int64]) -> Flows:
        """Flows by key; key -1 has none."""
        first = self.first[keys]
        count = np.where(keys >= 0, self.first[keys + 1] - first, 0)
        column = np.arange(int(count.max(initial=0)))
        present = column < count[:, np.newaxis]
        return Flows(self.flow[np.where(present, first[:, np.newaxis] + column, 0)], present)


def draw_arrows(flow: FlowGraph | None, keys: Keys) -> Arrows:
    """One flow per transport link, except links and runs that would lead back in time.

    A callback that took its message itself began before the message arrived; its arrow ends at the reception, which is
    within the callback run.
    """
    if flow is None:
        return Arrows(np.zeros(keys.count + 1, dtype=np.int64), np.empty(0, dtype=np.uint64))
    publication, take, number = _forward_links(flow)
    run = _runs_of_takes(flow)[take] if len(flow.model.takes) else take
    key = np.concatenate((keys.publications(publication), keys.takes(take), keys.runs(run[run >= 0])))
    number = np.concatenate((number, number, number[run >= 0]))
    order = np.lexsort((number, key))
    return Arrows(np.searchsorted(key[order], np.arange(keys.count + 1)), number[order])


def _forward_links(flow: FlowGraph) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.uint64]]:
    publication, take = ids_of(flow.transport, "publication"), ids_of(flow.transport, "take")
    sent, taken = times_of(flow.model.publications, "time_ns"), times_of(flow.model.takes, "time_ns")
    forward = (sent[publication] != NEVER) & (sent[publication] <= taken[take])
    publication, take = publication[forward], take[forward]
    return publication, take, np.arange(1, len(take) + 1, dtype=np.uint64)


def _runs_of_takes(flow: FlowGraph) -> npt.NDArray[np.int64]:
    """The callback run triggered by each take; -1 for none."""
    found = np.full(len(flow.model.takes), -1, dtype=np.int64)
    take, run = ids_of(flow.triggers, "take"), ids_of(flow.triggers, "callback_run")
    taken, start = times_of(flow.model.takes, "time_ns"), times_of(flow.model.callback_runs, "start_ns")
    forward = taken[take] <= start[run]
    found[take[forward]] = run[forward]
    return found
