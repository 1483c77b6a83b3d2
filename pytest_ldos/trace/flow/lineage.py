"""Lineage of a message: everything that led to it, and everything it led to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, ids_of, times_of
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.names import Names
from pytest_ldos.trace.flow.schema import DIRECT


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
    """Everything that led to an instance, or everything it led to.

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
        """Everything that an instance led to."""
        return self._search(kind, instance, forward=True)

    def backward(self, kind: Kind, instance: int) -> Lineage:
        """Everything that led to an instance."""
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
