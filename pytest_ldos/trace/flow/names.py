"""Human-readable names of instances: node and topic, timer or service."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from pytest_ldos.trace.execution.columns import ids_of
from pytest_ldos.trace.execution.model import ExecutionModel

UNKNOWN: Final = "unknown"
_NS_PER_MS: Final = 1_000_000


class Names:
    """Names of instances and entities of a model.

    Args:
        apart: where nodes have the same name, with their processes.
    """

    def __init__(self, model: ExecutionModel, *, apart: bool = False) -> None:
        self._node = _with_processes(model) if apart else model.nodes["name"].to_list()
        self._topic_of_publisher = model.publishers["topic"].to_list()
        self._topic_of_subscription = model.subscriptions["topic"].to_list()
        self._node_of_subscription = model.subscriptions["node"].to_list()
        self._node_of_publisher = model.publishers["node"].to_list()
        self._publisher = ids_of(model.publications, "publisher")
        self._subscription = ids_of(model.takes, "subscription")
        self._callback = ids_of(model.callback_runs, "callback")
        self._callbacks = [self._name_callback(model, row) for row in model.callbacks.iter_rows(named=True)]

    def of(self, kind: str, row: int) -> str:
        """Name of a row in the table of publications, takes or callback runs."""
        names = {"publication": self.topic, "take": self.reception, "callback_run": self.run}
        return names[kind](row)

    def topic(self, publication: int) -> str:
        """Topic of a publication."""
        publisher = int(self._publisher[publication])
        return (self._topic_of_publisher[publisher] if publisher >= 0 else None) or UNKNOWN

    def sender(self, publication: int) -> str:
        """Node that published."""
        publisher = int(self._publisher[publication])
        return self.node(self._node_of_publisher[publisher] if publisher >= 0 else None)

    def reception(self, take: int) -> str:
        """``TOPIC → NODE``."""
        subscription = int(self._subscription[take])
        topic = self._topic_of_subscription[subscription] if subscription >= 0 else None
        return f"{topic or UNKNOWN} → {self.receiver(take)}"

    def receiver(self, take: int) -> str:
        """Node that received."""
        subscription = int(self._subscription[take])
        return self.node(self._node_of_subscription[subscription] if subscription >= 0 else None)

    def run(self, callback_run: int) -> str:
        """Callback that ran."""
        callback = int(self._callback[callback_run])
        return self._callbacks[callback] if callback >= 0 else UNKNOWN

    def callback(self, callback: int) -> str:
        """``NODE: TOPIC``, ``NODE: timer of 100 ms``, ``NODE: SERVICE``, or its symbol."""
        return self._callbacks[callback]

    def node(self, node: int | None) -> str:
        return UNKNOWN if node is None or self._node[node] is None else str(self._node[node])

    def _name_callback(self, model: ExecutionModel, row: dict[str, Any]) -> str:
        what = _called_by(model, row) or row["symbol"] or f"callback {row['handle']:#x}"
        return f"{self.node(row['node'])}: {what}"


def _with_processes(model: ExecutionModel) -> list[str | None]:
    """Names of nodes; of several with one name, in several processes, with the process of each."""
    own = model.nodes.select("name", process="process").join(
        model.processes.select("pid", "host", process="id"), on="process", maintain_order="left"
    )
    own = own.join(model.hosts.select(host="id", at="name"), on="host", maintain_order="left")
    processes = own.group_by("name").agg(pl.col("process", "pid", "at").n_unique())
    several = {name: counts for name, *counts in processes.iter_rows()}

    def label(row: dict[str, Any]) -> str | None:
        count, pids, hosts = several[row["name"]]
        name = None if row["name"] is None else str(row["name"])
        if name is None or count == 1:
            return name
        if pids == count:
            return f"{name} ({row['pid']})"
        return f"{name} (on {row['at']})" if hosts == count else f"{name} (process {row['process']})"

    return [label(row) for row in own.iter_rows(named=True)]


def _called_by(model: ExecutionModel, row: dict[str, Any]) -> str | None:
    if row["subscription"] is not None:
        return _cell(model.subscriptions, row["subscription"], "topic")
    if row["service"] is not None:
        return _cell(model.services, row["service"], "name")
    if row["timer"] is not None:
        period_ns = model.timers["period_ns"][row["timer"]]
        return "timer" if period_ns is None else f"timer of {period_ns / _NS_PER_MS:g} ms"
    return None


def _cell(table: pl.DataFrame, row: int, column: str) -> str | None:
    value = table[column][row]
    return None if value is None else str(value)
