"""Things that can happen in a trace, as tests name them; each can be counted and ordered."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

import polars as pl

from pytest_ldos.base.units import format_duration
from pytest_ldos.trace.assertions.evidence import Evidence

_MOST_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Happening:
    """Something that happens once or several times.

    Attributes:
        number: index of the occurrence if a single one is needed: 0 is the first, -1 the last.
    """

    number: int = 0

    def nth(self, number: int) -> Self:
        """The same happening with another occurrence selected: 0 is the first, -1 the last."""
        return dataclasses.replace(self, number=number)

    @abstractmethod
    def describe(self, *, many: bool) -> str:
        """``publications on /chatter by /talker``."""

    @abstractmethod
    def find(self, seen: Evidence) -> pl.DataFrame:
        """Its rows with `time_ns`, in time order; fails if a name is not in the trace at all."""

    def hidden(self, seen: Evidence) -> list[str]:
        """Sentences on missing events, without which it may have happened unseen."""
        return []

    @abstractmethod
    def instead(self, seen: Evidence) -> Iterable[str]:
        """Lines for a failure message that describe what happened instead."""


@dataclass(frozen=True)
class _OfMessages(Happening):
    """Something that happens to the messages of a topic.

    Attributes:
        NOUN: what happens, in the singular.
        JOINS: preposition between that and the topic.
        ENDS: table of the model with its instances, and their column of publisher or subscription.
    """

    NOUN: ClassVar[str]
    JOINS: ClassVar[str]
    ENDS: ClassVar[tuple[str, str]]

    topic: str
    node: str | None

    def describe(self, *, many: bool) -> str:
        by = f" by {self.node}" if self.node else ""
        return f"{_plural(self.NOUN, many)} {self.JOINS} {self.topic}{by}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        seen.demand_topic(self.topic, self.describe(many=True))
        seen.demand_node(self.node, self.describe(many=True))
        found = _of_topic(seen, *self.ENDS, self.topic)
        return found if self.node is None else found.filter(pl.col("node_name") == self.node)

    def hidden(self, seen: Evidence) -> list[str]:
        table, end = self.ENDS
        ends = _with_names(seen, f"{end}s", self.topic)
        own = ends if self.node is None else ends.filter(pl.col("node_name") == self.node)
        return seen.hidden(table, own)


@dataclass(frozen=True)
class Published(_OfMessages):
    """See `published`."""

    NOUN = "publication"
    JOINS = "on"
    ENDS = ("publications", "publisher")

    def instead(self, seen: Evidence) -> Iterable[str]:
        found = _of_topic(seen, *self.ENDS, self.topic)
        yield from _per_node(seen, found, "published")
        silent = _silent(seen, found, "publishers", self.topic)
        never = "its publications are not in the trace" if self.hidden(seen) else "but never published"
        yield from (f"{node} has a publisher for it, {never}" for node in silent)
        if not silent and found.is_empty():
            yield f"no node has a publisher for it; subscribed: {_nodes_of(seen, 'subscriptions', self.topic)}"


@dataclass(frozen=True)
class Received(_OfMessages):
    """See `received`."""

    NOUN = "reception"
    JOINS = "of"
    ENDS = ("takes", "subscription")

    def instead(self, seen: Evidence) -> Iterable[str]:
        found = _of_topic(seen, *self.ENDS, self.topic)
        yield from _per_node(seen, found, "received")
        silent = _silent(seen, found, "subscriptions", self.topic)
        never = "its receptions are not in the trace" if self.hidden(seen) else "but never received anything"
        yield from (f"{node} subscribes to it, {never}" for node in silent)
        if not silent and found.is_empty():
            yield "no node subscribes to it"
        sent = _of_topic(seen, *Published.ENDS, self.topic)
        yield from _per_node(seen, sent, "published")
        if sent.is_empty():
            hidden = published(self.topic).hidden(seen)
            yield "its publications are not in the trace" if hidden else "nothing was published on it"


@dataclass(frozen=True)
class Entered(Happening):
    """See `entered`."""

    node: str
    state: str

    def describe(self, *, many: bool) -> str:
        return f"{_plural('transition', many)} of {self.node} to {self.state}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        seen.demand_node(self.node, self.describe(many=True))
        return self._of_node(seen).filter(pl.col("to_state") == self.state)

    def instead(self, seen: Evidence) -> Iterable[str]:
        states = self._of_node(seen)["to_state"].to_list()
        never = "its transitions are not in the trace" if self.hidden(seen) else f"{self.node} changed no state"
        yield f"{self.node} entered: {', '.join(states)}" if states else never

    def hidden(self, seen: Evidence) -> list[str]:
        return seen.hidden("transitions", seen.model.nodes.filter(pl.col("name") == self.node))

    def _of_node(self, seen: Evidence) -> pl.DataFrame:
        nodes = seen.model.nodes.select(node="id", node_name="name")
        machines = seen.model.state_machines.select("node", state_machine="id").join(nodes, on="node")
        joined = seen.model.transitions.join(machines, on="state_machine", maintain_order="left")
        return joined.filter(pl.col("node_name") == self.node)


def published(topic: str, *, node: str | None = None) -> Published:
    """A publication on a topic, by any node or the given one."""
    return Published(topic, node)


def received(topic: str, *, node: str | None = None) -> Received:
    """A reception of a message, by any node or the given one."""
    return Received(topic, node)


def entered(node: str, state: str) -> Entered:
    """A lifecycle node's transition to a state (``active``)."""
    return Entered(node, state)


def _of_topic(seen: Evidence, table: str, end: str, topic: str) -> pl.DataFrame:
    """Instances on a topic, with `node_name`."""
    nodes = seen.model.nodes.select(node="id", node_name="name")
    ends = getattr(seen.model, f"{end}s").filter(pl.col("topic") == topic).select("node", pl.col("id").alias(end))
    instances: pl.DataFrame = getattr(seen.model, table)
    joined = instances.join(ends.join(nodes, on="node", how="left"), on=end, maintain_order="left")
    return joined.drop("node").sort("time_ns", maintain_order=True)


def _per_node(seen: Evidence, found: pl.DataFrame, what: str) -> Iterable[str]:
    """``/talker published 100, 0.544 s … 5.494 s``."""
    counted = found.group_by("node_name", maintain_order=True).agg(
        pl.len(), first=pl.col("time_ns").min(), last=pl.col("time_ns").max()
    )
    for name, count, first, last in counted.head(_MOST_SHOWN).iter_rows():
        span = seen.moment(first) if count == 1 else f"{seen.span((first, last))}{_usual_distance(found, name)}"
        yield f"{name or 'an unknown node'} {what} {count}, {span}"
    if len(counted) > _MOST_SHOWN:
        yield f"and {len(counted) - _MOST_SHOWN} more nodes"


def _usual_distance(found: pl.DataFrame, node: str | None) -> str:
    times = found.filter(pl.col("node_name").eq_missing(pl.lit(node)))["time_ns"]
    distance = times.diff().median()
    return f", one in {format_duration(float(distance))}" if isinstance(distance, float) and distance > 0 else ""


def _silent(seen: Evidence, found: pl.DataFrame, table: str, topic: str) -> list[str]:
    """Nodes with a publisher or subscription of the topic that never used it."""
    active = set(found["node_name"].drop_nulls())
    return [node for node in _owners(seen, table, topic) if node not in active]


def _owners(seen: Evidence, table: str, topic: str) -> list[str]:
    return sorted(set(_with_names(seen, table, topic)["node_name"].drop_nulls()))


def _with_names(seen: Evidence, table: str, topic: str) -> pl.DataFrame:
    """Publishers or subscriptions of a topic, with `node_name`."""
    names = seen.model.nodes.select(node="id", node_name="name")
    ends: pl.DataFrame = getattr(seen.model, table)
    return ends.filter(pl.col("topic") == topic).join(names, on="node", how="left")


def _nodes_of(seen: Evidence, table: str, topic: str) -> str:
    return ", ".join(_owners(seen, table, topic)) or "nobody"


def _plural(noun: str, many: bool) -> str:
    return f"{noun}s" if many else noun
