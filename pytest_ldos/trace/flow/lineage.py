"""Lineages of messages, and connections between nodes and topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, ids_of, times_of
from pytest_ldos.trace.flow.graph import DIRECT, FlowGraph, Names, unlinked_topics
from pytest_ldos.trace.flow.paths import PathInstances
from pytest_ldos.trace.flow.timeliness import classify_receptions, rates_of, sum_of_known


class Kind(StrEnum):
    """Kind of an instance; its plural names the model's table that holds it."""

    PUBLICATION = "publication"
    TAKE = "take"
    CALLBACK_RUN = "callback_run"


@dataclass(frozen=True)
class Instance:
    """Publication, take or callback run.

    Attributes:
        id: row in the table.
        begin_ns, end_ns: nanoseconds since the epoch; equal for instances without a duration.
        label: human-readable name, e.g. ``/relay: /src_a``.
    """

    kind: Kind
    id: int
    begin_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True)
class Link:
    """Causal link from one instance to another.

    Attributes:
        rule: ``transport``, ``trigger``, ``publish``, ``polled`` (a callback published a result of a
            message that it took itself), ``periodic_async`` or ``partial_sync``.
    """

    cause: Instance
    effect: Instance
    rule: str


@dataclass(frozen=True)
class Lineage:
    """All causes or all effects of an instance.

    Attributes:
        instances: in time order, including the origin.
        links: from causes to effects.
    """

    origin: Instance
    instances: tuple[Instance, ...]
    links: tuple[Link, ...]

    @property
    def topics(self) -> list[str]:
        """Topics of its publications, each once, in time order."""
        return list(dict.fromkeys(each.label for each in self.instances if each.kind is Kind.PUBLICATION))

    @property
    def span_ns(self) -> int:
        """Time from its first begin to its last end."""
        return max(each.end_ns for each in self.instances) - min(each.begin_ns for each in self.instances)


class LineageIndex:
    """Finds lineages in a graph; the cost of a search is proportional to its result."""

    def __init__(self, flow: FlowGraph) -> None:
        self._flow = flow
        self._names = Names(flow.model)
        self._sizes = [len(flow.model.publications), len(flow.model.takes), len(flow.model.callback_runs)]
        self._first = dict(zip(Kind, np.cumsum([0, *self._sizes]).tolist(), strict=False))

    def forward(self, kind: Kind, instance: int) -> Lineage:
        """All effects of an instance."""
        return self._search(kind, instance, forward=True)

    def backward(self, kind: Kind, instance: int) -> Lineage:
        """All causes of an instance."""
        return self._search(kind, instance, forward=False)

    def _search(self, kind: Kind, instance: int, *, forward: bool) -> Lineage:
        if not 0 <= instance < self._sizes[list(Kind).index(kind)]:
            raise IndexError(f"there is no {kind} {instance}")
        start = self._first[kind] + instance
        found = {start: self._instance(start)}
        links = []
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            for other, rule in self._neighbours(at, forward=forward):
                if other not in found:
                    found[other] = self._instance(other)
                    waiting.append(other)
                cause, effect = (at, other) if forward else (other, at)
                links.append(Link(found[cause], found[effect], rule))
        return Lineage(found[start], tuple(sorted(found.values(), key=_moment)), tuple(links))

    def _neighbours(self, at: int, *, forward: bool) -> Iterator[tuple[int, str]]:
        keys, others, rules = self._edges[forward]
        for row in range(*np.searchsorted(keys, [at, at + 1]).tolist()):
            yield int(others[row]), rules[row]

    @cached_property
    def _edges(self) -> dict[bool, tuple[IdArray, IdArray, list[str]]]:
        """Causes and effects by the number of their instance, for both directions."""
        flow, first = self._flow, self._first
        parts = [
            (flow.transport, "publication", "take", "transport"),
            (flow.triggers.filter(~pl.col("polled")), "take", "callback_run", "trigger"),
            (flow.causes, "callback_run", "publication", "publish"),
        ]
        cause = [ids_of(table, source) + first[Kind(source)] for table, source, _, _ in parts]
        effect = [ids_of(table, target) + first[Kind(target)] for table, _, target, _ in parts]
        rules = [rule for table, _, _, rule in parts for _ in range(len(table))]
        polled = pl.col("take").is_in(flow.triggers.filter("polled")["take"].implode())
        uses = flow.uses.filter((pl.col("rule") != DIRECT) | polled)
        cause.append(ids_of(uses, "take") + first[Kind.TAKE])
        effect.append(ids_of(uses, "publication") + first[Kind.PUBLICATION])
        rules += uses["rule"].cast(pl.String).replace(DIRECT, "polled").to_list()
        return {
            forward: _ordered(np.concatenate(one), np.concatenate(other), rules)
            for forward, one, other in ((True, cause, effect), (False, effect, cause))
        }

    def _instance(self, number: int) -> Instance:
        kind = next(kind for kind in reversed(Kind) if number >= self._first[kind])
        row = number - self._first[kind]
        begin_ns, end_ns = self._spans[kind]
        begin = int(begin_ns[row])
        return Instance(kind, row, begin, max(int(end_ns[row]), begin), self._names.of(kind.value, row))

    @cached_property
    def _spans(self) -> dict[Kind, tuple[IdArray, IdArray]]:
        model = self._flow.model
        runs = model.callback_runs
        return {
            Kind.PUBLICATION: (times_of(model.publications, "time_ns"), times_of(model.publications, "time_ns")),
            Kind.TAKE: (times_of(model.takes, "time_ns"), times_of(model.takes, "time_ns")),
            Kind.CALLBACK_RUN: (times_of(runs, "start_ns"), times_of(runs, "end_ns")),
        }


def _ordered(keys: IdArray, others: IdArray, rules: list[str]) -> tuple[IdArray, IdArray, list[str]]:
    order = np.argsort(keys, kind="stable")
    return keys[order], others[order], [rules[row] for row in order.tolist()]


def _moment(instance: Instance) -> tuple[int, int]:
    return instance.begin_ns, list(Kind).index(instance.kind)


_KEY: Final = ("node", "topic", "role")


class Role(StrEnum):
    """Role of a node on a topic."""

    PUBLISHES = "publishes"
    SUBSCRIBES = "subscribes"


def summarize_connections(flow: FlowGraph) -> pl.DataFrame:
    """One row per node and topic of its publishers and subscriptions, including silent ones.

    Columns: `node` (id; null where it is unknown), `topic`, `role`, `messages` (published, or received from a
    publisher in the trace), `rate_hz` (first to last message, while the
    processes are whole), `p50_ns`, `p99_ns` (of the transport), `late`,
    `too_late`, `lost`. The last five are null for publishers, and for topics whose messages cannot be linked
    (`unlinked_topics`); `messages` then counts all receptions.
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

    Receptions also need the processes of the topic's publishers to be whole: a reception without its publication
    is not counted.
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
    return found.unique().sort(_KEY)
