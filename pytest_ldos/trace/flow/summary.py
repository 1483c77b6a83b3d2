"""Summary tables of a graph, and the state of each executor thread over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, ids_at, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.critical import CriticalPaths, break_down
from pytest_ldos.trace.flow.graph import BETWEEN_HOSTS, UNKNOWN, FlowGraph, Names, unlinked_topics
from pytest_ldos.trace.flow.lineage import passages_in_parts
from pytest_ldos.trace.flow.timeliness import classify_receptions, rates_of, sum_of_known

WAITING, PROCESSING, EXECUTING = STATES = ("waiting", "processing", "executing")

_PARTS: Final = 4  # chunks are divided by this: states take more memory than rows of a table
_COLUMNS: Final = ("executor", "thread", "begin_ns", "end_ns", "state")


def executor_states(model: ExecutionModel) -> pl.DataFrame:
    """States of all executor threads, in order, without gaps between a thread's first and last state.

    A thread has no state while events of its process may be missing.

    Columns: `executor`, `thread`, `begin_ns`, `end_ns`, `state`. A thread is *waiting* for work until it
    looks for ready entities. It is *executing* from its choice of an executable until it looks again,
    or while a callback runs without a recorded choice (services, actions). In between it is
    *processing*: finding and taking the next executable. Threads that share an executor look one
    at a time, so the time from the end of a callback to the thread's next wait or execution counts as
    waiting, too. A thread without recorded waits and choices, such as one of rclcpp's events executor, has no
    states (see `without_states`).

    Tracepoints: ``rclcpp_executor_*``, ``callback_start``, ``callback_end``.
    """
    return _states(model, _recorded(model.waits, model.executions, model.callback_runs, _NOTHING, _reporting(model)))


def _states(model: ExecutionModel, recorded: pl.DataFrame) -> pl.DataFrame:
    whole = _sorted(_unsorted_states(model, recorded), "begin_ns")
    executors = model.threads.select("executor", thread="id")
    return whole.join(executors, on="thread", maintain_order="left").select(_COLUMNS)


def _sorted(spans: pl.DataFrame, *times: str) -> pl.DataFrame:
    """Stably sorted by thread, then times."""
    keys = (*(spans[name].to_numpy() for name in reversed(times)), mapped.narrow(spans["thread"].to_numpy()))
    return spans[np.lexsort(keys)]


def _unsorted_states(model: ExecutionModel, recorded: pl.DataFrame) -> pl.DataFrame:
    """States of recorded spans, and of the gaps between a thread's spans, without their executors."""
    sharing = model.threads.join(model.executors, left_on="executor", right_on="id").filter(pl.col("threads") > 1)
    queueing = pl.col("thread").is_in(sharing["id"].implode()) & (pl.col("state") == EXECUTING)
    state = pl.when(queueing).then(pl.lit(WAITING)).otherwise(pl.lit(PROCESSING))
    following_ns = pl.col("begin_ns").shift(-1).over("thread")
    between = recorded.select("thread", begin_ns="end_ns", end_ns=following_ns, state=state)
    between = between.filter(pl.col("end_ns") > pl.col("begin_ns"))
    whole = pl.concat([_known(model, recorded), _known(model, between, by_ends=False)])
    return whole.filter(pl.col("end_ns") > pl.col("begin_ns"))


def _known(model: ExecutionModel, states: pl.DataFrame, *, by_ends: bool = True) -> pl.DataFrame:
    """States while the process is whole; `by_ends` is False for states inferred from the absence of events."""
    if not model.coverage:
        return states
    process = pick(ids_of(model.threads, "process"), ids_of(states, "thread"), -1)
    begin_ns, end_ns = times_of(states, "begin_ns"), times_of(states, "end_ns")
    if not by_ends:
        return states.filter(pl.Series(model.coverage.are_whole(process, begin_ns, end_ns)))
    row, begin_ns, end_ns = model.coverage.known_parts(process, begin_ns, end_ns)
    return states[row].with_columns(begin_ns=begin_ns, end_ns=end_ns)


_NOTHING: Final = pl.DataFrame(
    schema={"thread": pl.Int32, "begin_ns": pl.Int64, "end_ns": pl.Int64, "state": pl.String}
)


def _recorded(
    waits: pl.DataFrame, executions: pl.DataFrame, runs: pl.DataFrame, last: pl.DataFrame, reporting: pl.Series
) -> pl.DataFrame:
    """Recorded spans in order, without the parts that earlier spans of their thread, or its `last` one, cover."""
    ran = runs.filter(pl.col("thread").is_in(reporting.implode())).select("thread", "end_ns", begin_ns="start_ns")
    kinds = ((waits, WAITING), (executions, EXECUTING), (ran, EXECUTING))
    spans = pl.concat(each.select("thread", "begin_ns", "end_ns", state=pl.lit(state)) for each, state in kinds)
    recorded = _sorted(spans.drop_nulls(), "begin_ns", "end_ns")
    if len(last):
        recorded = pl.concat([last, recorded]).sort("thread", maintain_order=True)
    covered = pl.col("end_ns").cum_max().shift(1).over("thread").fill_null(np.iinfo(np.int64).min)
    uncovered = recorded.with_columns(begin_ns=pl.max_horizontal("begin_ns", covered))
    return uncovered.filter(pl.col("end_ns") >= pl.col("begin_ns"))


def _reporting(model: ExecutionModel) -> pl.Series:
    return pl.concat([each["thread"].unique() for each in (model.waits, model.executions)]).drop_nulls().unique()


def without_states(model: ExecutionModel) -> int:
    """Number of threads with callbacks but without recorded waits and choices of an executor."""
    ran = model.callback_runs["thread"].drop_nulls().unique()
    return len(ran.filter(~ran.is_in(_reporting(model).implode())))


def states_in_windows(model: ExecutionModel) -> Iterator[pl.DataFrame]:
    """The rows of `executor_states`, window by window; a state that crosses a border is split."""
    return (_states(model, recorded) for recorded in _recorded_in_windows(model))


def _recorded_in_windows(model: ExecutionModel) -> Iterator[pl.DataFrame]:
    last, reporting = _NOTHING, _reporting(model)
    for waits, executions, runs in _windows(model):
        recorded = _recorded(waits, executions, runs, last, reporting)
        yield recorded
        ended = recorded.group_by("thread", maintain_order=True).last()
        last = ended.with_columns(begin_ns="end_ns").select(_NOTHING.columns)


def busy_shares(model: ExecutionModel) -> pl.DataFrame:
    """Fraction of its time that each executor thread spent in each state, with `executor` and `observed_ns`."""
    parts = []
    for recorded in chain([_NOTHING], _recorded_in_windows(model)):
        spans = _unsorted_states(model, recorded).with_columns(span=pl.col("end_ns") - pl.col("begin_ns"))
        times = (pl.col("span").filter(pl.col("state") == state).sum().alias(state) for state in STATES)
        parts.append(spans.group_by("thread").agg(pl.col("span").sum().alias("observed_ns"), *times))
    whole = pl.concat(parts).group_by("thread").agg(pl.all().sum())
    whole = model.threads.select("executor", thread="id").join(whole, on="thread")
    shares = ((pl.col(state) / pl.col("observed_ns")).alias(state) for state in STATES)
    return whole.with_columns(*shares).sort("executor", "thread")


def _windows(model: ExecutionModel) -> Iterator[list[pl.DataFrame]]:
    """Waits, executions and runs, in windows of their begin."""
    tables = ((model.waits, "begin_ns"), (model.executions, "begin_ns"), (model.callback_runs, "start_ns"))
    step = max(mapped.CHUNK_ROWS // _PARTS, 1)
    borders = sorted({int(time) for table, begin in tables for time in table[begin].gather_every(step, step)})
    if not borders:
        yield [table for table, _ in tables]
        return
    for first_ns, until_ns in pairwise([NEVER, *borders, np.iinfo(np.int64).max]):
        part = []
        for table, begin in tables:
            if table[begin].is_sorted():
                rows = np.searchsorted(table[begin].to_numpy(), [int(first_ns), int(until_ns)])
                part.append(mapped.rows_of(table, slice(*rows.tolist())))
            else:
                part.append(table.filter(pl.col(begin).is_between(first_ns, until_ns, closed="left")))
        yield part


_PERCENTILES: Final = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99}
_PATHS: Final = {
    "path": pl.String,
    "passages": pl.Int64,
    **dict.fromkeys(_PERCENTILES, pl.Float64),
    **dict.fromkeys(("max_ns", "deadline_ns", "missed", "uncertain"), pl.Int64),
    "longest": pl.String,
    "share": pl.Float64,
}


def summarize_topics(flow: FlowGraph) -> pl.DataFrame:
    """One row per topic that has messages, the busiest first.

    Columns: `topic`, `publishers`, `subscriptions`, `messages`, `rate_hz` (first to last message, without times between
    publishers, while their processes are whole), `received`, `p50_ns` … `p99_ns` of the transport, `late`, `too_late`,
    `lost`, `between_hosts` (true if messages came from other hosts, so that their latencies are as exact as the clocks
    agree). `late` and `too_late` are null if no publisher has a period. If messages cannot be linked
    (`unlinked_topics`), `received` counts all receptions, and the others are null.
    """
    model = flow.model
    topic = pl.col("topic").fill_null(UNKNOWN)
    publishers = model.publishers.select(topic, "process", publisher="id")
    names = sorted(set(publishers["topic"]))
    number_of = np.array([names.index(name) for name in publishers["topic"]], dtype=np.int32)
    publisher = ids_of(model.publications, "publisher")
    group = mapped.computed(len(publisher), np.int32, lambda part: pick(number_of, publisher[part], -1))
    processes = [publishers.filter(pl.col("topic") == name)["process"].to_list() for name in names]
    rated = rates_of(group, times_of(model.publications, "time_ns"), model.coverage, processes)
    has_published = np.zeros(len(publishers), dtype=np.bool_)
    for part in mapped.chunks(len(publisher)):
        has_published[publisher[part][publisher[part] >= 0]] = True
    active = publishers.filter(pl.Series(has_published)).group_by("topic").agg(publishers=pl.len())
    rated = rated.with_columns(topic=pl.Series(names, dtype=pl.String).gather(rated["group"]))
    timeliness = classify_receptions(flow).with_columns(topic)
    timely = timeliness.group_by("topic").agg(
        pl.lit(True).alias("is_timed"), *map(sum_of_known, ("late", "too_late")), pl.col("lost").sum()
    )
    subscriptions = model.subscriptions.with_columns(topic).group_by("topic").agg(subscriptions=pl.len())
    received = _received(flow, names, number_of)
    joined = rated.join(active, on="topic")
    for more in (subscriptions, received, timely):
        joined = joined.join(more, on="topic", how="left")
    counts = ("subscriptions", "received", "late", "too_late", "lost")
    filled = joined.with_columns(
        pl.col("subscriptions", "received", "lost").fill_null(0),
        *(pl.when("is_timed").then(pl.col(each)).otherwise(0).alias(each) for each in ("late", "too_late")),
        between_hosts=topic.is_in(_topics_between_hosts(flow)),
        rate_hz=(pl.col("rate_hz") * pl.col("messages").sub("publishers") / (pl.col("messages") - 1)).replace(0, None),
    )
    ordered = filled.sort("messages", "topic", descending=[True, False])
    if unlinked := {topic or UNKNOWN: count for topic, count in unlinked_topics(model).items()}:
        is_linked = ~topic.is_in(list(unlinked))
        ordered = ordered.with_columns(
            pl.when(is_linked).then(pl.col("received")).otherwise(topic.replace_strict(unlinked, default=None)),
            *(pl.when(is_linked).then(pl.col(each)).alias(each) for each in (*_PERCENTILES, *counts[2:])),
        )
    first = ("topic", "publishers", "subscriptions", "messages", "rate_hz", "received")
    return ordered.select(*first, *_PERCENTILES, *counts[2:], "between_hosts")


def _topics_between_hosts(flow: FlowGraph) -> list[str]:
    if len(flow.model.hosts) == 1:
        return []
    across = flow.transport.filter(pl.col("way") == BETWEEN_HOSTS)["publication"]
    publisher = flow.model.publications["publisher"].gather(across).unique()
    return flow.model.publishers["topic"].gather(publisher).fill_null(UNKNOWN).unique().to_list()


def _received(flow: FlowGraph, topics: Sequence[str], number_of: IdArray) -> pl.DataFrame:
    """Number of receptions and quantiles of the transport of each topic that has receptions, by publishers' topics."""

    def topic_of(part: slice) -> IdArray:
        publication = mapped.rows_of(flow.transport, part)["publication"].to_numpy()
        return pick(number_of, ids_at(flow.model.publications, "publisher", publication), -1)

    group = mapped.computed(len(flow.transport), np.int32, topic_of)
    latencies = mapped.Grouped(group, flow.transport["latency_ns"].to_numpy(), len(topics))
    return _quantiles(latencies).with_columns(topic=pl.Series(topics, dtype=pl.String)).filter(pl.col("received") > 0)


def _quantiles(grouped: mapped.Grouped) -> pl.DataFrame:
    found = grouped.nearest(list(_PERCENTILES.values()))
    return pl.DataFrame(found, schema=dict.fromkeys(_PERCENTILES, pl.Float64), orient="row").with_columns(
        received=pl.Series(grouped.sizes, dtype=pl.UInt32)
    )


def summarize_callbacks(flow: FlowGraph) -> pl.DataFrame:
    """One row per callback that ran, ordered by total run time, longest first.

    Only runs while the process is whole are timed.

    Columns: `callback` (its name), `runs`, `total_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`.
    """
    names = Names(flow.model, with_processes=True)
    table = flow.model.callback_runs
    callback = ids_of(table, "callback")
    start_ns, end_ns, thread = times_of(table, "start_ns"), times_of(table, "end_ns"), ids_of(table, "thread")
    process_of = ids_of(flow.model.threads, "process")

    def ended(part: slice) -> IdArray:
        is_known = end_ns[part] != NEVER
        if flow.model.coverage:
            is_known &= flow.model.coverage.are_whole(process_of[thread[part]], start_ns[part], end_ns[part])
        return np.where(is_known, callback[part], -1)

    count = len(flow.model.callbacks)
    durations_ns = mapped.computed(len(table), np.int64, lambda part: end_ns[part] - start_ns[part])
    grouped = mapped.Grouped(mapped.computed(len(table), np.int32, ended), durations_ns, count)
    counts = (np.bincount(callback[part], minlength=count) for part in mapped.chunks(len(table)))
    runs = sum(counts, np.zeros(count, np.int64))
    own = [grouped.of(number) for number in range(count)]
    found = _quantiles(grouped).with_columns(
        callback=pl.Series(range(count), dtype=pl.Int32),
        runs=pl.Series(runs, dtype=pl.UInt32),
        total_ns=pl.Series([int(each.sum()) for each in own], dtype=pl.Int64),
        max_ns=pl.Series([int(each.max()) if len(each) else None for each in own], dtype=pl.Int64),
    )
    ordered = found.filter(pl.col("runs") > 0).sort("total_ns", "callback", descending=[True, False])
    named = [names.callback(callback) for callback in ordered["callback"]]
    return ordered.with_columns(pl.Series("callback", named, dtype=pl.String)).select(
        "callback", "runs", "total_ns", *_PERCENTILES, "max_ns"
    )


def summarize_executors(flow: FlowGraph) -> pl.DataFrame:
    """One row per executor: `process` (its name), `pid`, `threads`, and each state's fraction of its threads' time."""
    model = flow.model
    shares = busy_shares(model)
    weight = pl.col("observed_ns")
    per_executor = shares.group_by("executor").agg(
        threads=pl.len(), **{state: (pl.col(state) * weight).sum() / weight.sum() for state in STATES}
    )
    owners = model.executors.select("process", executor="id").join(
        model.processes.select("pid", process="id", name="name"), on="process"
    )
    joined = per_executor.join(owners, on="executor").sort("executing", "pid", descending=[True, False])
    is_same = joined.select("name", "pid").is_duplicated() & ~joined["process"].is_duplicated()
    with_process = pl.concat_str("name", pl.lit(" (process "), "process", pl.lit(")"), ignore_nulls=True)
    return joined.select("pid", "threads", *STATES, process=pl.when(is_same).then(with_process).otherwise("name"))


def summarize_paths(flow: FlowGraph, paths: Sequence[PathSpec]) -> pl.DataFrame:
    """One row per path with passages; an empty table has the same columns.

    Columns: `path`, `passages`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`, `deadline_ns` (null without one), `missed`,
    `uncertain` (by a link that is not certain), `longest` (segment with the largest share of the time), `share` of it.
    """
    critical: CriticalPaths | None = None
    rows: list[dict[str, Any]] = []
    for path in paths:
        latencies_ns, missed, uncertain = mapped.Growing(np.int64), 0, 0
        durations_ns: Counter[tuple[str, str]] = Counter()
        for part in passages_in_parts(flow, path):
            if len(part):
                critical = critical or CriticalPaths(flow)
                latencies_ns.add(part.table["latency_ns"].to_numpy())
                missed += part.missed
                uncertain += 0 if path.of_phases else int((~part.table["certain"]).sum())
                segments = break_down(flow, part, critical=critical).group_by("kind", "subject")
                for kind, subject, duration_ns in segments.agg(pl.col("duration_ns").sum()).iter_rows():
                    durations_ns[kind, subject] += duration_ns
        if not latencies_ns.rows:
            continue
        (kind, subject), longest_ns = min(durations_ns.items(), key=lambda each: (-each[1], each[0]))
        latency_ns = latencies_ns.finish()
        row = {
            "path": path.name,
            "passages": len(latency_ns),
            "max_ns": int(latency_ns.max()),
            "deadline_ns": path.deadline_ns,
            "missed": missed,
            "uncertain": uncertain,
            "longest": f"{kind}: {subject}",
            "share": longest_ns / max(int(latency_ns.sum()), 1),
        }
        every = mapped.Grouped(np.zeros(len(latency_ns), dtype=np.int32), latency_ns, 1)
        rows.append(row | dict(zip(_PERCENTILES, every.nearest(list(_PERCENTILES.values()))[0], strict=True)))
    return pl.DataFrame(rows, schema=_PATHS)
