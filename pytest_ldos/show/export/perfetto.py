"""Writes an execution model as a Perfetto trace, for its UI and its trace processor.

All packets belong to one sequence, in time order, in nanoseconds since the epoch. Perfetto uses the time since boot,
which traces of ROS 2 do not contain, so the first packet equates boot time with the realtime clock.

Reference: perfetto, ``TracePacket``, ``TrackEvent``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.trace.execution.columns import NEVER, TimesNs, ids_of, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import threads_of_hosts
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.summary import executor_states


def perfetto_messages() -> Any:
    """Perfetto's message types; raises `Unavailable` if its package is not installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(
            "files for Perfetto need the package perfetto and protobuf 6.31", remedy="pip install 'pytest-ldos[report]'"
        ) from None
    return perfetto_trace_pb2


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


def last_moment(model: ExecutionModel) -> int:
    columns = [model.publications["time_ns"], model.takes["time_ns"], model.waits["begin_ns"], model.waits["end_ns"]]
    columns += [model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return max((int(column.drop_nulls().to_numpy().max()) for column in columns if column.count()), default=0)


_EVENTS: Final = {
    "time_ns": pl.Int64,  # since the epoch
    "rank": pl.Int32,  # of simultaneous events, so that slices nest and flows start at their origin
    "depth": pl.Int64,  # of simultaneous events of a rank
    "kind": pl.Int32,  # value of ``TrackEvent.Type``
    "track": pl.Int64,  # its uuid
    "category": pl.String,
    "name": pl.String,
    "argument": pl.String,  # name of `text`
    "text": pl.String,
    "value": pl.Int64,  # of counters
    "key": pl.Int64,  # referenced by flows, see `_key`
}
_SENT, _RECEIVED, _SLICE_END, _EMPTY_SLICE, _SLICE_BEGIN, _COUNTED = range(6)
_BEGIN, _END, _INSTANT, _COUNTER = range(1, 5)
_PUBLICATION, _TAKE, _RUN = range(3)


def _key(table: int, row: pl.Expr) -> pl.Expr:
    return 3 * row.cast(pl.Int64) + table


def _slices(spans: pl.DataFrame) -> pl.DataFrame:
    """A begin and an end for each span, from `begin_ns` to `end_ns`; slices of one track must nest."""
    outer_first = spans.sort("begin_ns", "end_ns", descending=[False, True], maintain_order=True)
    number, is_empty = pl.int_range(pl.len(), dtype=pl.Int64), pl.col("begin_ns") == pl.col("end_ns")
    begins = outer_first.with_columns(
        time_ns="begin_ns",
        kind=_BEGIN,
        rank=pl.when(is_empty).then(_EMPTY_SLICE).otherwise(_SLICE_BEGIN),
        depth=pl.when(is_empty).then(2 * number).otherwise(number),
    )
    ends = outer_first.select(
        "track",
        time_ns="end_ns",
        kind=_END,
        rank=pl.when(is_empty).then(_EMPTY_SLICE).otherwise(_SLICE_END),
        depth=pl.when(is_empty).then(2 * number + 1).otherwise(-number),
    )
    return pl.concat([begins.drop("begin_ns", "end_ns"), ends], how="diagonal_relaxed")


def _at(values: Sequence[Any] | pl.Series, rows: pl.Series, otherwise: Any = None) -> pl.Series:
    """The value of each row, `otherwise` for null."""
    return pl.Series([*values, otherwise]).gather(rows.fill_null(len(values)))


class Tracks:
    """Numbers the tracks of a trace and keeps their descriptors, parents before children."""

    def __init__(self, model: ExecutionModel) -> None:
        self.descriptors: list[Mapping[str, Any]] = []
        self._several_hosts = len(model.hosts) > 1
        self.process = [self._add_process(model, row) for row in model.processes.iter_rows(named=True)]
        self.thread = [self._add_thread(model, row) for row in model.threads.iter_rows(named=True)]
        self._unknown = self.add("unknown thread")

    def add(self, name: str | None = None, *, parent: int | None = None, **parts: Any) -> int:
        """Adds a track; those of processes and threads have names in their parts."""
        self.descriptors.append({"uuid": len(self.descriptors) + 1, "name": name, "parent_uuid": parent, **parts})
        return len(self.descriptors)

    def of_threads(self, table: pl.DataFrame) -> pl.Series:
        return _at(self.thread, table["thread"], self._unknown)

    def _add_process(self, model: ExecutionModel, row: Mapping[str, Any]) -> int:
        host, pid = int(row["host"] or 0), int(row["pid"] or 0)
        name = str(row["name"] or "unknown")
        if self._several_hosts:
            name = f"{name} @ {model.hosts['name'][host]}"
        if pid <= 0:
            return self.add(name)
        nodes = model.nodes.filter(pl.col("process") == row["id"])["name"].drop_nulls().unique().sort()
        named = {"process_name": name, "process_labels": nodes.to_list()}
        return self.add(process={"pid": host * _PIDS_PER_HOST + pid, **named})

    def _add_thread(self, model: ExecutionModel, row: Mapping[str, Any]) -> int:
        process = int(row["process"] or 0)
        host, pid = (int(model.processes[column][process]) for column in ("host", "pid"))
        tid, name = int(row["tid"] or 0), str(row["name"] or "unknown")
        numbers = {"pid": host * _PIDS_PER_HOST + pid, "tid": host * _PIDS_PER_HOST + tid}
        parts: Any = {"thread": {**numbers, "thread_name": name}} if pid > 0 and tid > 0 else {"name": name}
        return self.add(parent=self.process[process], **parts)


_PIDS_PER_HOST: Final = 10_000_000
"""Offset of pids and tids of the second host and later, a multiple for each; above the kernel's limit (2^22)."""


def _callback_runs(model: ExecutionModel, tracks: Tracks) -> pl.DataFrame:
    runs, names = model.callback_runs, Names(model)
    spans = runs.select(
        category=pl.lit("callback"),
        begin_ns="start_ns",
        end_ns=pl.Series(nested_ends(runs, last_ns=last_moment(model))),
        track=tracks.of_threads(runs),
        name=_at([names.callback(row) for row in range(len(model.callbacks))], runs["callback"], "unknown callback"),
        argument=pl.lit("symbol"),
        text=_at(model.callbacks["symbol"], runs["callback"]),
        key=_key(_RUN, pl.int_range(pl.len())),
    )
    return _slices(spans)


def _messages(model: ExecutionModel, tracks: Tracks) -> Iterator[pl.DataFrame]:
    for verb, table, topics, end, key, rank in (
        ("publish", model.publications, model.publishers["topic"], "publisher", _PUBLICATION, _SENT),
        ("take", model.takes, model.subscriptions["topic"], "subscription", _TAKE, _RECEIVED),
    ):
        yield table.select(
            "time_ns",
            category=pl.lit("message"),
            rank=rank,
            kind=_INSTANT,
            track=tracks.of_threads(table),
            name=pl.format(f"{verb} {{}}", _at(topics.fill_null("unknown"), table[end], "unknown")),
            key=_key(key, pl.int_range(pl.len())),
        ).drop_nulls("time_ns")


def _states(states: pl.DataFrame, name: str, category: str, tracks: Tracks) -> pl.DataFrame:
    """Slices of a column `state` on a separate track below each thread."""
    below = {each: tracks.add(name, parent=tracks.thread[each]) for each in states["thread"].unique().sort()}
    track = _at([below.get(each) for each in range(len(tracks.thread))], states["thread"])
    texts: dict[str, Any] = {"text": "rival", "argument": pl.lit("preempted by")} if "rival" in states.columns else {}
    named = {"name": pl.col("state").cast(pl.String), "category": pl.lit(category), **texts}
    return _slices(states.select("begin_ns", "end_ns", track=track, **named))


def _thread_states(states: pl.DataFrame, model: ExecutionModel) -> pl.DataFrame:
    """States in the kernel events of the model's threads."""
    found = states.cast({"host": pl.String, "preempted_by_name": pl.String})
    found = found.join(threads_of_hosts(model), on=["host", "tid"])
    rival = pl.format("{} ({})", "preempted_by_name", "preempted_by")
    return found.with_columns(rival=rival).sort("thread", "begin_ns")


def _trials(model: ExecutionModel, tracks: Tracks) -> pl.DataFrame:
    """Slices of trials, with nested slices of their phases; simultaneous trials are on separate tracks."""
    lanes: list[tuple[int, int]] = []
    spans: list[tuple[int, int, int, str, str]] = []
    for trial in sorted(model.trials.values(), key=lambda trial: trial.begin_ns):
        phases = sorted((at, phase.value) for phase, at in trial.phases.items())
        last = max([trial.begin_ns, *(at for at, _ in phases)])
        end = last if trial.end_ns is None else max(trial.end_ns, last)
        lane = next((row for row, (_, until) in enumerate(lanes) if until <= trial.begin_ns), len(lanes))
        track = lanes[lane][0] if lane < len(lanes) else tracks.add("trials")
        lanes[lane : lane + 1] = [(track, end)]
        spans.append((trial.begin_ns, end, track, f"{trial.scenario} {trial.index}", trial.goal_id))
        inside = [each for each in phases if each[0] >= trial.begin_ns]
        ends = [*(at for at, _ in inside[1:]), end]
        spans += [(at, until, track, name, trial.goal_id) for (at, name), until in zip(inside, ends, strict=False)]
    schema = {"begin_ns": pl.Int64, "end_ns": pl.Int64, "track": pl.Int64, "name": pl.String, "text": pl.String}
    found = pl.DataFrame(spans, schema, orient="row")
    return _slices(found.with_columns(category=pl.lit("trial"), argument=pl.lit("goal id")))


def _counters(model: ExecutionModel, tracks: Tracks) -> Iterator[pl.DataFrame]:
    """Periods of control loops and simulators, and messages per second of each topic from the first publication on."""
    for marks, name in ((model.control_cycles, "control period"), (model.sim_steps, "simulator step interval")):
        owned = marks.select("time_ns", process=_at(model.threads["process"], marks["thread"]))
        for (owner,), times in owned.group_by("process", maintain_order=True):
            parent = None if owner is None else tracks.process[owner]
            track = tracks.add(name, parent=parent, counter={"unit": "UNIT_TIME_NS"})
            yield times.select("time_ns", track=track, value=pl.col("time_ns").diff())[1:]
    topics = _at(model.publishers["topic"], model.publications["publisher"])
    published = model.publications.select("time_ns", topic=topics).drop_nulls()
    second = (pl.col("time_ns") - pl.col("time_ns").min()) // NS_PER_S
    published = published.with_columns(second_ns=pl.col("time_ns").min() + second * NS_PER_S)
    sent = published.group_by("topic", time_ns="second_ns").agg(value=pl.len().cast(pl.Int64))
    silent = sent.select("topic", pl.col("time_ns") + NS_PER_S, value=pl.lit(0, pl.Int64))
    silent = silent.filter(pl.col("time_ns") <= last_moment(model)).join(sent, on=["topic", "time_ns"], how="anti")
    rates = pl.concat([sent, silent]).sort("topic", "time_ns")
    for (topic,), values in rates.group_by("topic", maintain_order=True):
        yield values.select("time_ns", "value", track=tracks.add(f"{topic} messages", counter={"unit_name": "1/s"}))


def _arrows(flow: FlowGraph) -> pl.DataFrame:
    """Flow numbers, from 1 on, by the key of an event: one per link, except those that would lead back in time.

    A callback that took its message itself began before the message arrived; its arrow ends at the reception, which is
    within the callback run.
    """
    sent, taken = flow.model.publications["time_ns"], flow.model.takes["time_ns"]
    links, runs = flow.transport.select("publication", "take"), flow.triggers.select("take", "callback_run")
    links = links.filter(sent.gather(links["publication"]) <= taken.gather(links["take"])).with_row_index("flow", 1)
    began = flow.model.callback_runs["start_ns"]
    runs = runs.filter(taken.gather(runs["take"]) <= began.gather(runs["callback_run"])).unique("take", keep="last")
    ends = (
        (_PUBLICATION, "publication", links),
        (_TAKE, "take", links),
        (_RUN, "callback_run", links.join(runs, "take")),
    )
    keyed = pl.concat(found.select("flow", key=_key(table, pl.col(name))) for table, name, found in ends)
    return keyed.group_by("key").agg(flows=pl.col("flow").sort())


Progress = Callable[[int, int], None]  # called with the number of events written, and their total
_EVENTS_AT_ONCE = 1 << 14
_SEQUENCE: Final = 1
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_REALTIME, _BOOTTIME = 1, 6
_INTERNED: Final = {
    "category": "event_categories",
    "name": "event_names",
    "argument": "debug_annotation_names",
    "text": "debug_annotation_string_values",
}


def write_perfetto(
    model: ExecutionModel,
    file: BinaryIO,
    *,
    flow: FlowGraph | None = None,
    thread_states: pl.DataFrame | None = None,
    progress: Progress | None = None,
) -> None:
    """Writes a model as a Perfetto trace; raises `Unavailable` without the package perfetto.

    Args:
        flow: of the model; without it, no arrows are drawn.
        thread_states: result of `build_thread_states`, for the threads of the model.
    """
    messages, tracks = perfetto_messages(), Tracks(model)
    parts = [pl.DataFrame(schema=_EVENTS), _callback_runs(model, tracks), *_messages(model, tracks)]
    parts.append(_states(executor_states(model), "executor", "executor", tracks))
    if thread_states is not None:
        parts.append(_states(_thread_states(thread_states, model), "thread state", "scheduling", tracks))
    counts = (each.with_columns(kind=_COUNTER, rank=_COUNTED) for each in _counters(model, tracks))
    events, interned = _intern(pl.concat([*parts, _trials(model, tracks), *counts], how="diagonal_relaxed"))
    events = events.sort("time_ns", "rank", "depth", maintain_order=True)
    arrows = pl.DataFrame(schema={"key": pl.Int64, "flows": pl.List(pl.UInt32)}) if flow is None else _arrows(flow)
    events = events.join(arrows, on="key", how="left", maintain_order="left")
    first_ns = events["time_ns"][0] if len(events) else 0
    clocks = [{"clock_id": clock, "timestamp": first_ns} for clock in (_BOOTTIME, _REALTIME)]
    preamble: list[dict[str, Any]] = [
        {"clock_snapshot": {"clocks": clocks}},
        {"interned_data": interned, "sequence_flags": _STATE_CLEARED},
        *({"track_descriptor": each} for each in tracks.descriptors),
    ]
    file.write(
        messages.Trace(
            packet=[{**each, "trusted_packet_sequence_id": _SEQUENCE} for each in preamble]
        ).SerializeToString()
    )
    for number, some in enumerate(events.iter_slices(_EVENTS_AT_ONCE)):
        file.write(_encode(some, messages.Trace()))
        if progress is not None:
            progress(number * _EVENTS_AT_ONCE + len(some), len(events))


def _intern(events: pl.DataFrame) -> tuple[pl.DataFrame, Mapping[str, Any]]:
    """The events with numbers, from 1 on, in place of texts, and fields of an ``InternedData`` with the texts."""
    interned = {}
    for column, field in _INTERNED.items():
        texts = events[column].drop_nulls().unique(maintain_order=True)
        events = events.with_columns(pl.col(column).cast(pl.Enum(texts)).to_physical() + 1)
        values = [{"str": each.encode()} if column == "text" else {"name": each} for each in texts]
        interned[field] = [{"iid": number, **value} for number, value in enumerate(values, 1)]
    return events, interned


def _encode(events: pl.DataFrame, trace: Any) -> bytes:
    """Fills the messages; a call of Python per message and field takes most of the time of an export."""
    columns = ("time_ns", "kind", "track", "category", "name", "argument", "text", "value", "flows")
    rows = zip(*(events[each].to_list() for each in columns), strict=True)
    add_packet = trace.packet.add
    for time_ns, kind, track, category, name, argument, text, value, flows in rows:
        packet = add_packet()
        packet.timestamp = time_ns
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = _NEEDS_STATE
        event = packet.track_event
        event.type = kind
        event.track_uuid = track
        if name is not None:
            event.name_iid = name
            event.category_iids.append(category)
        if text is not None:
            annotation = event.debug_annotations.add()
            annotation.name_iid = argument
            annotation.string_value_iid = text
        if value is not None:
            event.counter_value = value
        if flows is not None:
            event.flow_ids.extend(flows)
    encoded: bytes = trace.SerializeToString()
    return encoded
