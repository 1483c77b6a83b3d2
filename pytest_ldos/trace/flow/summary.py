"""Summary tables of a graph: topics, callbacks, executors and paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.flow.breakdown import break_down
from pytest_ldos.trace.flow.critical import CriticalPaths
from pytest_ldos.trace.flow.executors import busy_shares
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.names import UNKNOWN, Names
from pytest_ldos.trace.flow.paths import find_path
from pytest_ldos.trace.flow.timeliness import classify_receptions

_PERCENTILES: Final = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99}
_NS_PER_S: Final = 1e9
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

    Columns: `topic`, `publishers`, `subscriptions`, `messages`, `rate_hz` (first to last message),
    `received`, `p50_ns` … `p99_ns` of the transport, `late`, `too_late`, `lost`.
    """
    model = flow.model
    topic = pl.col("topic").fill_null(UNKNOWN)
    publishers = model.publishers.select(topic, publisher="id")
    sent = model.publications.join(publishers, on="publisher")
    span_s = (pl.col("time_ns").max() - pl.col("time_ns").min()) / _NS_PER_S
    per_topic = sent.group_by("topic").agg(
        publishers=pl.col("publisher").n_unique(),
        messages=pl.len(),
        rate_hz=pl.when(span_s > 0).then((pl.len() - 1) / span_s),
    )
    got = flow.transport.join(sent.select("topic", publication="id"), on="publication")
    received = got.group_by("topic").agg(received=pl.len(), **_percentiles("latency_ns"))
    timeliness = classify_receptions(flow).with_columns(topic)
    timely = timeliness.group_by("topic").agg(pl.col("late", "too_late", "lost").sum())
    subscriptions = model.subscriptions.with_columns(topic).group_by("topic").agg(subscriptions=pl.len())
    whole = per_topic.join(subscriptions, on="topic", how="left").join(received, on="topic", how="left")
    joined = whole.join(timely, on="topic", how="left")
    counts = ("subscriptions", "received", "late", "too_late", "lost")
    ordered = joined.with_columns(pl.col(counts).fill_null(0)).sort("messages", "topic", descending=[True, False])
    return ordered.select(
        "topic", "publishers", "subscriptions", "messages", "rate_hz", "received", *_PERCENTILES, *counts[2:]
    )


def summarize_callbacks(flow: FlowGraph) -> pl.DataFrame:
    """One row per callback that ran, ordered by total run time, longest first.

    Columns: `callback` (its name), `runs`, `total_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`.
    """
    names = Names(flow.model)
    duration = (pl.col("end_ns") - pl.col("start_ns")).alias("duration")
    runs = flow.model.callback_runs.with_columns(duration)
    grouped = runs.group_by("callback").agg(
        runs=pl.len(), total_ns=pl.col("duration").sum(), **_percentiles("duration"), max_ns=pl.col("duration").max()
    )
    ordered = grouped.sort("total_ns", "callback", descending=[True, False])
    named = [names.callback(callback) for callback in ordered["callback"]]
    return ordered.with_columns(pl.Series("callback", named, dtype=pl.String))


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
    return joined.select("pid", "threads", *states, process="name")


def summarize_paths(flow: FlowGraph, paths: Sequence[PathSpec]) -> pl.DataFrame:
    """One row per path that has passages; without any, the columns alone.

    Columns: `path`, `passages`, `p50_ns`, `p90_ns`, `p99_ns`, `max_ns`, `deadline_ns` (null without one),
    `missed`, `longest` (the segment with the largest share of the time), `share` (of that segment).
    """
    critical = CriticalPaths(flow)
    rows: list[dict[str, Any]] = []
    for path in paths:
        instances = find_path(flow, path)
        if not len(instances):
            continue
        parts = break_down(flow, instances, critical=critical)
        segments = parts.group_by("kind", "subject").agg(pl.col("duration_ns").sum())
        longest = segments.sort("duration_ns", descending=True).row(0, named=True)
        latency = instances.table.select(**_percentiles("latency_ns"), max_ns=pl.col("latency_ns").max())
        rows.append(
            {
                "path": path.name,
                "passages": len(instances),
                **latency.row(0, named=True),
                "deadline_ns": path.deadline_ns,
                "missed": instances.missed,
                "longest": f"{longest['kind']}: {longest['subject']}",
                "share": longest["duration_ns"] / max(int(instances.table["latency_ns"].sum()), 1),
            }
        )
    return pl.DataFrame(rows, schema=_PATHS)


def _percentiles(column: str) -> dict[str, pl.Expr]:
    return {name: pl.col(column).quantile(share, "nearest") for name, share in _PERCENTILES.items()}
