"""Event patterns: select publications, receptions, callbacks or raw events for assertions."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import NS_PER_MS, format_duration
from pytest_ldos.trace.assertions.evidence import Evidence, require, suggested
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.flow.graph import UNKNOWN

_MOST_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class EventPattern:
    """A pattern that matches any number of occurrences in a trace.

    Attributes:
        number: the occurrence used where a single one is needed: 0 is the first, -1 the last.
    """

    number: int = 0

    def nth(self, number: int) -> Self:
        """The same pattern with another occurrence selected: 0 is the first, -1 the last."""
        return dataclasses.replace(self, number=number)

    @abstractmethod
    def describe(self, *, many: bool) -> str:
        """``publications on /chatter by /talker``."""

    @abstractmethod
    def find(self, seen: Evidence) -> pl.DataFrame:
        """Matching rows with `time_ns`, in time order; fails if a name is unknown to the trace."""

    def hidden(self, seen: Evidence) -> list[str]:
        """Notes on missing events that may hide occurrences."""
        return []

    @abstractmethod
    def instead(self, seen: Evidence) -> Iterable[str]:
        """Lines of a failure message that describe similar occurrences."""


@dataclass(frozen=True)
class _OfMessages(EventPattern):
    """A pattern of publications or receptions of a topic.

    Attributes:
        NOUN: an occurrence, in the singular.
        JOINS: preposition between `NOUN` and the topic.
        ENDS: the model's table of instances, and its column of publisher or subscription.
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
class Entered(EventPattern):
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
    """Instances of a topic, with `node_name`."""
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
    """Nodes with an unused publisher or subscription of the topic."""
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
    return ", ".join(_owners(seen, table, topic)) or "no node"


def _plural(noun: str, many: bool) -> str:
    return f"{noun}s" if many else noun


class _End(StrEnum):
    BEGIN = "start_ns"
    END = "end_ns"


@dataclass(frozen=True, kw_only=True)
class CallbackRan(EventPattern):
    """See `callback_began`."""

    node: str | None = None
    topic: str | None = None
    service: str | None = None
    timer_ms: float | None = None
    symbol: str | None = None
    moment: _End = _End.BEGIN

    def __post_init__(self) -> None:
        kinds = [self.topic, self.service, self.timer_ms, self.symbol]
        require(
            self.node is not None or kinds != [None] * 4,
            "no callback is named",
            "name its node, or its topic, service, timer_ms or symbol",
        )

    def describe(self, *, many: bool) -> str:
        what = "end" if self.moment is _End.END else "run"
        return f"{what}{'s' if many else ''} of {self._subject()}"

    def _subject(self) -> str:
        kinds = {
            "for {}": self.topic,
            "for service {}": self.service,
            "of the timer of {:g} ms": self.timer_ms,
            "'{}'": self.symbol,
        }
        words = [form.format(given) for form, given in kinds.items() if given is not None]
        words += [f"in {self.node}"] if self.node else []
        return f"a callback {' '.join(words)}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        what = self.describe(many=True)
        seen.demand_node(self.node, what)
        if self.topic is not None:
            seen.demand_topic(self.topic, what)
        self._demand_service(seen, what)
        if self._callbacks(seen).is_empty():
            seen.fail(f"expected {what}, but there is no such callback", self._others(seen))
        runs = seen.model.callback_runs.join(
            self._callbacks(seen).select("callback", "node_name"), on="callback", maintain_order="left"
        )
        timed = runs.with_columns(time_ns=pl.col(self.moment.value)).filter(pl.col("time_ns").is_not_null())
        return timed.sort("time_ns", maintain_order=True)

    def _demand_service(self, seen: Evidence, what: str) -> None:
        __tracebackhide__ = True
        services = sorted(set(seen.model.services["name"].drop_nulls()))
        if self.service is not None and self.service not in services:
            near = suggested(self.service, services)
            seen.fail(f"expected {what}, but the trace has no service {self.service}", (near,))

    def _callbacks(self, seen: Evidence) -> pl.DataFrame:
        """Matching callbacks, in column `callback`, with their entities."""
        model = seen.model
        table = model.callbacks.rename({"id": "callback"}).join(
            model.nodes.select(node="id", node_name="name"), on="node", how="left"
        )
        table = table.join(model.subscriptions.select("topic", subscription="id"), on="subscription", how="left")
        table = table.join(model.services.select(service="id", service_name="name"), on="service", how="left")
        table = table.join(model.timers.select("period_ns", timer="id"), on="timer", how="left")
        wanted = [
            pl.lit(True),
            *([pl.col("node_name") == self.node] if self.node else []),
            *([pl.col("topic") == self.topic] if self.topic else []),
            *([pl.col("service_name") == self.service] if self.service else []),
            *([pl.col("period_ns") == round(self.timer_ms * NS_PER_MS)] if self.timer_ms is not None else []),
            *([pl.col("symbol").str.contains(self.symbol, literal=True)] if self.symbol else []),
        ]
        return table.filter(*wanted)

    def hidden(self, seen: Evidence) -> list[str]:
        return seen.hidden("callback_runs", self._callbacks(seen))

    def instead(self, seen: Evidence) -> Iterable[str]:
        if self.hidden(seen):
            return
        runs = seen.model.callback_runs.group_by("callback").agg(pl.len())
        counts = dict(runs.iter_rows())
        meant = self._callbacks(seen)["callback"].to_list()
        for callback in meant[:_MOST_SHOWN]:
            count = counts.get(callback, 0)
            yield f"{seen.names.callback(callback)}: {f'ran {count} times' if count else 'is there, but never ran'}"
        if not any(counts.get(callback, 0) for callback in meant):
            yield from self._others(seen)

    def _others(self, seen: Evidence) -> Iterable[str]:
        """Callbacks that ran: those of the node, or of all nodes if it has none."""
        model = seen.model
        runs = model.callback_runs.group_by("callback").agg(runs=pl.len()).sort("runs", "callback", descending=True)
        named = [(seen.names.callback(callback), count) for callback, count in runs.iter_rows()]
        own = [each for each in named if self.node and each[0].startswith(f"{self.node}: ")]
        shown = own or [each for each in named if not each[0].startswith(UNKNOWN)]
        if shown:
            listed = ", ".join(f"{name} ({count} runs)" for name, count in shown[:_MOST_SHOWN])
            yield f"callbacks that ran: {listed}{', …' if len(shown) > _MOST_SHOWN else ''}"
        if not named:
            yield "no callback is in the trace at all (Python nodes record none)"
        elif self.node and not own and self._receives(seen):
            yield f"{self.node} records no callbacks (Python nodes do not); assert_received sees what it gets"

    def _receives(self, seen: Evidence) -> bool:
        nodes = seen.model.nodes.filter(pl.col("name") == self.node)["id"].implode()
        own = seen.model.subscriptions.filter(pl.col("node").is_in(nodes))["id"].implode()
        return not seen.model.takes.filter(pl.col("subscription").is_in(own)).is_empty()


def callback_began(
    *,
    node: str | None = None,
    topic: str | None = None,
    service: str | None = None,
    timer_ms: float | None = None,
    symbol: str | None = None,
) -> CallbackRan:
    """The start of a callback's run.

    Args:
        node: node of the callback.
        topic, service, timer_ms: topic, service or timer that triggers it; a timer is given by its period.
        symbol: part of the function's name.

    Tracepoints: ``callback_start``, ``callback_end``; rclpy (Jazzy) has none.
    """
    return CallbackRan(node=node, topic=topic, service=service, timer_ms=timer_ms, symbol=symbol)


def callback_ended(
    *,
    node: str | None = None,
    topic: str | None = None,
    service: str | None = None,
    timer_ms: float | None = None,
    symbol: str | None = None,
) -> CallbackRan:
    """The end of a callback's run; see `callback_began`."""
    return CallbackRan(node=node, topic=topic, service=service, timer_ms=timer_ms, symbol=symbol, moment=_End.END)


_MOST_SHOWN_EVENTS = 5


@dataclass(frozen=True)
class RawEvent(EventPattern):
    """See `event`."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def describe(self, *, many: bool) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{'events' if many else 'event'} {self.name}{f' with {given}' if given else ''}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        table = self._table(seen)
        chosen = np.ones(len(table), dtype=np.bool_)
        for name, value in self.fields.items():
            chosen &= _equal(table.columns[name], value)
        frame = table.frame().filter(pl.Series(chosen))
        return frame.rename({"timestamp_ns": "time_ns"})

    def instead(self, seen: Evidence) -> Iterable[str]:
        table = self._table(seen)
        if not len(table):
            yield "it was recorded, but never happened"
            return
        yield f"{len(table)} events of this name in all"
        for name in self.fields:
            values = Counter(str(value) for value in table.columns[name])
            listed = ", ".join(f"{value} ({count})" for value, count in values.most_common(_MOST_SHOWN_EVENTS))
            yield f"{name} is {listed}{', …' if len(values) > _MOST_SHOWN else ''}"

    def _table(self, seen: Evidence) -> EventTable:
        __tracebackhide__ = True
        events = _trace_of(seen).events
        if self.name not in events:
            known = sorted(events)
            near = suggested(self.name, known)
            seen.fail(f"expected {self.describe(many=True)}, but the trace has no event of this name", (near,))
        table = events[self.name]
        for name in self.fields:
            if name not in table.columns:
                near = suggested(name, list(table.columns))
                seen.fail(f"expected {self.describe(many=True)}, but {self.name} has no field {name}", (near,))
        return table


def event(name: str, /, **fields: Any) -> RawEvent:
    """A recorded event: ``event("ros2:rcl_publisher_init", topic_name="/chatter")``.

    Args:
        fields: fields of the payload and contexts (``vpid``, ``vtid``, ``procname``), each with its required value.
    """
    return RawEvent(name, fields)


def _trace_of(seen: Evidence) -> DecodedTrace:
    if seen.trace is None:
        raise ConfigurationError("a model holds no raw events", remedy="give the assertion the trace instead")
    return seen.trace


def _equal(column: Column, value: Any) -> npt.NDArray[np.bool_]:
    """True for each row that has the value."""
    if column.offsets is None and column.values.ndim == 1 and column.dictionary is None and not column.labels:
        same = np.asarray(column.values == value, dtype=np.bool_)
        same = same if same.shape == column.values.shape else np.zeros(len(column), dtype=np.bool_)
        return same if column.valid is None else same & column.valid
    return np.fromiter((each == value for each in column), dtype=np.bool_, count=len(column))
