"""Connections of nodes and topics: what each node publishes and receives."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import polars as pl

from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances
from pytest_ldos.trace.flow.spans import rates_of
from pytest_ldos.trace.flow.timeliness import classify_receptions, sum_of_known
from pytest_ldos.trace.flow.topics import unlinked_topics

_KEY: Final = ("node", "topic", "role")


class Role(StrEnum):
    """Role of a node on a topic."""

    PUBLISHES = "publishes"
    SUBSCRIBES = "subscribes"


def summarize_connections(flow: FlowGraph) -> pl.DataFrame:
    """One row per node and topic that it publishes or subscribes to, also those without any message.

    Columns: `node` (id; null where it is unknown), `topic`, `role`, `messages` (published, or received from a
    publisher in the trace), `rate_hz` (first to last message, where the
    processes are whole), `p50_ns`, `p99_ns` (of the transport), `late`,
    `too_late`, `lost`; the last five are null for publishers, and where messages cannot be linked
    (`unlinked_topics`): `messages` then counts all receptions.
    """
    return pl.concat([_published(flow), _received(flow)]).sort("topic", "role", "node", nulls_last=True)


def _published(flow: FlowGraph) -> pl.DataFrame:
    model = flow.model
    ends = model.publishers.filter(pl.col("topic").is_not_null()).select("node", "topic", "process", end="id")
    sent = model.publications.select("time_ns", end="publisher")
    empty = {name: pl.lit(None, dtype=pl.Float64) for name in ("p50_ns", "p99_ns")}
    counts = {name: pl.lit(None, dtype=pl.Int64) for name in ("late", "too_late", "lost")}
    rated = _rated(flow, ends.join(sent, on="end", how="left"), Role.PUBLISHES)
    return rated.with_columns(**empty, **counts)


def _received(flow: FlowGraph) -> pl.DataFrame:
    model = flow.model
    ends = model.subscriptions.filter(pl.col("topic").is_not_null()).select("node", "topic", "process", end="id")
    taken = flow.transport.join(model.takes.select("time_ns", take="id", end="subscription"), on="take")
    unlinked = list(unlinked_topics(model))
    if unlinked:
        own = ends.filter(pl.col("topic").is_in(unlinked))["end"].implode()
        every = model.takes.filter(pl.col("subscription").is_in(own))
        bare = every.select("time_ns", latency_ns=pl.lit(None, dtype=pl.Int64), end="subscription")
        taken = pl.concat([taken.filter(~pl.col("end").is_in(own)).select(bare.columns), bare])
    joined = ends.join(taken.select("time_ns", "latency_ns", "end"), on="end", how="left")
    latency = joined.group_by("node", "topic").agg(
        p50_ns=pl.col("latency_ns").quantile(0.5, "nearest").cast(pl.Float64),
        p99_ns=pl.col("latency_ns").quantile(0.99, "nearest").cast(pl.Float64),
    )
    timely = classify_receptions(flow).filter(~pl.col("topic").is_in(unlinked))
    timely = timely.select("late", "too_late", "lost", end="subscription")
    per_topic = ends.join(timely, on="end").group_by("node", "topic")
    counts = per_topic.agg(*map(sum_of_known, ("late", "too_late")), pl.col("lost").sum())
    whole = _rated(flow, joined, Role.SUBSCRIBES).join(latency, on=["node", "topic"], how="left", nulls_equal=True)
    whole = whole.join(counts, on=["node", "topic"], how="left", nulls_equal=True)
    return whole.with_columns(pl.col("late", "too_late", "lost").cast(pl.Int64))


def _rated(flow: FlowGraph, messages: pl.DataFrame, role: Role) -> pl.DataFrame:
    """Number of messages and their rate; columns in order.

    Receptions need the processes of the topic's publishers, too: without the publication, none counts.
    """
    groups = messages.group_by("node", "topic", maintain_order=True).agg(pl.col("process").unique())
    groups = groups.with_row_index("group").with_columns(pl.col("group").cast(pl.Int32))
    processes = groups["process"].to_list()
    if role is Role.SUBSCRIBES:
        senders = flow.model.publishers.group_by("topic").agg(pl.col("process").unique())
        of_topic = dict(senders.drop_nulls("topic").iter_rows())
        processes = [[*own, *of_topic.get(topic, ())] for own, topic in zip(processes, groups["topic"], strict=True)]
    timed = messages.drop_nulls("time_ns").join(groups, on=["node", "topic"], nulls_equal=True)
    rated = rates_of(timed["group"].to_numpy(), timed["time_ns"].to_numpy(), flow.model.coverage, processes)
    joined = groups.join(rated, on="group", how="left").with_columns(pl.col("messages").fill_null(0))
    return joined.select("node", "topic", pl.lit(role.value).alias("role"), "messages", "rate_hz")


def connections_on(flow: FlowGraph, instances: PathInstances) -> pl.DataFrame:
    """The connections that passages of a path of topics use; columns `node`, `topic`, `role`."""
    model = flow.model
    table = instances.table
    if "takes" not in table.columns:
        return pl.DataFrame(schema={"node": pl.Int32, "topic": pl.String, "role": pl.String})
    takes = table.select(take=pl.col("takes").explode()).unique()
    links = flow.transport.join(takes, on="take").select("publication", "take")
    publications = pl.concat([links["publication"], table["to_publication"]]).unique()
    publishers = model.publications.select("publisher", publication="id").filter(
        pl.col("publication").is_in(publications.implode())
    )
    subscriptions = model.takes.select("subscription", take="id").join(takes, on="take")
    sent = model.publishers.join(publishers, left_on="id", right_on="publisher")
    got = model.subscriptions.join(subscriptions, left_on="id", right_on="subscription")
    ends = [(sent, Role.PUBLISHES), (got, Role.SUBSCRIBES)]
    found = pl.concat(each.select("node", "topic", pl.lit(role.value).alias("role")) for each, role in ends)
    return found.unique().sort(_KEY)
