"""Differences between two traces: what is new or gone, and what takes longer or shorter beyond chance.

Durations that follow each other are alike. Each trace is therefore cut into consecutive blocks with equal numbers of
values, long enough that neighbours differ, and the medians of blocks are compared by the rank-sum test; all comparisons
share one probability of error (Holm). One run of each version says nothing of what differs between two starts of the
same version.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.stats.holm import step_down
from pytest_ldos.base.stats.rank_sum import estimate_shift, rank_sum_p
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.names import Names
from pytest_ldos.trace.flow.paths import find_path

ALPHA: Final = 0.01
"""Probability that anything is reported where nothing differs."""

SMALLEST: Final = 0.05
"""Relative difference below which nothing is reported."""

_MOST_BLOCKS: Final = 20
_FEWEST: Final = 6
"""Blocks, and values, below which nothing is compared."""

_ALIKE: Final = 0.25
"""Correlation of neighbouring blocks from which blocks are made longer."""

SMALLEST_NS: Final = 1_000
"""Difference below which nothing is reported: what recording an event costs."""

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+\b")
_OF_THE_RUN: Final = re.compile(
    r"_(?:\d{6,}|(?=[0-9a-f]*\d)[0-9a-f]{8,}|(?<=static_transform_publisher_)[A-Za-z0-9]{16})(?![A-Za-z0-9])"
)
"""Parts of names that ROS 2, tf2 and MoveIt choose again in each run."""

Values = npt.NDArray[np.float64]
Samples = Mapping[tuple["Kind", str], Values]


class Kind(StrEnum):
    """Kind of a quantity that two traces are compared in."""

    PATH = "latency of path"
    CALLBACK = "run time of callback"
    TRANSPORT = "transport on topic"
    PERIOD = "period of topic"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A quantity in both traces.

    Attributes:
        base_ns, head_ns: medians.
        base_count, head_count: numbers of values.
        low, high: interval of head over base; infinite with too few values.
        differs: True if the difference is beyond chance and large enough.
    """

    kind: Kind
    name: str
    base_ns: float
    head_ns: float
    base_count: int
    head_count: int
    low: float
    high: float
    differs: bool

    @property
    def ratio(self) -> float:
        """Head over base."""
        return max(self.head_ns, 1.0) / max(self.base_ns, 1.0)


@dataclass(frozen=True)
class Difference:
    """Differences between two traces.

    Attributes:
        new, gone: kind (``node``, ``topic``, ``callback``) and name of what one trace alone has.
        compared: what both have, the largest certain difference first.
    """

    new: tuple[tuple[str, str], ...]
    gone: tuple[tuple[str, str], ...]
    compared: tuple[Compared, ...]


def compare_flows(base: FlowGraph, head: FlowGraph, paths: Sequence[PathSpec]) -> Difference:
    """Compares two traces of the same system.

    Args:
        paths: the project's.
    """
    one, other = set(_things(base.model)), set(_things(head.model))
    samples = dict(_samples(base, paths)), dict(_samples(head, paths))
    return Difference(
        new=tuple(sorted(other - one)), gone=tuple(sorted(one - other)), compared=tuple(_compare(*samples))
    )


def _things(model: ExecutionModel) -> Iterator[tuple[str, str]]:
    names = Names(model)
    yield from (("node", lasting_name(name)) for name in model.nodes["name"].drop_nulls())
    yield from (("topic", lasting_name(topic)) for topic in model.topics())
    ran = model.callback_runs["callback"].drop_nulls().unique()
    found = map(names.callback, ran.to_list())
    yield from (("callback", lasting_name(name)) for name in found if not _ADDRESS.search(name))


def lasting_name(name: str) -> str:
    """A name with ``*`` for what differs in each run: ``/transform_listener_impl_*``."""
    return _OF_THE_RUN.sub("_*", name)


def _samples(flow: FlowGraph, paths: Sequence[PathSpec]) -> Iterator[tuple[tuple[Kind, str], Values]]:
    """Values of each quantity in the order of time."""
    model, names = flow.model, Names(flow.model)
    for path in paths:
        yield (Kind.PATH, path.name), _floats(find_path(flow, path).table.sort("end_ns")["latency_ns"])
    runs = model.callback_runs.drop_nulls(["callback", "end_ns"]).sort("start_ns")
    named = pl.Series([lasting_name(names.callback(each)) for each in range(len(model.callbacks))], dtype=pl.String)
    runs = runs.select(name=named.gather(runs["callback"]), value=pl.col("end_ns") - pl.col("start_ns"))
    yield from ((key, each) for key, each in _by_name(Kind.CALLBACK, runs) if not _ADDRESS.search(key[1]))
    sent = model.publications.drop_nulls("time_ns").join(
        model.publishers.select("topic", publisher="id"), on="publisher"
    )
    taken = flow.transport.join(sent.select("topic", "time_ns", publication="id"), on="publication").sort("time_ns")
    yield from _by_name(Kind.TRANSPORT, taken.select(name="topic", value="latency_ns"))
    periods = sent.sort("time_ns").select(name="topic", value=pl.col("time_ns").diff().over("publisher"))
    yield from _by_name(Kind.PERIOD, periods)


def _by_name(kind: Kind, table: pl.DataFrame) -> Iterator[tuple[tuple[Kind, str], Values]]:
    for part in table.drop_nulls().partition_by("name", maintain_order=True):
        yield (kind, str(part["name"][0])), _floats(part["value"])


def _floats(values: pl.Series) -> Values:
    return values.cast(pl.Float64).to_numpy()


def _compare(base: Samples, head: Samples) -> Iterator[Compared]:
    both = [key for key in base if key in head and min(len(base[key]), len(head[key])) >= _FEWEST]
    blocks = {key: (_blocks(head[key]), _blocks(base[key])) for key in both}
    steps = step_down(
        dict.fromkeys(both, 1 / max(len(both), 1)), lambda key, alpha: _p(*blocks[key]) <= alpha, alpha=ALPHA
    )
    found = [_compared(key, base[key], head[key], blocks[key], is_certain=steps[key].rejected) for key in both]
    yield from sorted(found, key=lambda each: (not each.differs, -abs(math.log(each.ratio))))


def _blocks(values: Values) -> Values:
    """Logarithms of the medians of consecutive blocks, which are the longer the more alike neighbours are."""
    count = min(_MOST_BLOCKS, max(len(values) // _FEWEST, _FEWEST))
    while True:
        medians = [float(np.median(part)) for part in np.array_split(values, count)]
        logarithms: Values = np.log(np.maximum(medians, 1.0))
        if count // 2 < _FEWEST or _likeness(logarithms) < _ALIKE:
            return logarithms
        count //= 2


def _likeness(values: Values) -> float:
    """Correlation of neighbours."""
    around = values - values.mean()
    spread = float(around @ around)
    return float(around[1:] @ around[:-1]) / spread if spread > 0 else 0.0


def _p(head: Values, base: Values) -> float:
    return min(1.0, 2 * min(rank_sum_p(head, base), rank_sum_p(base, head)))


def _compared(
    key: tuple[Kind, str], base: Values, head: Values, blocks: tuple[Values, Values], *, is_certain: bool
) -> Compared:
    shift = estimate_shift(*blocks, tail=ALPHA / 2)
    base_ns, head_ns = float(np.median(base)), float(np.median(head))
    is_large = abs(shift.estimate) >= math.log1p(SMALLEST) and abs(head_ns - base_ns) >= SMALLEST_NS
    return Compared(
        kind=key[0],
        name=key[1],
        base_ns=base_ns,
        head_ns=head_ns,
        base_count=len(base),
        head_count=len(head),
        low=math.exp(shift.low),
        high=math.exp(shift.high) if shift.high < 700 else math.inf,
        differs=is_certain and is_large,
    )
