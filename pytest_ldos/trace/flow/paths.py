"""Passages along declared paths, end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.execution.columns import IdArray, ids_of, pick, times_of
from pytest_ldos.trace.flow.causal import publication_begins
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.topics import number_topics, topics_of

_MOST_ROWS: Final = 50_000_000
"""Most partial passages of one search step; more are refused."""


@dataclass(frozen=True)
class PathInstances:
    """All passages along a path.

    Attributes:
        table: `begin_ns`, `end_ns` (nanoseconds since the epoch), `latency_ns`. Paths of topics also have
            `from_publication`, `to_publication` and `takes` (the receptions on the way, in order);
            paths of phases have `goal_id`.
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
    """Finds every passage along a path.

    A path of topics ends with each publication on its last topic. It begins with the publish call of
    the newest message on its first topic from which that publication was made. A path of phases has
    one passage for each goal that entered exactly these phases in this order.

    Raises:
        ConfigurationError: too many messages could lie on the path.
    """
    return PathInstances(path, _phases(flow, path) if path.of_phases else _topics(flow, path))


def _phases(flow: FlowGraph, path: PathSpec) -> pl.DataFrame:
    wanted = flow.model.phases.filter(pl.col("phase").is_in(list(path.via)))
    per_goal = wanted.group_by("goal_id", maintain_order=True).agg(
        begin_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[0]).first(),
        end_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[-1]).first(),
        entered=pl.col("phase").sort_by("time_ns", maintain_order=True).str.join(" "),
    )
    whole = per_goal.filter(pl.col("entered") == " ".join(path.via)).drop("entered")
    return whole.with_columns(latency_ns=pl.col("end_ns") - pl.col("begin_ns"))


def _topics(flow: FlowGraph, path: PathSpec) -> pl.DataFrame:
    chains = _Chains(flow, path)
    found = pl.concat([chains.none(), *chains.search()])
    begins, ends = publication_begins(flow.model), times_of(flow.model.publications, "time_ns")
    begin_ns = pick(begins, ids_of(found, "from_publication"), 0)
    end_ns = pick(ends, ids_of(found, "to_publication"), 0)
    timed = found.with_columns(
        begin_ns=pl.Series(begin_ns, dtype=pl.Int64),
        end_ns=pl.Series(end_ns, dtype=pl.Int64),
        latency_ns=pl.Series(end_ns - begin_ns, dtype=pl.Int64),
    )
    newest = timed.sort("to_publication", "begin_ns", maintain_order=True)
    return newest.unique("to_publication", keep="last", maintain_order=True)


class _Chains:
    """Searches backward from the last topic, one hop per step, all instances at once."""

    def __init__(self, flow: FlowGraph, path: PathSpec) -> None:
        numbers = number_topics(flow.model)
        self._topic = topics_of(flow.model.publications, "publisher", flow.model.publishers, numbers)
        self._name = path.name
        self._via = [numbers.get(topic, -2) for topic in path.via]
        self._steps = len(numbers)
        hops = flow.hops.sort("to_publication", maintain_order=True)
        self._to, self._from = ids_of(hops, "to_publication"), ids_of(hops, "from_publication")
        self._take = ids_of(hops, "take")

    def none(self) -> pl.DataFrame:
        return pl.DataFrame(
            schema={"from_publication": pl.Int32, "to_publication": pl.Int32, "takes": pl.List(pl.Int32)}
        )

    def search(self) -> list[pl.DataFrame]:
        """Finished chains, one frame per number of hops."""
        end = np.flatnonzero(self._topic == self._via[-1]).astype(np.int32)
        current, wanted = end, np.full(len(end), len(self._via) - 2)
        takes: list[IdArray] = []
        finished = []
        for _ in range(self._steps):
            if len(current) == 0:
                break
            row, hop = self._hops_into(current)
            self._refuse_too_many(len(row))
            wanted = wanted[row] - (self._topic[self._from[hop]] == np.array(self._via)[wanted[row]])
            one = self._one_way_each(self._from[hop], end[row], wanted)
            row, hop, wanted = row[one], hop[one], wanted[one]
            current, end = self._from[hop], end[row]
            takes = [self._take[hop], *(taken[row] for taken in takes)]
            done = wanted < 0
            finished.append(self._frame(current[done], end[done], [taken[done] for taken in takes]))
            go_on = ~done & (self._topic[current] != self._via[-1])
            current, end, wanted = current[go_on], end[go_on], wanted[go_on]
            takes = [taken[go_on] for taken in takes]
        return finished

    def _refuse_too_many(self, rows: int) -> None:
        if rows > _MOST_ROWS:
            raise ConfigurationError(
                f"path {self._name!r} has too many messages that could lie on it ({rows} in one step)",
                remedy="name more of the topics between its ends, or read less with `window`",
            )

    def _one_way_each(self, current: IdArray, end: IdArray, wanted: IdArray) -> IdArray:
        """Indices of distinct ways: of several from one message to one end, the first.

        Their continuations are equal.
        """
        way = (end.astype(np.int64) * len(self._topic) + current) * (len(self._via) + 1) + wanted
        return np.sort(np.unique(way, return_index=True)[1])

    def _hops_into(self, publications: IdArray) -> tuple[IdArray, IdArray]:
        """All hops that lead to each publication: index of the publication, and index of the hop."""
        first = np.searchsorted(self._to, publications, side="left")
        count = np.searchsorted(self._to, publications, side="right") - first
        row = np.repeat(np.arange(len(publications)), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        return row, first[row] + within

    def _frame(self, begin: IdArray, end: IdArray, takes: list[IdArray]) -> pl.DataFrame:
        lists = np.stack(takes, axis=1).astype(np.int32)
        return pl.DataFrame(
            {
                "from_publication": begin.astype(np.int32),
                "to_publication": end.astype(np.int32),
                "takes": pl.Series(lists, dtype=pl.Array(pl.Int32, len(takes))).cast(pl.List(pl.Int32)),
            }
        )
