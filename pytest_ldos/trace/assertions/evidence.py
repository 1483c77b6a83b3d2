"""Evidence for assertions, and the context in each failure message: times, and losses of the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.text import NS_PER_S, one_line
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.build import build_execution
from pytest_ldos.trace.execution.coverage import describe_missing
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph, Names

Source = ExecutionModel | FlowGraph | DecodedTrace
"""Object of an assertion. Only a trace holds raw events."""

Window = tuple[int, int]
"""First and last moment, nanoseconds since the epoch."""


@dataclass(frozen=True)
class Evidence:
    """A model, with its trace if there is one."""

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

    @property
    def nodes(self) -> list[str]:
        return sorted(set(self.model.nodes["name"].drop_nulls()))

    def moment(self, time_ns: int, *, digits: int = 3) -> str:
        """``0.512 s``, counted from the first event of the model."""
        return f"{(time_ns - self.model.extent_ns[0]) / NS_PER_S:.{digits}f} s"

    def span(self, window: Window) -> str:
        return f"{self.moment(window[0])} … {self.moment(window[1])}"

    def demand_node(self, node: str | None, what: str) -> None:
        """Fails if no node of that name is in the trace."""
        __tracebackhide__ = True
        if node is not None and node not in self.nodes:
            self.fail(f"expected {what}, but the trace has no node {node}", (suggested(node, self.nodes),))

    def demand_topic(self, topic: str, what: str) -> None:
        """Fails if the topic has neither a publisher nor a subscription."""
        __tracebackhide__ = True
        topics = self.model.topics()
        if topic not in topics:
            self.fail(f"expected {what}, but the trace has no topic {topic}", (suggested(topic, topics),))

    def hidden(self, table: str, owners: pl.DataFrame) -> list[str]:
        """Notes on missing events that leave a table incomplete for some entities, such as publishers."""
        processes = set(owners["process"])
        return [
            describe_missing(each, self.model.processes)
            for each in self.model.missing_events
            if table in each.hides and processes & set(each.processes)
        ]

    def fail(self, headline: str, facts: Iterable[str] = ()) -> NoReturn:
        """Fails the test, with the context needed to judge the failure."""
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
    """The nearest match, or a statement that there is none."""
    return suggest(name, known) if known else "there is none at all"


def require(sensible: bool, message: str, remedy: str = "") -> None:
    """Raises `ConfigurationError` if an assertion is called with arguments that make no sense."""
    if not sensible:
        raise ConfigurationError(message, remedy=remedy)
