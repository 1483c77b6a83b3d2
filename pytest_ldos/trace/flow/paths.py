"""Passages along declared paths, end to end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.paths import PathSpec
from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.columns import IdArray, Index, ids_of, index_by, rows_of, times_at
from pytest_ldos.trace.execution.mapped import Growing, chunks, computed
from pytest_ldos.trace.flow.causal import begins_of
from pytest_ldos.trace.flow.graph import FlowGraph, number_topics, topics_of
from pytest_ldos.trace.flow.transport import origin_of_takes

_MOST_ROWS: Final = 50_000_000
"""Limit of partial passages in one search step."""


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
        ConfigurationError: the search found too many partial passages.
    """
    return PathInstances(path, pl.concat(each.table for each in passages_in_parts(flow, path)))


def passages_in_parts(flow: FlowGraph, path: PathSpec) -> Iterator[PathInstances]:
    """Like `find_path`, in one or more parts, so that memory does not grow with the number of passages."""
    if path.of_phases:
        yield PathInstances(path, _phases(flow, path))
        return
    chains = _Chains(flow, path)
    yield PathInstances(path, _newest(flow, chains.none()))
    for ends in chains.ends():
        yield PathInstances(path, _newest(flow, pl.concat([chains.none(), *chains.search(ends)])))


def _phases(flow: FlowGraph, path: PathSpec) -> pl.DataFrame:
    wanted = flow.model.phases.filter(pl.col("phase").is_in(list(path.via)))
    per_goal = wanted.group_by("goal_id", maintain_order=True).agg(
        begin_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[0]).first(),
        end_ns=pl.col("time_ns").filter(pl.col("phase") == path.via[-1]).first(),
        entered=pl.col("phase").sort_by("time_ns", maintain_order=True).str.join(" "),
    )
    whole = per_goal.filter(pl.col("entered") == " ".join(path.via)).drop("entered")
    return whole.with_columns(latency_ns=pl.col("end_ns") - pl.col("begin_ns"))


def _newest(flow: FlowGraph, found: pl.DataFrame) -> pl.DataFrame:
    """For each publication, the chain with the newest begin, with its times."""
    publications = flow.model.publications
    begin_ns = begins_of(publications[ids_of(found, "from_publication")])
    end_ns = times_at(publications, "time_ns", ids_of(found, "to_publication"))
    timed = found.with_columns(
        begin_ns=pl.Series(begin_ns, dtype=pl.Int64),
        end_ns=pl.Series(end_ns, dtype=pl.Int64),
        latency_ns=pl.Series(end_ns - begin_ns, dtype=pl.Int64),
    )
    newest = timed.sort("to_publication", "begin_ns", maintain_order=True)
    return newest.unique("to_publication", keep="last", maintain_order=True)


_PARTS: Final = 8
"""Chunks of ends are divided by this: their chains take more memory than rows of a table."""


class _Chains:
    """Backward search from the last topic, one hop per step, many instances at once."""

    def __init__(self, flow: FlowGraph, path: PathSpec) -> None:
        model, numbers = flow.model, number_topics(flow.model)
        self._topic = computed(
            len(model.publications),
            np.int32,
            lambda part: topics_of(rows_of(model.publications, part), "publisher", model.publishers, numbers),
        )
        self._name = path.name
        self._via = [numbers.get(topic, -2) for topic in path.via]
        self._steps = len(numbers)
        self._end = Growing(np.int32)
        for part in chunks(len(self._topic)):
            self._end.add(np.flatnonzero(self._topic[part] == self._via[-1]) + part.start)
        self._flow = flow

    def ends(self) -> Iterator[IdArray]:
        """Publications on the last topic, in chunks."""
        every = self._end.finish()
        step = max(mapped.CHUNK_ROWS // _PARTS, 1)
        return (every[first : first + step] for first in range(0, len(every), step))

    @cached_property
    def _origin(self) -> IdArray:
        return origin_of_takes(self._flow.model, self._flow.transport)

    @cached_property
    def _take(self) -> IdArray:
        return ids_of(self._flow.uses, "take")

    @cached_property
    def _uses(self) -> Index:
        return index_by(ids_of(self._flow.uses, "publication"), len(self._topic))

    def none(self) -> pl.DataFrame:
        return pl.DataFrame(
            schema={"from_publication": pl.Int32, "to_publication": pl.Int32, "takes": pl.List(pl.Int32)}
        )

    def search(self, end: IdArray) -> list[pl.DataFrame]:
        """Complete chains to the given ends, one frame per number of hops."""
        current, wanted = end, np.full(len(end), len(self._via) - 2)
        takes: list[IdArray] = []
        finished = []
        for _ in range(self._steps):
            if len(current) == 0:
                break
            row, origin, taken_by = self._hops_into(current)
            self._refuse_too_many(len(row))
            wanted = wanted[row] - (self._topic[origin] == np.array(self._via)[wanted[row]])
            one = self._one_way_each(origin, end[row], wanted)
            row, wanted = row[one], wanted[one]
            current, end = origin[one], end[row]
            takes = [taken_by[one], *(taken[row] for taken in takes)]
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
        """Indices of the first way from each message to each end; the others have the same continuations."""
        way = (end.astype(np.int64) * len(self._topic) + current) * (len(self._via) + 1) + wanted
        return np.sort(np.unique(way, return_index=True)[1])

    def _hops_into(self, publications: IdArray) -> tuple[IdArray, IdArray, IdArray]:
        """All hops that end with each publication: index of the publication, start of the hop, and take."""
        which, use = self._uses.of(publications)
        take = self._take[use]
        origin = self._origin[take]
        known = origin >= 0
        return which[known], origin[known], take[known]

    def _frame(self, begin: IdArray, end: IdArray, takes: list[IdArray]) -> pl.DataFrame:
        lists = np.stack(takes, axis=1).astype(np.int32)
        return pl.DataFrame(
            {
                "from_publication": begin.astype(np.int32),
                "to_publication": end.astype(np.int32),
                "takes": pl.Series(lists, dtype=pl.Array(pl.Int32, len(takes))).cast(pl.List(pl.Int32)),
            }
        )
