"""Timeliness of a topic's messages at their subscriptions, and their rates.

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
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import (
    Grouped,
    IdArray,
    Index,
    TimesNs,
    distinct_rows,
    ids_at,
    ids_of,
    index_by,
    rows_of,
    times_at,
    times_of,
)
from pytest_ldos.trace.execution.coverage import Coverage
from pytest_ldos.trace.execution.mapped import Growing, chunks, computed
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph

_TOO_LATE_NS: Final = 50_000_000
_LATE_NS: Final = 5_000_000
_LATE_SHARE: Final = 0.2
_FEWEST_DISTANCES: Final = 3
_NEAR: Final = 0.5

_PAIR: Final = ("publisher", "intra", "subscription")


def classify_receptions(flow: FlowGraph) -> pl.DataFrame:
    """One row per pair of publisher and subscription with messages.

    Columns: `topic`, `publisher`, `subscription`, `period_ns` (median time between the publisher's
    messages; null where they have no period), `on_time`, `late`, `too_late` (numbers of messages; null without a
    period), `lost`.
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


def sum_of_known(column: str) -> pl.Expr:
    """Sum of the non-null values; null if there are none."""
    return pl.when(pl.col(column).is_not_null().any()).then(pl.col(column).sum()).alias(column)


def _periodic(count: int, quartiles: Sequence[float | None]) -> bool:
    """True if the middle half of the intervals between messages is near the median."""
    low, median, high = quartiles
    if low is None or median is None or high is None or count < _FEWEST_DISTANCES:
        return False
    return low >= (1 - _NEAR) * median and high <= (1 + _NEAR) * median


class _Sent:
    """Messages by publisher and way: intra-process, or through the middleware."""

    def __init__(self, model: ExecutionModel) -> None:
        columns = {"group": Growing(np.int32), "time_ns": Growing(np.int64), "publication": Growing(np.int32)}
        for part in chunks(len(model.publications)):
            table = rows_of(model.publications, part)
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
        self._publications = Grouped(self._group, publication, 2 * self._publishers)

    def periods(self) -> pl.DataFrame:
        """Median interval between messages, by publisher and way; null without a period."""
        groups = 2 * self._publishers
        last_ns, has_last = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=bool)
        since_ns, group = Growing(np.int64), Growing(np.int32)
        for part in chunks(len(self._group)):
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
        grouped = Grouped(group.finish(), since_ns.finish(), groups)
        middle = [_periodic(*found) for found in zip(grouped.sizes, grouped.nearest([0.25, 0.5, 0.75]), strict=True)]
        medians = [
            median if is_periodic else None for median, is_periodic in zip(grouped.medians(), middle, strict=True)
        ]
        return pl.DataFrame(
            {
                "publisher": np.arange(groups, dtype=np.int32) // 2,
                "intra": np.arange(groups) % 2 == 1,
                "period_ns": pl.Series(medians, dtype=pl.Float64).cast(pl.Int64),
            }
        )

    def between(self, publisher: int, intra: bool, first: int, last: int) -> IdArray:
        """Messages of a publisher from one publication to another, in order."""
        own = self._publications.of(publisher * 2 + intra)
        return own[np.searchsorted(own, first) : np.searchsorted(own, last, side="right")]


class _Got:
    """Messages with a transport link, by publisher, way and subscription."""

    def __init__(self, flow: FlowGraph) -> None:
        self._flow = flow
        model = flow.model
        links = len(flow.transport)
        self._publisher = computed(
            links, np.int32, lambda part: ids_at(model.publications, "publisher", self._linked("publication", part))
        )
        self._subscription = computed(
            links, np.int32, lambda part: ids_at(model.takes, "subscription", self._linked("take", part))
        )
        self._intra = computed(links, np.int32, self._way)
        kinds = distinct_rows(self._publisher, self._intra, self._subscription)
        self._kinds = kinds[(kinds[:, 0] >= 0) & (kinds[:, 1] >= 0) & (kinds[:, 2] >= 0)]
        self._keys = self._key(*self._kinds.T)
        self._pair = computed(links, np.int32, self._pair_of)
        ids = {name: self._kinds[:, at].astype(np.int32) for at, name in enumerate(_PAIR)}
        self.pairs = pl.DataFrame(ids).with_columns(pl.col("intra") == 1)

    def counts(self, pairs: pl.DataFrame) -> dict[str, pl.Series]:
        """Numbers of messages on time, late and too late, for each pair."""
        limits = {name: pairs[f"limit_{name}"].to_numpy() for name in ("too_late", "late")}
        found = np.zeros((len(pairs), 3), dtype=np.int64)
        for part in chunks(len(self._pair)):
            known = self._pair[part] >= 0
            pair = self._pair[part][known]
            latency_ns = rows_of(self._flow.transport, part)["latency_ns"].to_numpy()[known]
            too_late = latency_ns > limits["too_late"][pair]
            late = ~too_late & (latency_ns > limits["late"][pair])
            for at, is_one in enumerate((~too_late & ~late, late, too_late)):
                found[:, at] += np.bincount(pair[is_one], minlength=len(pairs))
        return {
            name: pl.Series(found[:, at]).cast(pl.UInt32) for at, name in enumerate(("on_time", "late", "too_late"))
        }

    def publications(self) -> dict[str, pl.Series]:
        """First and last publication of each pair, and the number of distinct ones."""
        grouped = Grouped(self._pair, self._flow.transport["publication"].to_numpy(), len(self._kinds))
        taken = grouped.distinct()  # which sorts them
        edges = [(int(own[0]), int(own[-1])) for own in map(grouped.of, range(len(self._kinds)))]
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
        """Messages of a pair that were certainly lost: the subscribing process is whole.

        A subscription takes messages in order, so the missing take would precede that of the next message.

        Args:
            due: publications from the first one taken to the last, in order.
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
    def _by_pair(self) -> Index:
        return index_by(self._pair, len(self.pairs))

    def _linked(self, name: str, part: slice) -> IdArray:
        return ids_of(rows_of(self._flow.transport, part), name)

    def _way(self, part: slice) -> IdArray:
        """1 for intra-process messages, 0 for others, -1 if the publication did not go that way."""
        model, publication = self._flow.model, self._linked("publication", part)
        intra = model.takes["intra"].gather(self._linked("take", part)).to_numpy()
        sent = model.publications[publication].select("intra", "intra_ns")
        went = np.where(intra, sent["intra_ns"].is_not_null().to_numpy(), ~sent["intra"].to_numpy())
        return np.where(went, intra, -1)

    def _key(self, publisher: IdArray, intra: IdArray, subscription: IdArray) -> IdArray:
        """One number for each pair."""
        wide = publisher.astype(np.int64) * 2 + intra
        return wide * (len(self._flow.model.subscriptions) + 1) + subscription

    def _pair_of(self, part: slice) -> IdArray:
        """Row in `pairs` of each message, -1 if none."""
        ids = self._publisher[part], self._intra[part], self._subscription[part]
        known = (ids[0] >= 0) & (ids[1] >= 0) & (ids[2] >= 0)
        return np.where(known, np.searchsorted(self._keys, self._key(*ids)), -1)


_NS_PER_S: Final = 1e9


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
    for part in chunks(len(group)):
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
    seconds = (pl.col("last_ns") - pl.col("first_ns")).filter(is_whole).sum() / _NS_PER_S
    steps = (pl.col("count") - 1).filter(is_whole).sum()
    rated = found.group_by("group").agg(
        messages=pl.col("count").sum(), rate_hz=pl.when(seconds > 0).then(steps / seconds)
    )
    return rated.sort("group")


_SCHEMA: Final = pl.Schema(
    {"group": pl.Int32(), "stretch": pl.Int32(), "count": pl.Int64(), "first_ns": pl.Int64(), "last_ns": pl.Int64()}
)
