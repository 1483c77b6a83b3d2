"""Passages along declared paths, and lineages of messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import IdArray, computed, ids_of, index_by, pick, rows_where, times_at
from pytest_ldos.trace.flow.graph import DIRECT, FlowGraph, Names, begins_of, number_topics, topics_of
from pytest_ldos.trace.flow.transport import first_linked

_MOST_ROWS: Final = 50_000_000  # limit of partial passages in one search step


@dataclass(frozen=True)
class PathInstances:
    """All passages along a path.

    Attributes:
        table: `begin_ns`, `end_ns` (nanoseconds since the epoch), `latency_ns`. Paths of topics also have
            `from_publication`, `to_publication`, `takes` (the receptions on the way, in order) and `certain` (true if
            all links are from which it could come); paths of phases have `goal_id`.
    """

    path: PathSpec
    table: pl.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    @property
    def missed(self) -> int:
        """Number of passages that took longer than the deadline."""
        if self.path.deadline_ns is None:
            return 0
        return int((self.table["latency_ns"] > self.path.deadline_ns).sum())


def find_path(flow: FlowGraph, path: PathSpec) -> PathInstances:
    """Finds every passage along a path; raises `ConfigurationError` if there are too many partial passages.

    A path of topics ends with each publication on its last topic. It begins with the publish call of
    the newest message on its first topic from which that publication was made. A path of phases has
    one passage for each goal that entered exactly these phases in this order.
    """
    return PathInstances(path, pl.concat(each.table for each in passages_in_parts(flow, path)))


def passages_in_parts(flow: FlowGraph, path: PathSpec) -> Iterator[PathInstances]:
    """Like `find_path`, in one or more parts, so that memory does not grow with the number of passages."""
    if path.of_phases:
        wanted = flow.model.phases.filter(pl.col("phase").is_in(list(path.via)))
        per_goal = wanted.group_by("goal_id", maintain_order=True).agg(
            begin_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[0]).first(),
            end_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[-1]).first(),
            entered=pl.col("phase").sort_by("time_ns", maintain_order=True).str.join(" "),
        )
        whole = per_goal.filter(pl.col("entered") == " ".join(path.via)).drop("entered")
        yield PathInstances(path, whole.with_columns(latency_ns=pl.col("end_ns") - pl.col("begin_ns")))
        return
    ends = dict.fromkeys(("from_publication", "to_publication"), pl.Int32)
    none = pl.DataFrame(schema={**ends, "takes": pl.List(pl.Int32), "certain": pl.Boolean})
    yield PathInstances(path, _newest(flow, none))
    chains = _Chains(flow, path)
    step = max(mapped.CHUNK_ROWS // _PARTS, 1)
    for first in range(0, len(chains.ends), step):
        yield PathInstances(path, _newest(flow, pl.concat([none, *chains.search(chains.ends[first : first + step])])))


def _newest(flow: FlowGraph, found: pl.DataFrame) -> pl.DataFrame:
    """For each publication, the chain with the newest begin, with its times."""
    publications = flow.model.publications
    begin_ns = begins_of(publications[ids_of(found, "from_publication")])
    end_ns = times_at(publications, "time_ns", ids_of(found, "to_publication"))
    times = {"begin_ns": begin_ns, "end_ns": end_ns, "latency_ns": end_ns - begin_ns}
    sure = found.with_columns(pl.col("certain").all().over("to_publication"))
    newest = sure.hstack(pl.DataFrame(times)).sort("to_publication", "begin_ns", maintain_order=True)
    return newest.unique("to_publication", keep="last", maintain_order=True)


_PARTS: Final = 8  # chunks of ends are divided by this: their chains take more memory than rows of a table


class _Chains:
    """Backward search from the publications on the last topic, `ends`, one hop per step, many instances at once."""

    def __init__(self, flow: FlowGraph, path: PathSpec) -> None:
        model, numbers = flow.model, number_topics(flow.model)
        of_publisher, publisher = topics_of(model.publishers, numbers), ids_of(model.publications, "publisher")
        self._topic = computed(len(publisher), np.int32, lambda part: pick(of_publisher, publisher[part], -1))
        self._name = path.name
        self._via = np.array([numbers.get(topic, -2) for topic in path.via])
        self._steps = len(numbers)
        self.ends = rows_where(len(self._topic), lambda part: self._topic[part] == self._via[-1])
        if len(self.ends):
            self._origin = first_linked(len(model.takes), flow.transport, "take", "publication")
            self._take = ids_of(flow.uses, "take")
            self._certain = flow.uses["certain"].to_numpy()
            self._uses = index_by(ids_of(flow.uses, "publication"), len(self._topic))

    def search(self, end: IdArray) -> Iterator[pl.DataFrame]:
        """Complete chains to the given ends, one frame per number of hops."""
        current, wanted = end, np.full(len(end), len(self._via) - 2)
        takes: list[IdArray] = []
        certain = np.ones(len(end), dtype=np.bool_)
        for _ in range(self._steps):
            if len(current) == 0:
                return
            row, use = self._uses.of(current)
            if len(row) > _MOST_ROWS:
                raise ConfigurationError(
                    f"path {self._name!r} has too many messages that could lie on it ({len(row)} in one step)",
                    remedy="name more of the topics between its ends, or read less with `window`",
                )
            take = self._take[use]
            known = self._origin[take] >= 0
            row, take, origin = row[known], take[known], self._origin[take[known]]
            sure = certain[row] & self._certain[use[known]]
            wanted = wanted[row] - (self._topic[origin] == self._via[wanted[row]])
            # the first way from each message to each end; the others have the same continuations
            way = (end[row].astype(np.int64) * len(self._topic) + origin) * (len(self._via) + 1) + wanted
            one = np.sort(np.unique(way, return_index=True)[1])
            row, wanted, certain = row[one], wanted[one], sure[one]
            current, end = origin[one], end[row]
            takes = [take[one], *(taken[row] for taken in takes)]
            done = wanted < 0
            lists = np.stack([taken[done] for taken in takes], axis=1).astype(np.int32)
            yield pl.DataFrame(
                {
                    "from_publication": current[done].astype(np.int32),
                    "to_publication": end[done].astype(np.int32),
                    "takes": pl.Series(lists, dtype=pl.Array(pl.Int32, len(takes))).cast(pl.List(pl.Int32)),
                    "certain": certain[done],
                }
            )
            go_on = ~done & (self._topic[current] != self._via[-1])
            current, end, wanted = current[go_on], end[go_on], wanted[go_on]
            takes, certain = [taken[go_on] for taken in takes], certain[go_on]


class Kind(StrEnum):
    """Kind of an instance; its plural names the model's table that holds it."""

    PUBLICATION = "publication"
    TAKE = "take"
    CALLBACK_RUN = "callback_run"


@dataclass(frozen=True)
class Instance:
    """Publication, take or callback run, in row `id` of its table.

    Begin and end, nanoseconds since the epoch, are equal for instances without a duration.
    """

    kind: Kind
    id: int
    begin_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True)
class Link:
    """Causal link from one instance to another.

    `rule` is ``transport``, ``trigger``, ``publish``, ``polled`` (a callback published a result of a
    message that it took itself), or the rule of an indirect link.
    """

    cause: Instance
    effect: Instance
    rule: str


@dataclass(frozen=True)
class Lineage:
    """All causes or all effects of an instance, and itself, in time order; links go from causes to effects."""

    origin: Instance
    instances: tuple[Instance, ...]
    links: tuple[Link, ...]

    @property
    def topics(self) -> list[str]:
        """Topics of its publications, each once, in time order."""
        return list(dict.fromkeys(each.label for each in self.instances if each.kind is Kind.PUBLICATION))


class LineageIndex:
    """Finds lineages in a graph; the cost of a search is proportional to its result."""

    def __init__(self, flow: FlowGraph) -> None:
        self._flow = flow
        self._names = Names(flow.model)
        model = flow.model
        self._tables = {
            Kind.PUBLICATION: (model.publications, "time_ns", "time_ns"),
            Kind.TAKE: (model.takes, "time_ns", "time_ns"),
            Kind.CALLBACK_RUN: (model.callback_runs, "start_ns", "end_ns"),
        }
        sizes = [len(table) for table, _, _ in self._tables.values()]
        self._first = dict(zip(Kind, np.cumsum([0, *sizes]).tolist(), strict=False))

    def forward(self, kind: Kind, instance: int) -> Lineage:
        """All effects of an instance."""
        return self._search(kind, instance, forward=True)

    def backward(self, kind: Kind, instance: int) -> Lineage:
        """All causes of an instance."""
        return self._search(kind, instance, forward=False)

    def _search(self, kind: Kind, instance: int, *, forward: bool) -> Lineage:
        if not 0 <= instance < len(self._tables[kind][0]):
            raise IndexError(f"there is no {kind} {instance}")
        start = self._first[kind] + instance
        found = {start: self._instance(start)}
        links = []
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            keys, others, rules = self._edges[forward]
            for row in range(*np.searchsorted(keys, [at, at + 1]).tolist()):
                other, rule = int(others[row]), rules[row]
                if other not in found:
                    found[other] = self._instance(other)
                    waiting.append(other)
                cause, effect = (at, other) if forward else (other, at)
                links.append(Link(found[cause], found[effect], rule))
        ordered = sorted(found.values(), key=lambda each: (each.begin_ns, list(Kind).index(each.kind)))
        return Lineage(found[start], tuple(ordered), tuple(links))

    @cached_property
    def _edges(self) -> dict[bool, tuple[IdArray, IdArray, list[str]]]:
        """Causes and effects by the number of their instance, for both directions."""
        flow, first = self._flow, self._first
        triggers = flow.triggers.filter(~pl.col("polled"))
        polled = pl.col("take").is_in(flow.triggers.filter("polled")["take"].implode())
        uses = flow.uses.filter((pl.col("rule") != DIRECT) | polled)
        parts = [
            (flow.transport, "publication", "take", ["transport"] * len(flow.transport)),
            (triggers, "take", "callback_run", ["trigger"] * len(triggers)),
            (flow.causes, "callback_run", "publication", ["publish"] * len(flow.causes)),
            (uses, "take", "publication", uses["rule"].cast(pl.String).replace(DIRECT, "polled").to_list()),
        ]
        cause = np.concatenate([ids_of(table, source) + first[Kind(source)] for table, source, _, _ in parts])
        effect = np.concatenate([ids_of(table, target) + first[Kind(target)] for table, _, target, _ in parts])
        rules = [rule for *_, some in parts for rule in some]
        edges = {}
        for forward, one, other in ((True, cause, effect), (False, effect, cause)):
            order = np.argsort(one, kind="stable")
            edges[forward] = one[order], other[order], [rules[row] for row in order.tolist()]
        return edges

    def _instance(self, number: int) -> Instance:
        kind = next(kind for kind in reversed(Kind) if number >= self._first[kind])
        row = number - self._first[kind]
        table, begin, end = self._tables[kind]
        begin_ns, end_ns = table[begin][row], table[end][row]
        last_ns = begin_ns if end_ns is None else max(end_ns, begin_ns)
        return Instance(kind, row, begin_ns, last_ns, self._names.of(kind.value, row))
