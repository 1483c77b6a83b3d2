"""The message-flow graph: causal links between publications, takes and callback runs, with readable names and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import LinkRule
from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import NEVER, IdArray, TimesNs, chunks, distinct_where, ids_of, pick, times_of
from pytest_ldos.trace.execution.model import ExecutionModel, Schema
from pytest_ldos.trace.execution.observed import Clock


@dataclass(frozen=True)
class FlowGraph:
    """Links between the instances of a model (columns: `LINKS`), and counts of those without a partner, by cause.

    `uncertain` says in words which links of synchronizers and transforms are not certain, and why.
    """

    model: ExecutionModel
    transport: pl.DataFrame
    triggers: pl.DataFrame
    causes: pl.DataFrame
    uses: pl.DataFrame
    calls: pl.DataFrame
    without_partner: Mapping[str, int]
    uncertain: tuple[str, ...] = ()

    @cached_property
    def hops(self) -> pl.DataFrame:
        """Links from each publication to the publications made from it."""
        sent = self.transport.select("take", from_publication="publication")
        joined = self.uses.join(sent, on="take", maintain_order="left")
        return joined.select("from_publication", "take", to_publication="publication", rule="rule")


_ID: Final = pl.Int32
_TIME: Final = pl.Int64

IN_PROCESS: Final = "intra_process"
BETWEEN_HOSTS: Final = "between_hosts"
WAYS: Final = (IN_PROCESS, "same_process", "same_host", BETWEEN_HOSTS)

DIRECT: Final = "direct"
SYNCHRONIZER: Final = "synchronizer"
RULES: Final = (DIRECT, *LinkRule, SYNCHRONIZER)

LINKS: Final[Mapping[str, Schema]] = {
    "transport": {"publication": _ID, "take": _ID, "latency_ns": _TIME, "way": pl.Enum(WAYS)},
    "triggers": {"take": _ID, "callback_run": _ID, "polled": pl.Boolean},
    "causes": {"callback_run": _ID, "publication": _ID},
    "uses": {"take": _ID, "publication": _ID, "rule": pl.Enum(RULES), "candidates": _ID, "certain": pl.Boolean},
    "hops": {"from_publication": _ID, "take": _ID, "to_publication": _ID, "rule": pl.Enum(RULES)},
}
"""Causal links.

transport: a message from its publication to one reception. `way` is ``intra_process``,
    ``same_process``, ``same_host`` or ``between_hosts``.
triggers: the message that a callback received; `polled` if the callback took it itself.
causes: the callback in which a message was published, the innermost where callbacks nest.
uses: the received messages from which a publication was made. `rule` is ``direct`` (published by the
    callback that received the message), that of a declared link, or ``synchronizer`` (inferred). `candidates` is the
    number of messages of that input that may have been used, of which this is the most likely one; `certain` is true if
    the recording leaves no other.
hops: transport and uses combined, publication to publication.
"""


def number_topics(model: ExecutionModel) -> dict[str, int]:
    return {topic: number for number, topic in enumerate(model.topics())}


def topics_of(ends: pl.DataFrame, numbers: dict[str, int]) -> IdArray:
    """Topic number of each publisher or subscription, -1 if unknown."""
    return np.array([numbers.get(topic, -1) for topic in ends["topic"]], dtype=np.int32)


def unlinked_topics(model: ExecutionModel) -> dict[str | None, int]:
    """Number of receptions by topic, for topics whose messages cannot be linked because stamps are missing."""
    if not model.missing_events:
        return {}
    sent = _unstamped(model.publications, "publisher", model.publishers)
    taken = _unstamped(model.takes, "subscription", model.subscriptions)
    subscription, count = ids_of(model.takes, "subscription"), len(model.subscriptions)
    takes = np.zeros(count + 1, dtype=np.int64)  # those without a known subscription first
    for part in chunks(len(subscription)):
        takes += np.bincount(subscription[part] + 1, minlength=count + 1)
    ends = model.subscriptions.select("topic", takes=pl.Series(takes[1:]))
    received = dict(ends.group_by("topic").agg(pl.col("takes").sum()).iter_rows())
    return {topic: received.get(topic, 0) for topic in {*sent, *taken}}


def _unstamped(instances: pl.DataFrame, end: str, ends: pl.DataFrame) -> list[str | None]:
    """Topics of publications or takes without a stamp; intra-process ones are linked by their buffers."""
    buffered = pl.col("buffer") != 0 if "buffer" in instances.columns else pl.col("intra")
    is_unstamped = pl.col("source_ns").is_null() & ~(pl.col("intra") & buffered)
    own = distinct_where(instances, end, is_unstamped)
    return ends.filter(pl.col("id").is_in(own))["topic"].unique().to_list()


UNKNOWN: Final = "unknown"


class Names:
    """Names of instances and entities; `with_processes` adds the process to node names that several processes share."""

    def __init__(self, model: ExecutionModel, *, with_processes: bool = False) -> None:
        self._node = _with_processes(model) if with_processes else model.nodes["name"].to_list()
        # topic and node of each; the last one is that of instances without an end, whose id is -1
        self._publishers = [*model.publishers.select("topic", "node").iter_rows(), (None, None)]
        self._subscriptions = [*model.subscriptions.select("topic", "node").iter_rows(), (None, None)]
        self._publisher = ids_of(model.publications, "publisher")
        self._subscription = ids_of(model.takes, "subscription")
        self._callback = ids_of(model.callback_runs, "callback")
        self._callbacks = [self._name_callback(model, row) for row in model.callbacks.iter_rows(named=True)]

    def of(self, kind: str, row: int) -> str:
        """Name of a row in the table of publications, takes or callback runs."""
        return {"publication": self.topic, "take": self.reception, "callback_run": self.run}[kind](row)

    def topic(self, publication: int) -> str:
        return self._publishers[self._publisher[publication]][0] or UNKNOWN

    def sender(self, publication: int) -> str:
        return self.node(self._publishers[self._publisher[publication]][1])

    def reception(self, take: int) -> str:
        """``TOPIC → NODE``."""
        return f"{self._subscriptions[self._subscription[take]][0] or UNKNOWN} → {self.receiver(take)}"

    def receiver(self, take: int) -> str:
        return self.node(self._subscriptions[self._subscription[take]][1])

    def run(self, callback_run: int) -> str:
        callback = int(self._callback[callback_run])
        return self._callbacks[callback] if callback >= 0 else UNKNOWN

    def callback(self, callback: int) -> str:
        """``NODE: TOPIC``, ``NODE: timer of 100 ms``, ``NODE: SERVICE``, or its symbol."""
        return self._callbacks[callback]

    def node(self, node: int | None) -> str:
        return UNKNOWN if node is None or self._node[node] is None else str(self._node[node])

    def _name_callback(self, model: ExecutionModel, row: dict[str, Any]) -> str:
        what: str | None = None
        if row["subscription"] is not None:
            what = model.subscriptions["topic"][row["subscription"]]
        elif row["service"] is not None:
            what = model.services["name"][row["service"]]
        elif row["timer"] is not None:
            period_ns = model.timers["period_ns"][row["timer"]]
            what = "timer" if period_ns is None else f"timer of {period_ns / NS_PER_MS:g} ms"
        what = what or row["symbol"] or f"callback {row['handle']:#x}"
        return f"{self.node(row['node'])}: {what}"


def _with_processes(model: ExecutionModel) -> list[str | None]:
    """Names of nodes; a name shared by several processes is followed by the process."""
    own = model.nodes.select("name", process="process").join(
        model.processes.select("pid", "host", process="id"), on="process", maintain_order="left"
    )
    own = own.join(model.hosts.select(host="id", at="name"), on="host", maintain_order="left")
    count, pids, hosts = (pl.col(name).n_unique().over("name") for name in ("process", "pid", "at"))
    label = (
        pl.when(count == 1)
        .then("name")
        .when(pids == count)
        .then(pl.format("{} ({})", "name", "pid"))
        .when(hosts == count)
        .then(pl.format("{} (on {})", "name", "at"))
        .otherwise(pl.format("{} (process {})", "name", "process"))
    )
    return own.select(label.alias("label"))["label"].to_list()


class Runs:
    """The callback runs of a model; finds the run on a thread at a given time."""

    def __init__(self, model: ExecutionModel) -> None:
        self.start_ns = times_of(model.callback_runs, "start_ns")
        self.thread = ids_of(model.callback_runs, "thread")
        self.end_ns = times_of(model.callback_runs, "end_ns")
        self._parent = ids_of(model.callback_runs, "parent")
        columns = [model.publications[name] for name in ("time_ns", "rclcpp_ns", "rcl_ns", "intra_ns")]
        columns += [model.takes["time_ns"], model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
        self.clock = Clock.of(*columns)
        self.timeline = self.clock.timeline(self.thread, self.start_ns)
        every = len(self.start_ns)
        self._until_ns = self.end_ns if model.stats.losses else mapped.computed(every, np.int64, self._until)

    def _until(self, part: slice) -> TimesNs:
        """End of the given runs; a run without an end lasts until the next run on its thread if no events were lost."""
        until_ns = self.end_ns[part].copy()
        endless = np.flatnonzero(until_ns == NEVER) + part.start
        following = self.timeline.next(self.clock.keys(self.thread[endless], self.start_ns[endless]), after=True)
        next_ns = np.where(following >= 0, pick(self.start_ns, following, NEVER), np.iinfo(np.int64).max)
        until_ns[endless - part.start] = next_ns
        return until_ns

    def at(self, thread: IdArray, times_ns: TimesNs) -> IdArray:
        """The innermost run on each thread at each time, -1 if none."""
        run = self.timeline.last(self.clock.keys(thread, times_ns))
        while True:
            over = (run >= 0) & (pick(self._until_ns, run, NEVER) < times_ns)
            if not over.any():
                return run
            run[over] = self._parent[run[over]]


def publication_begins(model: ExecutionModel) -> TimesNs:
    """Begin of each publish call, from the highest layer that reports it."""
    sent = model.publications
    return mapped.computed(len(sent), np.int64, lambda part: begins_of(mapped.rows_of(sent, part)))


def begins_of(publications: pl.DataFrame) -> TimesNs:
    return publications.select(pl.coalesce("intra_ns", "rclcpp_ns", "rcl_ns", "time_ns")).to_series().to_numpy()
