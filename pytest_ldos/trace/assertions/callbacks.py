"""Runs of callbacks as happenings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from pytest_ldos.base.units import NS_PER_MS
from pytest_ldos.trace.assertions.evidence import Evidence, require, suggested
from pytest_ldos.trace.assertions.happenings import Happening
from pytest_ldos.trace.flow.names import UNKNOWN

_MOST_SHOWN = 8


class _End(StrEnum):
    BEGIN = "start_ns"
    END = "end_ns"


@dataclass(frozen=True, kw_only=True)
class CallbackRan(Happening):
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
        """Callbacks that match, in column `callback`, with the entities they belong to."""
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
        """Callbacks that ran: those of the node if it has any, otherwise of all nodes."""
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
