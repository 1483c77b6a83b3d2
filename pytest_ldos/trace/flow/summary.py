"""Summary tables of a graph: topics, callbacks, executors and paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.execution.columns import NEVER, Grouped, IdArray, ids_at, ids_of, pick, rows_of, times_of
from pytest_ldos.trace.execution.mapped import Growing, chunks, computed
from pytest_ldos.trace.flow.critical import CriticalPaths, break_down
from pytest_ldos.trace.flow.executors import busy_shares
from pytest_ldos.trace.flow.graph import BETWEEN_HOSTS, UNKNOWN, FlowGraph, Names, unlinked_topics
from pytest_ldos.trace.flow.paths import passages_in_parts
from pytest_ldos.trace.flow.timeliness import classify_receptions, rates_of, sum_of_known

_PERCENTILES: Final = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99}
_PATHS: Final = {
    "path": pl.String,
    "passages": pl.Int64,
    **dict.fromkeys(_PERCENTILES, pl.Float64),
    "max_ns": pl.Int64,
    "deadline_ns": pl.Int64,
    "missed": pl.Int64,
    "longest": pl.String,
    "share": pl.Float64,
}


def summarize_topics(flow: FlowGraph) -> pl.DataFrame:
    """One row per topic that has messages, the busiest first.

    Columns: `topic`, `publishers`, `subscriptions`, `messages`, `rate_hz` (first to last message, while the publishing
    processes are whole), `received`, `p50_ns` … `p99_ns` of the transport, `late`, `too_late`, `lost`, `between_hosts`
    (true if messages came from other hosts, so that their latencies are as exact as the clocks agree). `late` and
    `too_late` are null if no publisher has a period. If messages cannot be linked (`unlinked_topics`), `received`
    counts all receptions, and the others are null.
    """
    model = flow.model
    topic = pl.col("topic").fill_null(UNKNOWN)
    publishers = model.publishers.select(topic, "process", publisher="id")
    names = sorted(set(publishers["topic"]))
    number_of = np.array([names.index(name) for name in publishers["topic"]], dtype=np.int32)
    publisher = ids_of(model.publications, "publisher")
    group = computed(len(publisher), np.int32, lambda part: pick(number_of, publisher[part], -1))
    processes = [publishers.filter(pl.col("topic") == name)["process"].to_list() for name in names]
    rated = rates_of(group, times_of(model.publications, "time_ns"), model.coverage, processes)
    per_topic = rated.with_columns(topic=pl.Series(names, dtype=pl.String).gather(rated["group"])).join(
        _active(publisher, publishers), on="topic"
    )
    timeliness = classify_receptions(flow).with_columns(topic)
    timely = timeliness.group_by("topic").agg(
        pl.lit(True).alias("is_timed"), *map(sum_of_known, ("late", "too_late")), pl.col("lost").sum()
    )
    subscriptions = model.subscriptions.with_columns(topic).group_by("topic").agg(subscriptions=pl.len())
    whole = per_topic.join(subscriptions, on="topic", how="left")
    whole = whole.join(_received(flow, publishers["topic"].to_list()), on="topic", how="left")
    joined = whole.join(timely, on="topic", how="left")
    counts = ("subscriptions", "received", "late", "too_late", "lost")
    filled = joined.with_columns(
        pl.col("subscriptions", "received", "lost").fill_null(0),
        *(pl.when("is_timed").then(pl.col(each)).otherwise(0).alias(each) for each in ("late", "too_late")),
        between_hosts=topic.is_in(_topics_between_hosts(flow)),
    )
    ordered = filled.sort("messages", "topic", descending=[True, False])
    if unlinked := {topic or UNKNOWN: count for topic, count in unlinked_topics(model).items()}:
        is_linked = ~topic.is_in(list(unlinked))
        ordered = ordered.with_columns(
            pl.when(is_linked).then(pl.col("received")).otherwise(topic.replace_strict(unlinked, default=None)),
            *(pl.when(is_linked).then(pl.col(each)).alias(each) for each in (*_PERCENTILES, *counts[2:])),
        )
    return ordered.select(
        "topic",
        "publishers",
        "subscriptions",
        "messages",
        "rate_hz",
        "received",
        *_PERCENTILES,
        *counts[2:],
        "between_hosts",
    )


def _topics_between_hosts(flow: FlowGraph) -> list[str]:
    """Topics whose messages came from another host."""
    if len(flow.model.hosts) == 1:
        return []
    across = flow.transport.filter(pl.col("way") == BETWEEN_HOSTS)["publication"]
    publisher = flow.model.publications["publisher"].gather(across).unique()
    return flow.model.publishers["topic"].gather(publisher).fill_null(UNKNOWN).unique().to_list()


def _active(publisher: IdArray, publishers: pl.DataFrame) -> pl.DataFrame:
    """Number of publishers of each topic that published."""
    has_published = np.zeros(len(publishers), dtype=np.bool_)
    for part in chunks(len(publisher)):
        has_published[publisher[part][publisher[part] >= 0]] = True
    return publishers.filter(pl.Series(has_published)).group_by("topic").agg(publishers=pl.len())


def _received(flow: FlowGraph, topics: Sequence[str]) -> pl.DataFrame:
    """Number of receptions and quantiles of the transport of each topic that has receptions.

    Args:
        topics: topic of each publisher.
    """
    names = sorted(set(topics))
    number_of = np.array([names.index(topic) for topic in topics], dtype=np.int32)

    def topic_of(part: slice) -> IdArray:
        publication = rows_of(flow.transport, part)["publication"].to_numpy()
        return pick(number_of, ids_at(flow.model.publications, "publisher", publication), -1)

    group = computed(len(flow.transport), np.int32, topic_of)
    latencies = Grouped(group, flow.transport["latency_ns"].to_numpy(), len(names))
    return _quantiles(latencies).with_columns(topic=pl.Series(names, dtype=pl.String)).filter(pl.col("received") > 0)


def _quantiles(grouped: Grouped) -> pl.DataFrame:
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
    durations_ns = computed(len(table), np.int64, lambda part: end_ns[part] - start_ns[part])
    grouped = Grouped(computed(len(table), np.int32, ended), durations_ns, count)
    runs = sum((np.bincount(callback[part], minlength=count) for part in chunks(len(table))), np.zeros(count, np.int64))
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
    """One row per executor.

    Columns: `process` (its name), `pid`, `threads`, and `waiting`, `processing`, `executing` as
    fractions of its threads' time.
    """
    model = flow.model
    shares = busy_shares(model)
    weight = pl.col("observed_ns")
    states = ("waiting", "processing", "executing")
    per_executor = shares.group_by("executor").agg(
        threads=pl.len(), **{state: (pl.col(state) * weight).sum() / weight.sum() for state in states}
    )
    owners = model.executors.select("process", executor="id").join(
        model.processes.select("pid", process="id", name="name"), on="process"
    )
    joined = per_executor.join(owners, on="executor").sort("executing", "pid", descending=[True, False])
    is_same = joined.select("name", "pid").is_duplicated() & ~joined["process"].is_duplicated()
    with_process = pl.concat_str("name", pl.lit(" (process "), "process", pl.lit(")"), ignore_nulls=True)
    return joined.select("pid", "threads", *states, process=pl.when(is_same).then(with_process).otherwise("name"))


def summarize_paths(flow: FlowGraph, paths: Sequence[PathSpec]) -> pl.DataFrame:
    """One row per path with passages; an empty table has the same columns.

    Columns: `path`, `passages`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`, `deadline_ns` (null without one),
    `missed`, `longest` (the segment with the largest share of the time), `share` (of that segment).
    """
    critical = _OnDemand(flow)
    sums = [_PathSum(flow, path, critical) for path in paths]
    return pl.DataFrame([each.row() for each in sums if each.passages], schema=_PATHS)


class _OnDemand:
    """Critical paths of a graph, computed on first use."""

    def __init__(self, flow: FlowGraph) -> None:
        self._flow = flow

    @cached_property
    def paths(self) -> CriticalPaths:
        return CriticalPaths(self._flow)


class _PathSum:
    """Totals of the passages along a path, added part by part."""

    def __init__(self, flow: FlowGraph, path: PathSpec, critical: _OnDemand) -> None:
        self._path = path
        self._missed = 0
        self._durations_ns: Counter[tuple[str, str]] = Counter()
        latencies_ns = Growing(np.int64)
        for part in passages_in_parts(flow, path):
            if len(part):
                latencies_ns.add(part.table["latency_ns"].to_numpy())
                self._missed += part.missed
                self._add_segments(break_down(flow, part, critical=critical.paths))
        self.passages = latencies_ns.rows
        self._latencies_ns = latencies_ns.finish()

    def _add_segments(self, segments: pl.DataFrame) -> None:
        sums = segments.group_by("kind", "subject").agg(pl.col("duration_ns").sum())
        for kind, subject, duration_ns in sums.iter_rows():
            self._durations_ns[kind, subject] += duration_ns

    def row(self) -> dict[str, Any]:
        (kind, subject), longest_ns = min(self._durations_ns.items(), key=lambda each: (-each[1], each[0]))
        max_ns, sum_ns = int(self._latencies_ns.max()), int(self._latencies_ns.sum())
        one_group = Grouped(np.zeros(self.passages, dtype=np.int32), self._latencies_ns, 1)
        return {
            "path": self._path.name,
            "passages": self.passages,
            **dict(zip(_PERCENTILES, one_group.nearest(list(_PERCENTILES.values()))[0], strict=True)),
            "max_ns": max_ns,
            "deadline_ns": self._path.deadline_ns,
            "missed": self._missed,
            "longest": f"{kind}: {subject}",
            "share": longest_ns / max(sum_ns, 1),
        }
