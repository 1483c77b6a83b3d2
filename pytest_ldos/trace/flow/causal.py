"""Causal links: from messages to callbacks, from callbacks to publications, and indirect ones.

A thread takes a message and runs the callback with it. Everything that the thread publishes before
the callback ends was caused by that message.

*Periodic asynchronous*: a publication uses the last message of each input.
*Partial synchronous*: a publication is made when each input has received a message since the previous one.
After Bédard, Lajoie, Beltrame, Dagenais: Message Flow Analysis with Complex Causal Links for
Distributed ROS 2 Systems (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.paths import BUILT_IN_PATHS, LinkSpec, PathSpec
from pytest_ldos.trace.execution.columns import (
    NEVER,
    IdArray,
    TimesNs,
    frame_of,
    ids_at,
    ids_of,
    index_by,
    pick,
    rows_of,
    times_at,
    times_of,
)
from pytest_ldos.trace.execution.mapped import Array, Growing, chunks, computed, filled
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.observed import Clock, Timeline, edges
from pytest_ldos.trace.execution.trials import PARTIAL_SYNC, PERIODIC_ASYNC
from pytest_ldos.trace.flow.graph import DIRECT, LINKS, RULES


class Runs:
    """The callback runs of a model; finds the run on a thread at a given time."""

    def __init__(self, model: ExecutionModel) -> None:
        self.start_ns = times_of(model.callback_runs, "start_ns")
        self.thread = ids_of(model.callback_runs, "thread")
        self.end_ns = times_of(model.callback_runs, "end_ns")
        self._parent = ids_of(model.callback_runs, "parent")
        self.clock = clock_of(model)
        self.timeline = self.clock.timeline(self.thread, self.start_ns)
        self._until_ns = self.end_ns if model.stats.losses else computed(len(self.start_ns), np.int64, self._until)

    def _until(self, part: slice) -> TimesNs:
        """End of the given runs; a run without an end in the trace lasts until the next run on its thread.

        If events were lost, only the start of such a run is known.
        """
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


def clock_of(model: ExecutionModel) -> Clock:
    """Clock that covers all times of the model's publications, takes and runs."""
    columns = [model.publications[name] for name in ("time_ns", "rclcpp_ns", "rcl_ns", "intra_ns")]
    columns += [model.takes["time_ns"], model.callback_runs["start_ns"], model.callback_runs["end_ns"]]
    return Clock(*(edges(_times_in(column, part)) for column in columns for part in chunks(len(column))))


def _times_in(column: pl.Series, part: slice) -> TimesNs:
    return column.slice(part.start, part.stop - part.start).drop_nulls().to_numpy()


def link_triggers(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each message to the callback run that it triggered, in the order of the messages."""
    takes = _takes(model, runs.clock)
    of_run = computed(len(runs.start_ns), np.int32, lambda part: _take_of_runs(model, runs, takes, part))
    runs_of_take = index_by(of_run, len(model.takes))
    columns = {"take": Growing(np.int32), "callback_run": Growing(np.int32), "polled": Growing(np.bool_)}
    for part in chunks(len(model.takes)):
        which, run = runs_of_take.of(np.arange(part.start, part.stop))
        free = np.flatnonzero(np.bincount(which, minlength=part.stop - part.start) == 0)
        polling_run = runs.at(*_moments(rows_of(model.takes, part)[free]))
        is_polled = polling_run >= 0
        take = np.concatenate((which, free[is_polled]))
        order = np.argsort(take, kind="stable")
        columns["take"].add(take[order] + part.start)
        columns["callback_run"].add(np.concatenate((run, polling_run[is_polled]))[order])
        columns["polled"].add(np.repeat([False, True], [len(run), int(is_polled.sum())])[order])
    return frame_of(LINKS["triggers"], {name: column.finish() for name, column in columns.items()})


def link_causes(model: ExecutionModel, runs: Runs) -> pl.DataFrame:
    """Links each publication to the callback run in which it happened."""
    columns = {"callback_run": Growing(np.int32), "publication": Growing(np.int32)}
    for part in chunks(len(model.publications)):
        table = rows_of(model.publications, part)
        run = runs.at(ids_of(table, "thread"), begins_of(table))
        columns["callback_run"].add(run[run >= 0])
        columns["publication"].add(np.flatnonzero(run >= 0) + part.start)
    return frame_of(LINKS["causes"], {name: column.finish() for name, column in columns.items()})


def link_direct_uses(model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """Links each publication to the messages that its callback had received by then."""
    by_run = index_by(ids_of(triggers, "callback_run"), len(model.callback_runs))
    columns = {"take": Growing(np.int32), "publication": Growing(np.int32)}
    for part in chunks(len(causes)):
        links = rows_of(causes, part)
        which, trigger = by_run.of(ids_of(links, "callback_run"))
        take = ids_at(triggers, "take", trigger)
        publication = ids_of(links, "publication")[which]
        called_ns = begins_of(model.publications[ids_of(links, "publication")])[which]
        is_used = times_at(model.takes, "time_ns", take) <= called_ns
        columns["take"].add(take[is_used])
        columns["publication"].add(publication[is_used])
    rule = filled(columns["take"].rows, np.uint32, RULES.index(DIRECT))
    return frame_of(LINKS["uses"], {name: column.finish() for name, column in columns.items()} | {"rule": rule})


def publication_begins(model: ExecutionModel) -> TimesNs:
    """Begin of each publish call, from the highest layer that reports it."""
    return computed(len(model.publications), np.int64, lambda part: begins_of(rows_of(model.publications, part)))


def begins_of(publications: pl.DataFrame) -> TimesNs:
    """Like `publication_begins`, for the given publications."""
    return publications.select(pl.coalesce("intra_ns", "rclcpp_ns", "rcl_ns", "time_ns")).to_series().to_numpy()


def _moments(instances: pl.DataFrame) -> tuple[IdArray, TimesNs]:
    """Thread and time of each row."""
    return ids_of(instances, "thread"), times_of(instances, "time_ns")


def _take_of_runs(model: ExecutionModel, runs: Runs, takes: Timeline, part: slice) -> IdArray:
    """The last message that each run's thread took.

    -1 if it belongs to another subscription or is older than the previous run.
    """
    start_ns, table = runs.start_ns[part], rows_of(model.callback_runs, part)
    keys = runs.clock.keys(runs.thread[part], start_ns)
    take = takes.last(keys)
    before = runs.timeline.last(keys, before=True)
    begun_ns, ended_ns = pick(runs.start_ns, before, NEVER), pick(runs.end_ns, before, NEVER)
    taken = model.takes[np.maximum(take, 0)] if len(model.takes) else model.takes
    taken_ns = _where(take, times_of(taken, "time_ns"), NEVER)
    stale = taken_ns < np.where(ended_ns <= start_ns, np.maximum(begun_ns, ended_ns), begun_ns)
    callback = ids_of(table, "callback")
    wanted = pick(ids_of(model.callbacks, "subscription"), callback, -1)
    known = pick(model.callbacks["known"].to_numpy().astype(np.int32), callback, 0) == 1
    subscription = _where(take, ids_of(taken, "subscription"), -1)
    intra = _where(take, taken["intra"].to_numpy().astype(np.int32), 0)
    other = (known & (subscription != wanted)) | (intra != table["intra"].to_numpy())
    take[stale | other] = -1
    return take


def _where(rows: IdArray, values: Array, otherwise: int) -> Array:
    """Values of rows, with `otherwise` for rows of -1."""
    if len(values) != len(rows):
        return np.full(len(rows), otherwise, dtype=values.dtype)
    return np.where(rows >= 0, values, values.dtype.type(otherwise))


def _takes(model: ExecutionModel, clock: Clock) -> Timeline:
    return clock.timeline(*_moments(model.takes))


def first_linked(size: int, links: pl.DataFrame, key: str, value: str) -> IdArray:
    """The first `value` of each `key`, -1 if none; shape ``(size,)``."""
    found = filled(size, np.int32, -1)
    for part in reversed(list(chunks(len(links)))):
        some = rows_of(links, part)
        found[ids_of(some, key)[::-1]] = ids_of(some, value)[::-1]
    return found


@dataclass(frozen=True)
class Declared:
    """A declared link from subscriptions to publishers; ids of the model."""

    rule: str
    subscriptions: tuple[int, ...]
    publishers: tuple[int, ...]


@dataclass(frozen=True)
class _Receptions:
    """Messages that one subscription received, in order, and the time from which each is usable.

    Attributes:
        begin_ns: start of the callback that received the message, or time of the take if a callback polled it.
        polled: True if callbacks poll this subscription most of the time.
    """

    take: IdArray
    begin_ns: TimesNs
    polled: bool

    def last_for(self, outputs: _Outputs) -> IdArray:
        """Index of the last message usable for each output, -1 if none.

        A message passed to a callback is usable by callbacks that begin no earlier than that callback. A polled
        message is usable by publications that are no earlier than the take.
        """
        made_ns = outputs.time_ns if self.polled else outputs.begin_ns
        return np.searchsorted(self.begin_ns, made_ns, side="right") - 1


@dataclass(frozen=True)
class _Outputs:
    """Publications of one publisher, in order: their times, and the starts of their callbacks."""

    publication: IdArray
    time_ns: TimesNs
    begin_ns: TimesNs


def annotated(model: ExecutionModel) -> list[Declared]:
    """Links annotated by the application."""
    columns = model.link_annotations.select("rule", "subscriptions", "publishers")
    return [Declared(rule, tuple(subscriptions), tuple(pubs)) for rule, subscriptions, pubs in columns.iter_rows()]


def link_indirect(
    model: ExecutionModel, triggers: pl.DataFrame, causes: pl.DataFrame, declared: Sequence[Declared]
) -> pl.DataFrame:
    """Links each publication to the messages that its declared links assign to it."""
    if not declared:
        return pl.DataFrame(schema=dict(LINKS["uses"]))
    receptions = _Received(model, triggers)
    outputs = _Published(model, causes)
    parts = [
        _frame(each.rule, _RULES[each.rule](outputs.of(publisher), [receptions.of(s) for s in each.subscriptions]))
        for each in declared
        for publisher in each.publishers
    ]
    return pl.concat([pl.DataFrame(schema=dict(LINKS["uses"])), *parts]).unique(maintain_order=True)


def _periodic_async(outputs: _Outputs, inputs: Sequence[_Receptions]) -> list[tuple[IdArray, IdArray]]:
    """For each input, the last message whose callback began before the publishing one did."""
    links = []
    for received in inputs:
        last = received.last_for(outputs)
        links.append((received.take[last[last >= 0]], outputs.publication[last >= 0]))
    return links


def _partial_sync(outputs: _Outputs, inputs: Sequence[_Receptions]) -> list[tuple[IdArray, IdArray]]:
    """For each input, the last message since the previous publication; each is used once."""
    links = []
    for received in inputs:
        last = received.last_for(outputs)
        fresh = last >= 0
        fresh[1:] &= last[1:] > np.maximum.accumulate(last)[:-1]
        links.append((received.take[last[fresh]], outputs.publication[fresh]))
    return links


_Rule = Callable[[_Outputs, Sequence[_Receptions]], list[tuple[IdArray, IdArray]]]
_RULES: Final[Mapping[str, _Rule]] = {PERIODIC_ASYNC: _periodic_async, PARTIAL_SYNC: _partial_sync}


def _frame(rule: str, links: Sequence[tuple[IdArray, IdArray]]) -> pl.DataFrame:
    take = np.concatenate([takes for takes, _ in links] or [np.empty(0, dtype=np.int32)])
    publication = np.concatenate([publications for _, publications in links] or [np.empty(0, dtype=np.int32)])
    return frame_of(LINKS["uses"], {"take": take, "publication": publication, "rule": [rule] * len(take)})


class _Received:
    def __init__(self, model: ExecutionModel, triggers: pl.DataFrame) -> None:
        run = first_linked(len(model.takes), triggers, "take", "callback_run")
        taken_ns = times_of(model.takes, "time_ns")
        start_ns = times_of(model.callback_runs, "start_ns")
        self._polled = np.zeros(len(model.takes), dtype=bool)
        self._polled[ids_of(triggers, "take")] = triggers["polled"].to_numpy()
        self._subscription = ids_of(model.takes, "subscription")
        self._begin_ns = np.where(self._polled, taken_ns, _of_run(start_ns, run, taken_ns))

    def of(self, subscription: int) -> _Receptions:
        take = np.flatnonzero(self._subscription == subscription)
        take = take[np.argsort(self._begin_ns[take], kind="stable")].astype(np.int32)
        return _Receptions(take, self._begin_ns[take], 2 * int(self._polled[take].sum()) > len(take))


class _Published:
    def __init__(self, model: ExecutionModel, causes: pl.DataFrame) -> None:
        self._publisher = ids_of(model.publications, "publisher")
        self._time_ns = publication_begins(model)
        run = first_linked(len(model.publications), causes, "publication", "callback_run")
        self._begin_ns = _of_run(times_of(model.callback_runs, "start_ns"), run, self._time_ns)

    def of(self, publisher: int) -> _Outputs:
        rows = np.flatnonzero(self._publisher == publisher).astype(np.int32)
        return _Outputs(rows, self._time_ns[rows], self._begin_ns[rows])


def _of_run(run_ns: TimesNs, run: IdArray, otherwise_ns: TimesNs) -> TimesNs:
    if len(run_ns) == 0:
        return otherwise_ns
    return np.where(run >= 0, run_ns[run], otherwise_ns)


def declared_in(paths: Sequence[PathSpec], model: ExecutionModel) -> list[Declared]:
    """Links of all paths whose nodes are in the model.

    Raises:
        ConfigurationError: a node that ran has no such input or output.
    """
    links = dict.fromkeys(link for path in paths for link in path.links)
    found = [_declared(link, node, model) for link in links for node in _nodes(link, model)]
    return [each for each in found if each.publishers]


def describe_unused(paths: Sequence[PathSpec], model: ExecutionModel) -> Iterator[str]:
    """Names in paths and links that are missing from the model, each with the nearest match."""
    nodes, topics = model.nodes["name"].drop_nulls().to_list(), model.topics()
    for path in paths:
        for topic in path.via if not path.of_phases else ():
            if topic not in topics and path not in BUILT_IN_PATHS:
                yield f"path {path.name}: no topic {topic} in the trace; {suggest(topic, topics)}"
        for link in path.links:
            if link.node not in nodes:
                near = suggest(link.node, nodes)
                yield f"path {path.name}: there is no node {link.node}, so its link links nothing; {near}"


def _nodes(link: LinkSpec, model: ExecutionModel) -> list[int]:
    return model.nodes.filter(pl.col("name") == link.node)["id"].to_list()


def _declared(link: LinkSpec, node: int, model: ExecutionModel) -> Declared:
    return Declared(
        str(link.rule),
        _ends(model.subscriptions, node, link, link.inputs, "subscribes to"),
        _ends(model.publishers, node, link, link.outputs, "publishes on"),
    )


def _ends(table: pl.DataFrame, node: int, link: LinkSpec, topics: Sequence[str], what: str) -> tuple[int, ...]:
    own = table.filter(pl.col("node") == node)
    known = sorted(own["topic"].drop_nulls().unique())
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(
                f"a declared link says that {link.node} {what} {topic}, which it does not",
                remedy=f"it {what} {', '.join(known) or 'nothing'}",
            )
    return tuple(own.filter(pl.col("topic").is_in(list(topics)))["id"].to_list())
