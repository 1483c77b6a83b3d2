"""Writes an execution model as a Perfetto trace, for its UI and its trace processor.

All packets belong to one sequence, in time order, in nanoseconds since the epoch. Perfetto uses the time since boot,
which traces of ROS 2 do not contain, so the first packet equates boot time with the realtime clock.

Reference: perfetto, ``TracePacket``, ``TrackEvent``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.show.export import perfetto_wire as wire
from pytest_ldos.show.export.perfetto_wire import Annotation, EventType, Interned, Packet, TrackEvent, Tracks
from pytest_ldos.trace.execution.columns import NEVER, TimesNs, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.summary import executor_states


class Texts(dict[str, int]):
    """Numbers texts from 1 on, each text once; 0 stands for no text."""

    def number(self, text: str | None) -> int:
        return 0 if text is None else self.setdefault(text, len(self) + 1)

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.uint32]:
        """One number per text, followed by a 0 for row -1."""
        return np.array([*(self.number(text) for text in texts), 0], dtype=np.uint32)

    def of_column(self, column: pl.Series) -> npt.NDArray[np.uint32]:
        """One number per row, 0 for null."""
        numbers = {text: self.number(text) for text in column.unique().drop_nulls().sort()}
        if not numbers:
            return np.zeros(len(column), dtype=np.uint32)
        return column.replace_strict(numbers, default=0, return_dtype=pl.UInt32).to_numpy()


class Vocabulary:
    def __init__(self) -> None:
        self.categories, self.names, self.arguments, self.values = Texts(), Texts(), Texts(), Texts()

    def encoded(self) -> bytes:
        """Fields of an ``InternedData``."""
        fields = zip(Interned, (self.categories, self.names, self.arguments, self.values), strict=True)
        entries = ((field, number, text) for field, texts in fields for text, number in texts.items())
        return b"".join(
            wire.message(field, wire.number(1, number), wire.text(2, text)) for field, number, text in entries
        )


def nested_ends(runs: pl.DataFrame, *, last_ns: int) -> TimesNs:
    """An end for each run of `callback_runs`, in order of starts, such that runs of one thread are nested or disjoint.

    A run without an end in the trace ends with the enclosing run, before the next run on its level, or at `last_ns`,
    whichever comes first. Known ends are kept unless they contradict each other.
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
    order = np.lexsort((np.arange(len(start)), parent, thread))
    following = np.full(len(start), np.iinfo(np.int64).max)
    same = (thread[order][1:] == thread[order][:-1]) & (parent[order][1:] == parent[order][:-1])
    following[order[:-1][same]] = start[order[1:][same]]
    return following


class Keys:
    """Keys by which flows refer to publications (their rows), takes and callback runs (offsets of their rows)."""

    def __init__(self, model: ExecutionModel) -> None:
        self.takes = len(model.publications)
        self.runs = self.takes + len(model.takes)
        self.count = self.runs + len(model.callback_runs)


class Content:
    """Converts tables to events, and collects their tracks and texts."""

    def __init__(self, model: ExecutionModel) -> None:
        self._model = model
        self._names = Names(model)
        self.tracks = Tracks(model)
        self.words = Vocabulary()
        self.keys = Keys(model)
        self._thread_tracks = self.tracks.of_threads()

    def callback_runs(self) -> pl.DataFrame:
        runs, callbacks = self._model.callback_runs, self._model.callbacks
        callback = ids_of(runs, "callback")
        names = self.words.names.numbers(self._names.callback(row) for row in range(len(callbacks)))
        names[-1] = self.words.names.number("unknown callback")
        return wire.slices(
            times_of(runs, "start_ns"),
            nested_ends(runs, last_ns=last_moment(self._model)),
            track=self._thread_tracks[ids_of(runs, "thread")],
            name=names[callback],
            category=self.words.categories.number("callback"),
            argument=self.words.arguments.number("symbol"),
            text=self.words.values.numbers(callbacks["symbol"])[callback],
            key=self.keys.runs + np.arange(len(runs)),
        )

    def messages(self) -> list[pl.DataFrame]:
        model = self._model
        return [
            self._instants(model.publications, "publisher", model.publishers, "publish", first_key=0),
            self._instants(model.takes, "subscription", model.subscriptions, "take", first_key=self.keys.takes),
        ]

    def _instants(
        self, table: pl.DataFrame, column: str, entities: pl.DataFrame, verb: str, *, first_key: int
    ) -> pl.DataFrame:
        names = self.words.names.numbers(f"{verb} {topic or 'unknown'}" for topic in entities["topic"])
        names[-1] = self.words.names.number(f"{verb} unknown")
        times = times_of(table, "time_ns")
        rows = np.flatnonzero(times != NEVER)
        return wire.instants(
            times[rows],
            track=self._thread_tracks[ids_of(table, "thread")[rows]],
            name=names[ids_of(table, column)[rows]],
            category=self.words.categories.number("message"),
            key=first_key + rows,
            is_reception=verb == "take",
        )

    def executor_states(self) -> pl.DataFrame:
        return self._states(executor_states(self._model), "executor", "executor")

    def thread_states(self, states: pl.DataFrame) -> pl.DataFrame:
        """Slices on a separate track below each thread in the kernel events."""
        hosts = self._model.hosts.select(host=pl.col("name"), host_row="id")
        threads = self._model.threads.select("tid", "process", thread="id")
        owners = threads.join(self._model.processes.select(process="id", host_row="host"), on="process")
        found = states.cast({"host": pl.String, "preempted_by_name": pl.String})
        found = found.join(hosts.join(owners, on="host_row"), on=["host", "tid"])
        rival = pl.format("{} ({})", "preempted_by_name", "preempted_by")
        found = found.with_columns(rival=rival).sort("thread", "begin_ns")
        return self._states(found, "thread state", "scheduling", rival=found["rival"])

    def _states(
        self, states: pl.DataFrame, track: str, category: str, *, rival: pl.Series | None = None
    ) -> pl.DataFrame:
        tracks = self.tracks.below_threads(track, states["thread"])
        return wire.slices(
            states["begin_ns"].to_numpy(),
            states["end_ns"].to_numpy(),
            track=tracks[ids_of(states, "thread")],
            name=self.words.names.of_column(states["state"].cast(pl.String)),
            category=self.words.categories.number(category),
            argument=self.words.arguments.number("preempted by"),
            text=0 if rival is None else self.words.values.of_column(rival),
        )

    def trials(self) -> list[pl.DataFrame]:
        """Slices of trials, with nested slices of their phases; simultaneous trials are on separate tracks."""
        lanes: list[tuple[int, int]] = []
        parts: list[pl.DataFrame] = []
        for trial in sorted(self._model.trials.values(), key=lambda trial: trial.begin_ns):
            phases = sorted((at, phase.value) for phase, at in trial.phases.items())
            last = max([trial.begin_ns, *(at for at, _ in phases)])
            end = last if trial.end_ns is None else max(trial.end_ns, last)
            lane = next((row for row, (_, until) in enumerate(lanes) if until <= trial.begin_ns), len(lanes))
            lanes[lane : lane + 1] = [(lanes[lane][0] if lane < len(lanes) else self.tracks.add("trials"), end)]
            edges = [at for at, _ in phases if at >= trial.begin_ns] + [end]
            names = [name for at, name in phases if at >= trial.begin_ns]
            parts.append(
                wire.slices(
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

    def counters(self) -> list[pl.DataFrame]:
        """Periods of control loops and simulators, and messages per second of each topic."""
        periods = self._periods(self._model.control_cycles, "control period")
        return [*periods, *self._periods(self._model.sim_steps, "simulator step interval"), *self._message_rates()]

    def _periods(self, marks: pl.DataFrame, name: str) -> list[pl.DataFrame]:
        process = self._model.threads.select(thread="id", process="process")
        parts = []
        for (owner,), times in marks.join(process, on="thread", how="left").group_by("process", maintain_order=True):
            parent = None if owner is None else self.tracks.process[owner]
            at = times["time_ns"].to_numpy()
            parts.append(wire.counts(at[1:], np.diff(at), track=self.tracks.add_counter(name, parent=parent)))
        return parts

    def _message_rates(self) -> list[pl.DataFrame]:
        """Messages per second, counted from the first publication."""
        published = self._model.publications.join(
            self._model.publishers.select(publisher="id", topic="topic"), on="publisher"
        ).drop_nulls(["topic", "time_ns"])
        first = int(published["time_ns"].to_numpy().min(initial=np.iinfo(np.int64).max))
        second = (pl.col("time_ns") - first) // NS_PER_S
        per_second = published.group_by("topic", second=second).len().sort("topic", "second")
        parts = []
        for (topic,), rates in per_second.group_by("topic", maintain_order=True):
            track = self.tracks.add_counter(f"{topic} messages", unit="1/s")
            seconds = rates["second"].to_numpy()
            silent = np.setdiff1d(seconds + 1, seconds)  # a zero after each second that no other count follows
            at = first + np.concatenate((seconds, silent)) * NS_PER_S
            values = np.concatenate((rates["len"].to_numpy().astype(np.int64), np.zeros(len(silent), dtype=np.int64)))
            order = np.argsort(at, kind="stable")
            order = order[at[order] <= last_moment(self._model)]
            parts.append(wire.counts(at[order], values[order], track=track))
        return parts


def last_moment(model: ExecutionModel) -> int:
    columns = [model.publications["time_ns"], model.takes["time_ns"], model.waits["begin_ns"], model.waits["end_ns"]]
    columns += [model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return max((int(column.drop_nulls().to_numpy().max()) for column in columns if column.count()), default=0)


@dataclass(frozen=True)
class Arrows:
    """Flow numbers, from 1 on, by event: those of key k (see `Keys`) begin at ``first[k]``; shape ``(keys + 1,)``."""

    first: npt.NDArray[np.int64]
    flow: npt.NDArray[np.uint64]

    def of_events(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Flow numbers by key, 0 for none; shape ``(events, most of one event)``; key -1 has none."""
        first = self.first[keys]
        count = np.where(keys >= 0, self.first[keys + 1] - first, 0)
        column = np.arange(int(count.max(initial=0)))
        present = column < count[:, np.newaxis]
        return np.where(present, self.flow[np.where(present, first[:, np.newaxis] + column, 0)], np.uint64(0))


def draw_arrows(flow: FlowGraph | None, keys: Keys) -> Arrows:
    """One flow per transport link, except links and runs that would lead back in time.

    A callback that took its message itself began before the message arrived; its arrow ends at the reception, which is
    within the callback run.
    """
    if flow is None:
        return Arrows(np.zeros(keys.count + 1, dtype=np.int64), np.empty(0, dtype=np.uint64))
    publication, take = ids_of(flow.transport, "publication"), ids_of(flow.transport, "take")
    sent, taken = times_of(flow.model.publications, "time_ns"), times_of(flow.model.takes, "time_ns")
    forward = (sent[publication] != NEVER) & (sent[publication] <= taken[take])
    publication, take = publication[forward], take[forward]
    number = np.arange(1, len(take) + 1, dtype=np.uint64)
    run = _runs_of_takes(flow)[take] if len(flow.model.takes) else take
    key = np.concatenate((publication, keys.takes + take, keys.runs + run[run >= 0]))
    number = np.concatenate((number, number, number[run >= 0]))
    order = np.lexsort((number, key))
    return Arrows(np.searchsorted(key[order], np.arange(keys.count + 1)), number[order])


def _runs_of_takes(flow: FlowGraph) -> npt.NDArray[np.int64]:
    found = np.full(len(flow.model.takes), -1, dtype=np.int64)
    take, run = ids_of(flow.triggers, "take"), ids_of(flow.triggers, "callback_run")
    taken, start = times_of(flow.model.takes, "time_ns"), times_of(flow.model.callback_runs, "start_ns")
    forward = taken[take] <= start[run]
    found[take[forward]] = run[forward]
    return found


Progress = Callable[[int, int], None]  # called with the number of events written, and their total
_SEQUENCE: Final = 1
_BYTES_AT_ONCE: Final = 1 << 21
_BYTES_OF_EVENT: Final = 96
_BYTES_OF_FLOW: Final = 10


def write_perfetto(
    model: ExecutionModel,
    file: BinaryIO,
    *,
    flow: FlowGraph | None = None,
    thread_states: pl.DataFrame | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes a model as a Perfetto trace.

    Args:
        flow: of the model; without it, no arrows are drawn.
        thread_states: result of `build_thread_states`, for the threads of the model.
    """
    content = Content(model)
    parts = [content.callback_runs(), *content.messages(), content.executor_states()]
    if thread_states is not None:
        parts.append(content.thread_states(thread_states))
    events = pl.concat([*parts, *content.trials(), *content.counters()])
    events = events.sort("time_ns", "order", maintain_order=True)
    arrows = draw_arrows(flow, content.keys)
    file.writelines(_preamble(content, first_ns=events["time_ns"][0] if len(events) else 0))
    done = 0
    while done < len(events):
        some, flows = _next_events(events, done, arrows)
        file.write(_packets(some, flows))
        done += len(flows)
        if progress is not None:
            progress(done, len(events))


def _preamble(content: Content, *, first_ns: int) -> list[bytes]:
    at = wire.number(wire.Clock.TIMESTAMP, first_ns)
    clocks = [
        wire.message(wire.ClockSnapshot.CLOCKS, wire.number(wire.Clock.CLOCK_ID, clock), at)
        for clock in (wire.BOOTTIME, wire.REALTIME)
    ]
    texts = wire.message(Packet.INTERNED_DATA, content.words.encoded())
    return [
        _packet(wire.message(Packet.CLOCK_SNAPSHOT, *clocks)),
        _packet(wire.number(Packet.SEQUENCE_FLAGS, wire.STATE_CLEARED), texts),
        *(_packet(wire.message(Packet.TRACK_DESCRIPTOR, each)) for each in content.tracks.descriptors),
    ]


def _packet(*fields: bytes) -> bytes:
    return wire.message(wire.TRACE_PACKET, wire.number(Packet.SEQUENCE_ID, _SEQUENCE), *fields)


def _next_events(
    events: pl.DataFrame, first: int, arrows: Arrows
) -> tuple[Mapping[str, wire.Numbers], npt.NDArray[np.uint64]]:
    """As many events as fit into the memory limit, by column, and their flows; events with many flows take more."""
    count = max(_BYTES_AT_ONCE // _BYTES_OF_EVENT, 1)
    while True:
        some = events.slice(first, count)
        flows = arrows.of_events(some["key"].to_numpy())
        rows, most = flows.shape
        if rows <= 1 or rows * (_BYTES_OF_EVENT + _BYTES_OF_FLOW * most) <= 2 * _BYTES_AT_ONCE:
            return {column.name: column.to_numpy() for column in some}, flows
        count = rows // 2


def _packets(events: Mapping[str, wire.Numbers], flows: npt.NDArray[np.uint64]) -> bytes:
    varint, name, category, text = wire.varint_field, events["name"], events["category"], events["text"]
    annotation = varint(Annotation.NAME_IID, events["argument"]), varint(Annotation.STRING_VALUE_IID, text)
    event = (
        varint(TrackEvent.TYPE, events["kind"]),
        varint(TrackEvent.TRACK_UUID, events["track"]),
        varint(TrackEvent.CATEGORY_IIDS, category, present=category > 0),
        varint(TrackEvent.NAME_IID, name, present=name > 0),
        varint(TrackEvent.COUNTER_VALUE, events["value"], present=events["kind"] == EventType.COUNTER),
        wire.message_field(TrackEvent.DEBUG_ANNOTATIONS, *annotation, present=text > 0),
        wire.fixed64_fields(TrackEvent.FLOW_IDS, flows),
    )
    same = np.ones(len(flows), dtype=np.int64)
    packet = (
        varint(Packet.TIMESTAMP, events["time_ns"]),
        varint(Packet.SEQUENCE_ID, same * _SEQUENCE),
        wire.message_field(Packet.TRACK_EVENT, *event),
        varint(Packet.SEQUENCE_FLAGS, same * wire.NEEDS_STATE),
    )
    return wire.encoded(wire.message_field(wire.TRACE_PACKET, *packet))
