"""Timeliness of messages at their subscriptions, their rates, and connections between nodes and topics.

With period p a message is *too late* above min(p, 50 ms) from publication to reception,
*late* above min(0.2 p, 5 ms), otherwise *on time*. A publisher has a period if it sent at least four
messages, and half of their intervals differ from the median by at most half of it; messages of other publishers
(sent on events) are not classified. A message is *lost* if a subscription took later messages of its publisher
but never this one, and no event of the subscribing process may be missing from its publication until the next
message was taken. Intra-process messages and messages given to the middleware are counted separately: a message
that goes both ways counts as published twice. Except for topics without a period, the definitions are those of
iRobot's topology benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, ids_at, ids_of, times_at, times_of
from pytest_ldos.trace.execution.coverage import Coverage
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph, unlinked_topics
from pytest_ldos.trace.flow.lineage import PathInstances

_TOO_LATE_NS: Final = 50_000_000
_LATE_NS: Final = 5_000_000
_LATE_SHARE: Final = 0.2
_FEWEST_DISTANCES: Final = 3
_NEAR: Final = 0.5

_PAIR: Final = ("publisher", "intra", "subscription")


def classify_receptions(flow: FlowGraph) -> pl.DataFrame:
    """One row per pair of publisher and subscription with messages.

    Columns: `topic`, `publisher`, `subscription`, `period_ns` (median time between the publisher's messages; null where
    they have no period), `on_time`, `late`, `too_late` (numbers of messages; null without a period), `lost`.
    """
    model = flow.model
    sent = _Sent(model)
    got = _Got(flow)
    pairs = got.pairs.join(sent.periods(), on=["publisher", "intra"], maintain_order="left").with_columns(
        limit_too_late=pl.min_horizontal("period_ns", pl.lit(_TOO_LATE_NS)),
        limit_late=pl.min_horizontal(pl.col("period_ns") * _LATE_SHARE, pl.lit(_LATE_NS)),
    )
    counted = pairs.with_columns(**got.counts(pairs), **got.publications()).with_columns(
        pl.when(pl.col("period_ns").is_not_null()).then(pl.col("on_time", "late", "too_late"))
    )
    due = [sent.between(*row) for row in counted.select("publisher", "intra", "first", "last").iter_rows()]
    lost = [len(own) - taken for own, taken in zip(due, counted["taken"], strict=True)]
    for pair in got.pairs_without_all_takes():
        lost[pair] = got.count_lost(pair, due[pair])
    return (
        counted.with_columns(lost=pl.Series(lost, dtype=pl.Int64))
        .join(model.publishers.select("topic", publisher="id"), on="publisher")
        .select("topic", "publisher", "subscription", "period_ns", "on_time", "late", "too_late", "lost")
        .sort("topic", "publisher", "subscription", maintain_order=True)
    )


def publisher_periods(model: ExecutionModel) -> pl.DataFrame:
    """Median interval between messages, by publisher and way (`intra`); null without a period."""
    return _Sent(model).periods()


def sum_of_known(column: str) -> pl.Expr:
    """Sum of the non-null values; null if there are none."""
    return pl.when(pl.col(column).is_not_null().any()).then(pl.col(column).sum()).alias(column)


class _Sent:
    """Messages by publisher and way: intra-process, or through the middleware."""

    def __init__(self, model: ExecutionModel) -> None:
        columns = mapped.growing(group=np.int32, time_ns=np.int64, publication=np.int32)
        for part in mapped.chunks(len(model.publications)):
            table = mapped.rows_of(model.publications, part)
            publisher, row = ids_of(table, "publisher"), np.arange(part.start, part.stop)
            through, within = ~table["intra"].to_numpy(), table["intra_ns"].is_not_null().to_numpy()
            for way, name, is_sent in ((0, "time_ns", through), (1, "intra_ns", within)):
                is_known = is_sent & (publisher >= 0)
                columns["group"].add(publisher[is_known] * 2 + way)
                columns["time_ns"].add(times_of(table, name)[is_known])
                columns["publication"].add(row[is_known])
        self._group, self._time_ns, publication = (column.finish() for column in columns.values())
        self._publishers, self._process_of = len(model.publishers), ids_of(model.publishers, "process")
        self._coverage = model.coverage
        self._publications = mapped.Grouped(self._group, publication, 2 * self._publishers)

    def periods(self) -> pl.DataFrame:
        """Median interval between messages, by publisher and way; null without a period."""
        groups = 2 * self._publishers
        last_ns, has_last = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=bool)
        since_ns, group = mapped.Growing(np.int64), mapped.Growing(np.int32)
        for part in mapped.chunks(len(self._group)):
            own, times_ns = self._group[part], self._time_ns[part]
            order = np.argsort(own, kind="stable")
            own, times_ns = own[order], times_ns[order]
            is_first = np.diff(own, prepend=-1) != 0
            before_ns = np.where(is_first, last_ns[own], np.roll(times_ns, 1))
            is_following = ~is_first | has_last[own]
            if self._coverage:
                is_following &= self._coverage.are_whole(self._process_of[own // 2], before_ns, times_ns)
            since_ns.add((times_ns - before_ns)[is_following])
            group.add(own[is_following])
            last_ns[own], has_last[own] = times_ns, True
        grouped = mapped.Grouped(group.finish(), since_ns.finish(), groups)
        quartiles, medians = grouped.nearest([0.25, 0.5, 0.75]), grouped.medians()
        period_ns = []
        for count, found, median in zip(grouped.sizes, quartiles, medians, strict=True):
            low, middle, high = (each or 0.0 for each in found)
            is_near = low >= (1 - _NEAR) * middle and high <= (1 + _NEAR) * middle
            period_ns.append(median if count >= _FEWEST_DISTANCES and is_near else None)
        return pl.DataFrame(
            {
                "publisher": np.arange(groups, dtype=np.int32) // 2,
                "intra": np.arange(groups) % 2 == 1,
                "period_ns": pl.Series(period_ns, dtype=pl.Float64).cast(pl.Int64),
            }
        )

    def between(self, publisher: int, intra: bool, first: int, last: int) -> IdArray:
        own = self._publications.of(publisher * 2 + intra)
        return own[np.searchsorted(own, first) : np.searchsorted(own, last, side="right")]


class _Got:
    def __init__(self, flow: FlowGraph) -> None:
        self._flow = flow
        model = flow.model
        columns = {name: mapped.Growing(np.int32) for name in _PAIR}
        for part in mapped.chunks(len(flow.transport)):
            links = mapped.rows_of(flow.transport, part)
            publication, take = ids_of(links, "publication"), ids_of(links, "take")
            intra = model.takes["intra"].gather(take).to_numpy()
            sent = model.publications[publication].select("intra", "intra_ns")
            went = np.where(intra, sent["intra_ns"].is_not_null().to_numpy(), ~sent["intra"].to_numpy())
            columns["publisher"].add(ids_at(model.publications, "publisher", publication))
            columns["intra"].add(np.where(went, intra, -1))  # -1 if the publication did not go that way
            columns["subscription"].add(ids_at(model.takes, "subscription", take))
        every = [column.finish() for column in columns.values()]
        kinds = mapped.distinct_rows(*every)
        kinds = kinds[(kinds >= 0).all(axis=1)]

        def key(publisher: IdArray, intra: IdArray, subscription: IdArray) -> IdArray:
            wide = publisher.astype(np.int64) * 2 + intra
            return wide * (len(model.subscriptions) + 1) + subscription

        def pair_of(part: slice) -> IdArray:
            publisher, intra, subscription = (each[part] for each in every)
            known = (publisher >= 0) & (intra >= 0) & (subscription >= 0)
            return np.where(known, np.searchsorted(key(*kinds.T), key(publisher, intra, subscription)), -1)

        # row in `pairs` of each message, -1 if none
        self._pair = mapped.computed(len(flow.transport), np.int32, pair_of)
        ids = {name: kinds[:, at].astype(np.int32) for at, name in enumerate(_PAIR)}
        self.pairs = pl.DataFrame(ids).with_columns(pl.col("intra") == 1)

    def counts(self, pairs: pl.DataFrame) -> dict[str, pl.Series]:
        limits = {name: pairs[f"limit_{name}"].to_numpy() for name in ("too_late", "late")}
        found = np.zeros((len(pairs), 3), dtype=np.int64)
        for part in mapped.chunks(len(self._pair)):
            known = self._pair[part] >= 0
            pair = self._pair[part][known]
            latency_ns = mapped.rows_of(self._flow.transport, part)["latency_ns"].to_numpy()[known]
            too_late = latency_ns > limits["too_late"][pair]
            late = ~too_late & (latency_ns > limits["late"][pair])
            for at, is_one in enumerate((~too_late & ~late, late, too_late)):
                found[:, at] += np.bincount(pair[is_one], minlength=len(pairs))
        return {
            name: pl.Series(found[:, at]).cast(pl.UInt32) for at, name in enumerate(("on_time", "late", "too_late"))
        }

    def publications(self) -> dict[str, pl.Series]:
        """First and last publication of each pair, and the number of distinct ones."""
        grouped = mapped.Grouped(self._pair, self._flow.transport["publication"].to_numpy(), len(self.pairs))
        taken = grouped.distinct()  # which sorts them
        edges = [(int(own[0]), int(own[-1])) for own in map(grouped.of, range(len(self.pairs)))]
        return {
            "first": pl.Series([first for first, _ in edges], dtype=pl.Int32),
            "last": pl.Series([last for _, last in edges], dtype=pl.Int32),
            "taken": pl.Series(taken, dtype=pl.Int64),
        }

    def pairs_without_all_takes(self) -> list[int]:
        """Pairs whose subscription is in a process with possibly missing events."""
        process = ids_at(self._flow.model.subscriptions, "process", self.pairs["subscription"].to_numpy())
        return np.flatnonzero(np.isin(process, self._flow.model.coverage.processes)).tolist()

    def count_lost(self, pair: int, due: IdArray) -> int:
        """Messages of a pair, of those `due` from the first to the last taken, that were certainly lost.

        A subscription takes messages in order, so the missing take would precede that of the next message.
        """
        model, (_, links) = self._flow.model, self._by_pair.of(np.array([pair]))
        publication, take = (ids_at(self._flow.transport, name, links) for name in ("publication", "take"))
        order = np.argsort(publication, kind="stable")
        taken, taken_ns = publication[order], times_at(model.takes, "time_ns", take)[order]
        untaken = due[~np.isin(due, taken)]
        next_ns = taken_ns[np.searchsorted(taken, untaken)]
        sent_ns = times_at(model.publications, "intra_ns" if self.pairs["intra"][pair] else "time_ns", untaken)
        process = ids_at(model.subscriptions, "process", self.pairs["subscription"].to_numpy()[[pair]])
        return int(model.coverage.are_whole(np.repeat(process, len(untaken)), sent_ns, next_ns).sum())

    @cached_property
    def _by_pair(self) -> mapped.Index:
        return mapped.index_by(self._pair, len(self.pairs))


def rates_of(group: IdArray, times_ns: TimesNs, coverage: Coverage, processes: Sequence[Iterable[int]]) -> pl.DataFrame:
    """One row for each group that has messages.

    Args:
        group: group of each message, -1 to leave it out.
        processes: processes of each group that must be whole.

    Columns: `group`, `messages` (all of them), `rate_hz` (from the first to the last message of each stretch in which
    the processes are whole; null without two messages in one).
    """
    partial = [number for number, each in enumerate(processes) if coverage.spans(each)]
    found = pl.DataFrame(schema=_SCHEMA)
    for part in mapped.chunks(len(group)):
        own, own_ns = group[part], times_ns[part]
        stretch = np.zeros(len(own), dtype=np.int32)
        for number in partial:
            chosen = own == number
            stretch[chosen] = coverage.stretches(processes[number], own_ns[chosen])
        some = pl.DataFrame({"group": own, "stretch": stretch, "time_ns": own_ns}).filter(pl.col("group") >= 0)
        counted = some.group_by("group", "stretch").agg(
            count=pl.len(), first_ns=pl.col("time_ns").min(), last_ns=pl.col("time_ns").max()
        )
        both = pl.concat([found, counted.cast(_SCHEMA)]).group_by("group", "stretch")
        found = both.agg(pl.col("count").sum(), pl.col("first_ns").min(), pl.col("last_ns").max())
    is_whole = pl.col("stretch") >= 0
    seconds = (pl.col("last_ns") - pl.col("first_ns")).filter(is_whole).sum() / NS_PER_S
    steps = (pl.col("count") - 1).filter(is_whole).sum()
    rated = found.group_by("group").agg(
        messages=pl.col("count").sum(), rate_hz=pl.when(seconds > 0).then(steps / seconds)
    )
    return rated.sort("group")


_SCHEMA: Final = pl.Schema(
    {"group": pl.Int32(), "stretch": pl.Int32(), "count": pl.Int64(), "first_ns": pl.Int64(), "last_ns": pl.Int64()}
)


class Role(StrEnum):
    PUBLISHES = "publishes"
    SUBSCRIBES = "subscribes"


def summarize_connections(flow: FlowGraph) -> pl.DataFrame:
    """One row per node and topic of its publishers and subscriptions, including silent ones.

    Columns: `node` (id; null where it is unknown), `topic`, `role`, `messages` (published, or received from a publisher
    in the trace), `rate_hz` (first to last message, while the processes are whole), `p50_ns`, `p99_ns` (of the
    transport), `late`, `too_late`, `lost`. The last five are null for publishers, and for topics whose messages cannot
    be linked (`unlinked_topics`); `messages` then counts all receptions.
    """
    return pl.concat([_published(flow), _received(flow)]).sort("topic", "role", "node", nulls_last=True)


def _published(flow: FlowGraph) -> pl.DataFrame:
    model = flow.model
    ends = model.publishers.filter(pl.col("topic").is_not_null()).select("node", "topic", "process", end="id")
    sent = model.publications.select("time_ns", end="publisher")
    empty = {name: pl.lit(None, dtype=pl.Float64) for name in ("p50_ns", "p99_ns")}
    counts = {name: pl.lit(None, dtype=pl.Int64) for name in ("late", "too_late", "lost")}
    return _rated(flow, ends.join(sent, on="end", how="left"), Role.PUBLISHES).with_columns(**empty, **counts)


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
    """Number of messages and their rate, while the processes of subscriptions and of the publishers are whole."""
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
    """Connections used by the passages of a path of topics; columns `node`, `topic`, `role`."""
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
    return found.unique().sort("node", "topic", "role")
