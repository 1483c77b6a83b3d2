"""Event patterns that select what an assertion is about, and the evidence in its failure message."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.text import NS_PER_MS, NS_PER_S, format_duration, one_line
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable, Window
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.coverage import describe_missing
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import UNKNOWN, FlowGraph, Names

Source = ExecutionModel | FlowGraph | DecodedTrace  # Object of an assertion. Only a trace holds raw events.


@dataclass(frozen=True)
class Evidence:
    model: ExecutionModel
    trace: DecodedTrace | None = None

    @staticmethod
    def of(source: Source) -> Evidence:
        if isinstance(source, FlowGraph):
            return Evidence(source.model)
        return Evidence(build_execution(source), source) if isinstance(source, DecodedTrace) else Evidence(source)

    @cached_property
    def names(self) -> Names:
        return Names(self.model)

    def moment(self, time_ns: int, *, digits: int = 3) -> str:
        """``0.512 s``, counted from the first event of the model."""
        return f"{(time_ns - self.model.extent_ns[0]) / NS_PER_S:.{digits}f} s"

    def span(self, window: Window) -> str:
        return f"{self.moment(window[0])} … {self.moment(window[1])}"

    def demand(self, kind: Literal["node", "topic", "service"], name: str | None, what: str) -> None:
        """Fails if no entity of that name is in the trace; a topic needs a publisher or a subscription."""
        __tracebackhide__ = True
        named = self.model.topics() if kind == "topic" else getattr(self.model, f"{kind}s")["name"].drop_nulls()
        known = sorted(set(named))
        if name is not None and name not in known:
            self.fail(f"expected {what}, but the trace has no {kind} {name}", (suggested(name, known),))

    def hidden(self, table: str, owners: pl.DataFrame) -> list[str]:
        """Notes on missing events that leave a table incomplete for some entities, such as publishers."""
        processes = set(owners["process"])
        return [
            describe_missing(each, self.model.processes)
            for each in self.model.missing_events
            if table in each.hides and processes & set(each.processes)
        ]

    def fail(self, headline: str, facts: Iterable[str] = ()) -> NoReturn:
        __tracebackhide__ = True
        lines = [headline, *(f"  {fact}" for fact in (*facts, *self._remarks()))]
        raise AssertionError("\n".join(map(one_line, lines)))

    def _remarks(self) -> Iterable[str]:
        yield from (describe_missing(each, self.model.processes) for each in self.model.missing_events)
        if self.model.unknown:
            nameless = ", ".join(f"{count} {table}" for table, count in self.model.unknown.items())
            yield f"without a name, because tracing began too late or lost how they began: {nameless}"
        if damage := describe_incomplete(self.model.stats):
            yield f"the trace is not whole ({damage}): what is not found may have happened"


def suggested(name: str, known: Sequence[str]) -> str:
    return suggest(name, known) if known else "there is none at all"


def require(sensible: bool, message: str, remedy: str = "") -> None:
    """Raises `ConfigurationError` if an assertion is called with arguments that make no sense."""
    if not sensible:
        raise ConfigurationError(message, remedy=remedy)


_MOST_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class EventPattern:
    """A pattern of any number of occurrences in a trace; `number` selects one: 0 is the first, -1 the last."""

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
        NOUN, JOINS: an occurrence, in the singular, and the preposition between it and the topic.
        DONE, HAS, NEVER: parts of the notes about nodes that published or received, or could have.
        ENDS: the model's table of instances, and its column of publisher or subscription.
    """

    NOUN: ClassVar[str]
    JOINS: ClassVar[str]
    DONE: ClassVar[str]
    HAS: ClassVar[str]
    NEVER: ClassVar[str]
    ENDS: ClassVar[tuple[str, str]]

    topic: str
    node: str | None

    def describe(self, *, many: bool) -> str:
        by = f" by {self.node}" if self.node else ""
        return f"{self.NOUN}{'s' if many else ''} {self.JOINS} {self.topic}{by}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        seen.demand("topic", self.topic, self.describe(many=True))
        seen.demand("node", self.node, self.describe(many=True))
        found = self._occurrences(seen)
        return found if self.node is None else found.filter(pl.col("node_name") == self.node)

    def hidden(self, seen: Evidence) -> list[str]:
        ends = self._ends(seen)
        return seen.hidden(self.ENDS[0], ends if self.node is None else ends.filter(pl.col("node_name") == self.node))

    def instead(self, seen: Evidence) -> Iterable[str]:
        yield from self._per_node(seen)
        found, owners = self._occurrences(seen), self.owners(seen)
        active = set(found["node_name"].drop_nulls())
        never = f"its {self.NOUN}s are not in the trace" if self.hidden(seen) else self.NEVER
        yield from (f"{node} {self.HAS} it, {never}" for node in owners if node not in active)
        if not owners and found.is_empty():
            yield self._no_owner(seen)

    @abstractmethod
    def _no_owner(self, seen: Evidence) -> str:
        """Note on a topic without any publisher, or without any subscription."""

    def owners(self, seen: Evidence) -> list[str]:
        return sorted(set(self._ends(seen)["node_name"].drop_nulls()))

    def _ends(self, seen: Evidence) -> pl.DataFrame:
        """Publishers or subscriptions of the topic, with `node_name`."""
        names = seen.model.nodes.select(node="id", node_name="name")
        ends: pl.DataFrame = getattr(seen.model, f"{self.ENDS[1]}s")
        return ends.filter(pl.col("topic") == self.topic).join(names, on="node", how="left")

    def _occurrences(self, seen: Evidence) -> pl.DataFrame:
        """Instances of the topic, with `node_name`."""
        table, end = self.ENDS
        instances: pl.DataFrame = getattr(seen.model, table)
        named = self._ends(seen).select(pl.col("id").alias(end), "node_name")
        return instances.join(named, on=end, maintain_order="left").sort("time_ns", maintain_order=True)

    def _per_node(self, seen: Evidence) -> Iterable[str]:
        """``/talker published 100, 0.544 s … 5.494 s``."""
        found, time_ns = self._occurrences(seen), pl.col("time_ns")
        nodes = found.group_by("node_name", maintain_order=True)
        counted = nodes.agg(pl.len(), first=time_ns.min(), last=time_ns.max(), distance=time_ns.diff().median())
        for name, count, first, last, distance in counted.head(_MOST_SHOWN).iter_rows():
            span = seen.moment(first) if count == 1 else seen.span((first, last))
            every = f", one in {format_duration(float(distance))}" if distance is not None and distance > 0 else ""
            yield f"{name or 'an unknown node'} {self.DONE} {count}, {span}{every}"
        if len(counted) > _MOST_SHOWN:
            yield f"and {len(counted) - _MOST_SHOWN} more nodes"


@dataclass(frozen=True)
class Published(_OfMessages):
    NOUN, JOINS, DONE = "publication", "on", "published"
    HAS, NEVER = "has a publisher for", "but never published"
    ENDS = ("publications", "publisher")

    def _no_owner(self, seen: Evidence) -> str:
        subscribed = ", ".join(received(self.topic).owners(seen)) or "no node"
        return f"no node has a publisher for it; subscribed: {subscribed}"


@dataclass(frozen=True)
class Received(_OfMessages):
    NOUN, JOINS, DONE = "reception", "of", "received"
    HAS, NEVER = "subscribes to", "but never received anything"
    ENDS = ("takes", "subscription")

    def instead(self, seen: Evidence) -> Iterable[str]:
        yield from super().instead(seen)
        sent = list(published(self.topic)._per_node(seen))  # noqa: SLF001 - of the same base class
        hidden = published(self.topic).hidden(seen)
        yield from sent or ["its publications are not in the trace" if hidden else "nothing was published on it"]

    def _no_owner(self, seen: Evidence) -> str:
        return "no node subscribes to it"


@dataclass(frozen=True)
class Entered(EventPattern):
    node: str
    state: str

    def describe(self, *, many: bool) -> str:
        return f"transition{'s' if many else ''} of {self.node} to {self.state}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        seen.demand("node", self.node, self.describe(many=True))
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


@dataclass(frozen=True, kw_only=True)
class CallbackRan(EventPattern):
    node: str | None = None
    topic: str | None = None
    service: str | None = None
    timer_ms: float | None = None
    symbol: str | None = None
    moment: Literal["start_ns", "end_ns"] = "start_ns"

    def __post_init__(self) -> None:
        is_named = [self.node, self.topic, self.service, self.timer_ms, self.symbol] != [None] * 5
        require(is_named, "no callback is named", "name its node, or its topic, service, timer_ms or symbol")

    def describe(self, *, many: bool) -> str:
        what = "end" if self.moment == "end_ns" else "run"
        kinds = {
            "for {}": self.topic,
            "for service {}": self.service,
            "of the timer of {:g} ms": self.timer_ms,
            "'{}'": self.symbol,
        }
        words = [form.format(given) for form, given in kinds.items() if given is not None]
        words += [f"in {self.node}"] if self.node else []
        return f"{what}{'s' if many else ''} of a callback {' '.join(words)}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        what = self.describe(many=True)
        seen.demand("node", self.node, what)
        seen.demand("topic", self.topic, what)
        seen.demand("service", self.service, what)
        callbacks = self._callbacks(seen)
        if callbacks.is_empty():
            seen.fail(f"expected {what}, but there is no such callback", self._others(seen))
        named = callbacks.select("callback", "node_name")
        runs = seen.model.callback_runs.join(named, on="callback", maintain_order="left")
        timed = runs.with_columns(time_ns=pl.col(self.moment)).filter(pl.col("time_ns").is_not_null())
        return timed.sort("time_ns", maintain_order=True)

    def _callbacks(self, seen: Evidence) -> pl.DataFrame:
        """Matching callbacks, in column `callback`, with their entities."""
        model = seen.model
        table = model.callbacks.rename({"id": "callback"})
        table = table.join(model.nodes.select(node="id", node_name="name"), on="node", how="left")
        table = table.join(model.subscriptions.select("topic", subscription="id"), on="subscription", how="left")
        table = table.join(model.services.select(service="id", service_name="name"), on="service", how="left")
        table = table.join(model.timers.select("period_ns", timer="id"), on="timer", how="left")
        period_ns = None if self.timer_ms is None else round(self.timer_ms * NS_PER_MS)
        given = {"node_name": self.node, "topic": self.topic, "service_name": self.service, "period_ns": period_ns}
        wanted = [pl.col(name) == value for name, value in given.items() if value is not None]
        by_symbol = pl.col("symbol").str.contains(self.symbol, literal=True) if self.symbol else pl.lit(True)
        return table.filter(by_symbol, *wanted)

    def hidden(self, seen: Evidence) -> list[str]:
        return seen.hidden("callback_runs", self._callbacks(seen))

    def instead(self, seen: Evidence) -> Iterable[str]:
        if self.hidden(seen):
            return
        counts = dict(seen.model.callback_runs.group_by("callback").agg(pl.len()).iter_rows())
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
        elif self.node and not own:
            nodes = model.nodes.filter(pl.col("name") == self.node)["id"].implode()
            subscriptions = model.subscriptions.filter(pl.col("node").is_in(nodes))["id"].implode()
            if not model.takes.filter(pl.col("subscription").is_in(subscriptions)).is_empty():
                yield f"{self.node} records no callbacks (Python nodes do not); assert_received sees what it gets"


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
    return CallbackRan(node=node, topic=topic, service=service, timer_ms=timer_ms, symbol=symbol, moment="end_ns")


_MOST_SHOWN_EVENTS = 5


@dataclass(frozen=True)
class RawEvent(EventPattern):
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
        return table.frame().filter(pl.Series(chosen)).rename({"timestamp_ns": "time_ns"})

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
        if seen.trace is None:
            raise ConfigurationError("a model holds no raw events", remedy="give the assertion the trace instead")
        events = seen.trace.events
        if self.name not in events:
            near = suggested(self.name, sorted(events))
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


def _equal(column: Column, value: Any) -> npt.NDArray[np.bool_]:
    if column.offsets is None and column.values.ndim == 1 and column.dictionary is None and not column.labels:
        same = np.asarray(column.values == value, dtype=np.bool_)
        same = same if same.shape == column.values.shape else np.zeros(len(column), dtype=np.bool_)
        return same if column.valid is None else same & column.valid
    return np.fromiter((each == value for each in column), dtype=np.bool_, count=len(column))
