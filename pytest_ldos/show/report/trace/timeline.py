"""A trace as one track per thread, with a bounded number of runs, publications, states and waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.flow.executors import STATES, states_in_windows
from pytest_ldos.trace.flow.graph import FlowGraph, Names

MOST: Final = 120_000
"""Most slices of one kind; more are merged with their neighbours."""

_MOST_STATES: Final = 60_000
"""Most slices of each executor state."""

_SPAN: Final = ("begin_ns", "end_ns")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Slices:
    """Slices on tracks, in the order of track and time.

    Attributes:
        track: number of the track of each.
        begin_us, length_us: begin, from the start of the trace, and duration.
        word: index of its name; -1 for none.
        merged: number of spans that were merged into others.
    """

    track: Numbers
    begin_us: Numbers
    length_us: Numbers
    word: Numbers
    merged: int = 0

    def __len__(self) -> int:
        return len(self.track)


@dataclass(frozen=True)
class Arrows:
    """Messages from a publication to a reception.

    Attributes:
        left_out: number of messages left out, because others are at the same position.
    """

    tail: Numbers
    sent_us: Numbers
    head: Numbers
    taken_us: Numbers
    word: Numbers
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.tail)


@dataclass(frozen=True)
class GoalSlice:
    """A goal with its phases."""

    name: str
    begin_us: int
    length_us: int
    phases: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Timeline:
    """All tracks of a trace.

    Attributes:
        length_us: of the trace.
        tracks: names.
        words: names of callbacks and topics.
        slices: by kind: ``runs``, ``sent``, states of executors, ``cpu`` (waits for a CPU).
        without_states: number of threads without executor events.
        gaps: begin and length of disjoint spans with lost events.
    """

    length_us: int
    tracks: tuple[str, ...]
    words: tuple[str, ...]
    slices: Mapping[str, Slices]
    arrows: Arrows
    goals: tuple[GoalSlice, ...]
    gaps: tuple[tuple[int, int], ...] = ()
    without_states: int = 0


def build_timeline(
    flow: FlowGraph, goals: Mapping[str, TrialMetrics], names: Sequence[str], thread_states: pl.DataFrame | None
) -> Timeline:
    """Builds tracks of all threads that ran a callback, or published or took a message.

    Args:
        names: of the goals.
        thread_states: result of `build_thread_states`; without it, there are no waits for a CPU.
    """
    return _Builder(flow.model, flow).build(goals, names, thread_states)


class _Builder:
    def __init__(self, model: ExecutionModel, flow: FlowGraph) -> None:
        self._model, self._flow = model, flow
        self._names = Names(model)
        used = [model.callback_runs["thread"], model.publications["thread"], model.takes["thread"]]
        busy = pl.concat([each.cast(pl.Int32) for each in used]).drop_nulls().unique()
        owners = model.processes.select("pid", process="id", owner="name")
        threads = model.threads.filter(pl.col("id").is_in(busy.implode())).join(owners, on="process")
        self._threads = threads.sort("owner", "pid", "tid")
        self._track = np.full(len(model.threads) + 1, -1, dtype=np.int64)
        self._track[self._threads["id"].to_numpy()] = np.arange(len(self._threads))
        self._words: dict[str, int] = {}
        self._begin_ns, self._end_ns = _extent(model)

    def build(
        self, goals: Mapping[str, TrialMetrics], names: Sequence[str], thread_states: pl.DataFrame | None
    ) -> Timeline:
        model = self._model
        runs, sent = model.callback_runs, model.publications.drop_nulls("time_ns")
        callbacks = self._numbered([self._names.callback(each) for each in range(len(model.callbacks))])
        topics = self._numbered([topic or "unknown" for topic in model.publishers["topic"]])
        slices = {
            "runs": self._slices(runs, "start_ns", "end_ns", _pick(callbacks, runs["callback"])),
            "sent": self._slices(sent, "time_ns", "time_ns", _pick(topics, sent["publisher"])),
            **self._states(),
            "cpu": self._cpu_waits(thread_states),
        }
        return Timeline(
            length_us=max((self._end_ns - self._begin_ns) // 1000, 1),
            tracks=tuple(
                f"{row['owner']} {row['pid']}, thread {row['tid']}" for row in self._threads.iter_rows(named=True)
            ),
            words=tuple(self._words),
            slices=slices,
            arrows=self._arrows(topics),
            goals=tuple(self._goals(goals, names)),
            gaps=tuple(self._gaps()),
            without_states=len(self._threads) - len({row for each in STATES for row in slices[each].track.tolist()}),
        )

    def _numbered(self, names: Sequence[str]) -> Numbers:
        return np.array([self._words.setdefault(name, len(self._words)) for name in names] or [-1], dtype=np.int64)

    def _us(self, times_ns: npt.NDArray[Any]) -> Numbers:
        since: Numbers = (times_ns.astype(np.int64) - self._begin_ns) // 1000
        return since

    def _slices(self, table: pl.DataFrame, begin: str, end: str, word: Numbers | None = None) -> Slices:
        kept = table.with_columns(word=pl.lit(-1) if word is None else pl.Series(word)).drop_nulls(
            [begin, end, "thread"]
        )
        track = self._track[kept["thread"].to_numpy()]
        begin_us, end_us = self._us(kept[begin].to_numpy()), self._us(kept[end].to_numpy())
        return _bounded(track, begin_us, np.maximum(end_us - begin_us, 0), kept["word"].to_numpy().astype(np.int64))

    def _states(self) -> dict[str, Slices]:
        """Slices by state, because merging needs gaps between slices."""
        parts = [self._in_states(each) for each in states_in_windows(self._model)]
        track, begin, length, state = (np.concatenate([each[place] for each in parts]) for place in range(4))
        known, none = track >= 0, np.full(len(track), -1, dtype=np.int64)
        return {
            name: _bounded(
                *(each[known & (state == place)] for each in (track, begin, length, none)), most=_MOST_STATES
            )
            for place, name in enumerate(STATES)
        }

    def _in_states(self, states: pl.DataFrame) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Track, begin and length of each state within the timeline, and its number."""
        begin_ns, end_ns = (np.clip(states[each].to_numpy(), self._begin_ns, self._end_ns) for each in _SPAN)
        number = states["state"].replace_strict(list(STATES), list(range(len(STATES))), return_dtype=pl.Int64)
        begin_us, end_us = self._us(begin_ns), self._us(end_ns)
        return self._track[states["thread"].to_numpy()], begin_us, end_us - begin_us, number.to_numpy()

    def _cpu_waits(self, states: pl.DataFrame | None) -> Slices:
        waits = pl.DataFrame() if states is None else states.filter(pl.col("state") == "runnable")
        if not len(waits):
            return _bounded(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
        hosts = self._model.processes.join(self._model.hosts.select(host="id", host_name="name"), on="host")
        owned = self._threads.join(hosts.select("host_name", process="id"), on="process")
        keys = owned.select("tid", thread="id", host="host_name")
        found = waits.with_columns(pl.col("host").cast(pl.String)).join(keys, on=["host", "tid"])
        return self._slices(found, "begin_ns", "end_ns")

    def _arrows(self, topics: Numbers) -> Arrows:
        model = self._model
        sent = model.publications.select("publisher", publication="id", tail="thread", sent="time_ns")
        taken = model.takes.select(take="id", head="thread", taken="time_ns")
        joined = self._flow.transport.join(sent, on="publication").join(taken, on="take").drop_nulls(["tail", "head"])
        step = max((self._end_ns - self._begin_ns) // MOST, 1)
        while True:
            place = ["tail", "head", "publisher", pl.col("sent") // step]
            kept = joined.filter(pl.struct(place).is_first_distinct()) if len(joined) > MOST else joined
            if len(kept) <= MOST:
                break
            step *= 2
        kept = kept.sort("sent")
        return Arrows(
            tail=self._track[kept["tail"].to_numpy()],
            sent_us=self._us(kept["sent"].to_numpy()),
            head=self._track[kept["head"].to_numpy()],
            taken_us=self._us(kept["taken"].to_numpy()),
            word=_pick(topics, kept["publisher"]),
            left_out=len(joined) - len(kept),
        )

    def _gaps(self) -> Iterator[tuple[int, int]]:
        """Spans with losses, merged over all streams."""
        losses = sorted((each.from_ns, each.to_ns) for each in self._model.stats.losses)
        while losses:
            begin_ns, end_ns = losses[0]
            while losses and losses[0][0] <= end_ns:
                end_ns = max(end_ns, losses.pop(0)[1])
            begin, end = self._us(np.clip([begin_ns, end_ns], self._begin_ns, self._end_ns)).tolist()
            yield begin, max(end - begin, 1)

    def _goals(self, goals: Mapping[str, TrialMetrics], names: Sequence[str]) -> list[GoalSlice]:
        spans = [each.trial for each in goals.values()]
        return [self._goal(span, name) for span, name in zip(spans, names, strict=True) if span is not None]

    def _goal(self, trial: TrialSpan, name: str) -> GoalSlice:
        end_ns = trial.end_ns or max(trial.phases.values(), default=trial.begin_ns)
        begin, end = self._us(np.array([trial.begin_ns, end_ns])).tolist()
        phases = sorted((int(self._us(np.array([at]))[0]), phase.value) for phase, at in trial.phases.items())
        return GoalSlice(name, begin, max(end - begin, 1), tuple((phase, at) for at, phase in phases))


def _extent(model: ExecutionModel) -> tuple[int, int]:
    """First and last moment on the tracks."""
    columns = [
        (model.callback_runs, ("start_ns", "end_ns")),
        (model.publications, ("time_ns",)),
        (model.takes, ("time_ns",)),
        (model.trial_spans, ("begin_ns", "end_ns")),
    ]
    found = [value for table, names in columns for name in names for value in (table[name].min(), table[name].max())]
    times = [int(value) for value in found if isinstance(value, int)]
    return min(times, default=0), max(times, default=0)


def _pick(numbers: Numbers, rows: pl.Series) -> Numbers:
    found = rows.fill_null(-1).to_numpy()
    picked: Numbers = np.where(found >= 0, numbers[np.minimum(found, len(numbers) - 1)], -1)
    return picked


def _bounded(track: Numbers, begin: Numbers, length: Numbers, word: Numbers, *, most: int | None = None) -> Slices:
    """Slices by track and time; if there are too many, neighbours are merged, without a name if names differ."""
    order = np.lexsort((begin, track))
    track, begin, length, word = track[order], begin[order], length[order], word[order]
    near, whole, most = 1, len(track), MOST if most is None else most
    while len(track) > most:
        first = np.ones(len(track), dtype=np.bool_)
        first[1:] = (track[1:] != track[:-1]) | (begin[1:] - (begin + length)[:-1] > near)
        rows = np.flatnonzero(first)
        end, lowest, highest = (
            np.maximum.reduceat(begin + length, rows),
            np.minimum.reduceat(word, rows),
            np.maximum.reduceat(word, rows),
        )
        track, begin, word = track[rows], begin[rows], np.where(lowest == highest, lowest, -1)
        length, near = end - begin, near * 2
    return Slices(track, begin, length, word, merged=whole - len(track))
