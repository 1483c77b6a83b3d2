"""Differences between the traces of two versions: new and removed entities, and significant changes of durations.

With one run of each, consecutive durations are correlated. Each trace is therefore cut into consecutive blocks with
equal numbers of values, long enough to be uncorrelated, and the medians of blocks are compared by the rank-sum
test with Holm's correction. The variation between starts of the same version is unknown.

With several runs, each counts once, by its median, and whole runs are permuted (`stats.intervals`). With too few
runs for that, a difference over blocks is reported only if the runs of the two versions do not overlap.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.stats.counts import fewest_runs, largest_contrast_p, smallest_p
from pytest_ldos.base.stats.rank_tests import estimate_shift, rank_sum_p
from pytest_ldos.base.stats.several_tests import step_down
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.lineage import find_path

ALPHA: Final = 0.01  # probability of any false alarm between equal versions
SMALLEST: Final = 0.05  # smallest relative difference that is reported
_MOST_BLOCKS: Final = 20
_FEWEST: Final = 6  # fewest blocks, and fewest values, that are compared
_ALIKE: Final = 0.25  # correlation of neighbouring blocks above which blocks are lengthened
SMALLEST_NS: Final = 1_000  # smallest difference that is reported: the cost of recording an event

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+\b")
_OF_THE_RUN: Final = re.compile(
    r"_(?:\d{6,}|(?=[0-9a-f]*\d)[0-9a-f]{8,}|(?<=static_transform_publisher_)[A-Za-z0-9]{16})(?![A-Za-z0-9])"
)
"""Parts of names that ROS 2, tf2 and MoveIt generate in each run."""

FEWEST_RUNS: Final = fewest_runs(ALPHA)  # fewest runs per version whose medians can differ significantly

Values = npt.NDArray[np.float64]


class Kind(StrEnum):
    PATH = "latency of path"
    CALLBACK = "run time of callback"
    TRANSPORT = "transport on topic"
    PERIOD = "period of topic"


Key = tuple[Kind, str]
Samples = Mapping[Key, Values]


class Evidence(StrEnum):
    PASSAGES = "passages"  # values within the one run of each version
    SEPARATION = "separation"  # values, and runs that do not overlap; there are too few runs for a test
    RUNS = "runs"  # a test on the medians of runs


class Thing(NamedTuple):
    """A node, topic or callback of one version only."""

    kind: str
    name: str
    runs: int  # number of that version's runs in which it occurs


@dataclass(frozen=True)
class Run:
    """The compared facts of a trace: kind and name of things, and the values of each quantity in time order."""

    things: frozenset[tuple[str, str]]
    samples: Samples

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(name for kind, name in self.things if kind == "node")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A quantity in both versions.

    Attributes:
        base_ns, head_ns: medians; of several runs, the median of their medians.
        base_count, head_count: numbers of values.
        low, high: confidence interval of head over base; infinite with too few values.
        differs: True if the difference is significant, given its evidence, and large enough.
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


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Differences between two versions."""

    # new, gone: things in some run of one version and in none of the other
    new: tuple[Thing, ...]
    gone: tuple[Thing, ...]
    compared: tuple[Compared, ...]  # quantities of all runs, the largest significant difference first
    in_some_runs: tuple[str, ...]  # names of quantities of both versions that some runs lack
    evidence: Evidence
    base_runs: int
    head_runs: int

    @property
    def chance(self) -> float:
        """Probability that all runs of head are beyond all of base although the versions are equal."""
        return smallest_p(self.head_runs, self.base_runs)


def sample_run(flow: FlowGraph, paths: Sequence[PathSpec]) -> Run:
    """Extracts the compared facts of a trace; `paths` are the project's."""
    model, names = flow.model, Names(flow.model)
    things = [("node", lasting_name(name)) for name in model.nodes["name"].drop_nulls()]
    things += [("topic", lasting_name(topic)) for topic in model.topics()]
    ran = map(names.callback, model.callback_runs["callback"].drop_nulls().unique().to_list())
    things += [("callback", lasting_name(name)) for name in ran if not _ADDRESS.search(name)]
    return Run(frozenset(things), dict(_samples(flow, paths)))


def compare_runs(bases: Sequence[Run], heads: Sequence[Run]) -> Difference:
    one, other = (Counter(chain.from_iterable(each.things for each in runs)) for runs in (bases, heads))
    evidence = Evidence.RUNS if smallest_p(len(heads), len(bases)) <= ALPHA else Evidence.SEPARATION
    if max(len(bases), len(heads)) == 1:
        evidence = Evidence.PASSAGES
    keys = list(dict.fromkeys(chain.from_iterable(each.samples for each in bases)))
    shared = [key for key in keys if any(key in each.samples for each in heads)]
    whole = [key for key in shared if all(_suffices(each, key) for each in (*bases, *heads))]
    enough = [key for key in shared if all(any(_suffices(each, key) for each in side) for side in (bases, heads))]
    return Difference(
        new=tuple(Thing(*each, other[each]) for each in sorted(other.keys() - one.keys())),
        gone=tuple(Thing(*each, one[each]) for each in sorted(one.keys() - other.keys())),
        compared=tuple(_compare(bases, heads, whole, evidence)),
        in_some_runs=tuple(f"{kind} {name}" for kind, name in enough if (kind, name) not in set(whole)),
        evidence=evidence,
        base_runs=len(bases),
        head_runs=len(heads),
    )


def _suffices(run: Run, key: Key) -> bool:
    return key in run.samples and len(run.samples[key]) >= _FEWEST


def lasting_name(name: str) -> str:
    """A name with ``*`` for parts generated in each run: ``/transform_listener_impl_*``."""
    return _OF_THE_RUN.sub("_*", name)


def _samples(flow: FlowGraph, paths: Sequence[PathSpec]) -> Iterator[tuple[Key, Values]]:
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


def _by_name(kind: Kind, table: pl.DataFrame) -> Iterator[tuple[Key, Values]]:
    for part in table.drop_nulls().partition_by("name", maintain_order=True):
        yield (kind, str(part["name"][0])), _floats(part["value"])


def _floats(values: pl.Series) -> Values:
    return values.cast(pl.Float64).to_numpy()


def _compare(bases: Sequence[Run], heads: Sequence[Run], keys: Sequence[Key], evidence: Evidence) -> Iterator[Compared]:
    sides = {key: ([each.samples[key] for each in heads], [each.samples[key] for each in bases]) for key in keys}
    medians = {key: (_log_medians(head), _log_medians(base)) for key, (head, base) in sides.items()}
    judged, certain = medians, set[Key]()
    if evidence is not Evidence.RUNS:
        judged = {key: (_blocks_of(head), _blocks_of(base)) for key, (head, base) in sides.items()}
        shares = dict.fromkeys(judged, 1 / max(len(judged), 1))
        p = {key: 2 * min(rank_sum_p(head, base), rank_sum_p(base, head)) for key, (head, base) in judged.items()}
        steps = step_down(shares, lambda key, alpha: p[key] <= alpha, alpha=ALPHA)
        certain = {key for key, step in steps.items() if step.rejected and _are_disjoint(*medians[key])}
    elif medians:
        head, base = (np.column_stack(side) for side in zip(*medians.values(), strict=True))
        certain = {key for key, p in zip(medians, largest_contrast_p(head, base), strict=True) if p <= ALPHA}
    measured = judged if evidence is Evidence.PASSAGES else medians
    found = [_compared(key, sides[key], measured[key], is_certain=key in certain) for key in keys]
    yield from sorted(found, key=lambda each: (not each.differs, -abs(math.log(each.ratio))))


def _log_medians(runs: Sequence[Values]) -> Values:
    return np.log(np.maximum([float(np.median(each)) for each in runs], 1.0))


def _are_disjoint(head: Values, base: Values) -> bool:
    """True if the runs of the two sides do not overlap; always true for one run each."""
    return max(len(head), len(base)) == 1 or bool(head.min() > base.max() or base.min() > head.max())


def _blocks_of(runs: Sequence[Values]) -> Values:
    """Logarithms of the medians of consecutive blocks of each run; correlated values get longer blocks."""
    found = []
    for values in runs:
        count = min(_MOST_BLOCKS, max(len(values) // _FEWEST, _FEWEST))
        logarithms = _log_medians(np.array_split(values, count))
        while count // 2 >= _FEWEST and _autocorrelation(logarithms) >= _ALIKE:
            count //= 2
            logarithms = _log_medians(np.array_split(values, count))
        found.append(logarithms)
    return np.concatenate(found)


def _autocorrelation(values: Values) -> float:
    around = values - values.mean()
    spread = float(around @ around)
    return float(around[1:] @ around[:-1]) / spread if spread > 0 else 0.0


def _compared(
    key: Key, values: tuple[Sequence[Values], Sequence[Values]], judged: tuple[Values, Values], *, is_certain: bool
) -> Compared:
    shift = estimate_shift(*judged, tail=ALPHA / 2)
    head_ns, base_ns = (float(np.median([np.median(each) for each in runs])) for runs in values)
    head_count, base_count = (sum(map(len, runs)) for runs in values)
    is_large = abs(shift.estimate) >= math.log1p(SMALLEST) and abs(head_ns - base_ns) >= SMALLEST_NS
    return Compared(
        kind=key[0],
        name=key[1],
        base_ns=base_ns,
        head_ns=head_ns,
        base_count=base_count,
        head_count=head_count,
        low=math.exp(shift.low),
        high=math.exp(shift.high) if shift.high < 700 else math.inf,
        differs=is_certain and is_large,
    )
