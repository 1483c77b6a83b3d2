"""Times of rounds, their percentiles by case, and their agreement with ddsperf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.series import Better, Missing, Value
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.instruments.latency.spec import NO_CPU, LatencyCase, LatencySpec, Program, Setup, Transport
from pytest_ldos.instruments.study import Estimate, Round
from pytest_ldos.measure.metrics.model import Metric

Times = npt.NDArray[np.int64]

_NS_PER_US: Final = 1e3


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """Statistics of times in microseconds; `p999` is ``None`` if the program does not report it."""

    count: int
    low: float
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float | None
    high: float

    @classmethod
    def of(cls, times_ns: Times) -> Percentiles:
        """Computes nearest-rank percentiles of at least one time."""
        places = [-(-len(times_ns) * permille // 1000) - 1 for permille in (500, 900, 990, 999)]
        p50, p90, p99, p999 = map(float, np.partition(times_ns, places)[places] / _NS_PER_US)
        low, mean, high = (float(each) / _NS_PER_US for each in (times_ns.min(), times_ns.mean(), times_ns.max()))
        return cls(count=len(times_ns), low=low, mean=mean, p50=p50, p90=p90, p99=p99, p999=p999, high=high)


def combine(parts: Sequence[Percentiles]) -> Percentiles:
    """Combines one or more rounds: medians of their percentiles, mean of all times, minimum and maximum."""
    count = sum(each.count for each in parts)
    known = [each.p999 for each in parts if each.p999 is not None]
    return Percentiles(
        count=count,
        low=min(each.low for each in parts),
        mean=sum(each.mean * each.count for each in parts) / count,
        p50=median([each.p50 for each in parts]),
        p90=median([each.p90 for each in parts]),
        p99=median([each.p99 for each in parts]),
        p999=median(known) if len(known) == len(parts) else None,
        high=max(each.high for each in parts),
    )


LONGEST_NS: Final = 60_000_000_000
_MODULE: Final = "hdrh.histogram"
_DIGITS: Final = 3
_TICKS_PER_HALF: Final = 5  # steps per halving of the remaining share


def histograms_available() -> Availability:
    found = find_modules([_MODULE.partition(".")[0]], extra="embedded")
    return found if found.ok else Availability(False, found.reason, "pip install hdrhistogram")


@dataclass(frozen=True)
class Step:
    """A point of a distribution: the share and the number of the times that are at most `value_ns`."""

    value_ns: int
    share: float
    count: int


class Distribution:
    def __init__(self) -> None:
        self._histogram: Any = import_module(_MODULE).HdrHistogram(1, LONGEST_NS, _DIGITS)

    def add(self, times_ns: Times) -> None:
        """Counts times; those above `LONGEST_NS` count as `LONGEST_NS`."""
        values, counts = np.unique(np.clip(times_ns, 1, LONGEST_NS), return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            self._histogram.record_value(value, count)

    @property
    def count(self) -> int:
        return int(self._histogram.get_total_count())

    def steps(self) -> Iterator[Step]:
        """Yields steps from the shortest to the longest time, finer towards the tail."""
        if not self.count:
            return
        for each in self._histogram.get_percentile_iterator(_TICKS_PER_HALF):
            yield Step(int(each.value_iterated_to), each.percentile / 100, int(each.total_count_to_this_value))

    def encoded(self) -> str:
        """Returns HdrHistogram's compressed format in base 64, for other tools."""
        return str(self._histogram.encode().decode("ascii"))


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A round of one case.

    Attributes:
        there, back: one-way times, on a common clock; ``None`` if the program does not report them.
        lost, late: messages without an answer in time, and answers after the time limit.
        times_ns: times of all round trips, if known individually.
    """

    case: LatencyCase
    block: int
    round_trip: Percentiles | None = None
    there: Percentiles | None = None
    back: Percentiles | None = None
    sent: int = 0
    lost: int = 0
    late: int = 0
    per_second: float = 0.0
    times_ns: Times | None = None
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Counts:
    sent: int
    lost: int
    late: int
    elapsed_ns: int


def to_exchange(case: LatencyCase, block: int, counts: Counts, samples: Path) -> Exchange:
    """Builds an exchange from a report and its file of times (all round trips, then all one-way times of pings)."""
    times = np.fromfile(samples, dtype=np.int64)
    round_trips, there = times[: len(times) // 2], times[len(times) // 2 :]
    counted = Exchange(case=case, block=block, sent=counts.sent, lost=counts.lost, late=counts.late)
    if not len(round_trips):
        return replace(counted, failure=f"none of {counts.sent} messages was answered in time")
    return replace(
        counted,
        round_trip=Percentiles.of(round_trips),
        there=Percentiles.of(there),
        back=Percentiles.of(round_trips - there),
        per_second=len(round_trips) * NS_PER_S / counts.elapsed_ns,
        times_ns=round_trips,
    )


@dataclass(frozen=True, kw_only=True)
class CaseFindings:
    """A case, its rounds in order, and their times together; round trips known individually are in the distribution."""

    case: LatencyCase
    exchanges: Sequence[Exchange]
    distribution: Distribution
    round_trip: Percentiles | None
    there: Percentiles | None
    back: Percentiles | None

    @property
    def per_second(self) -> float | None:
        known = [each.per_second for each in self.exchanges if each.round_trip is not None]
        return median(known) if known else None


def by_case(cases: Sequence[LatencyCase], exchanges: Iterable[Exchange]) -> list[CaseFindings]:
    """Groups exchanges by case; times are added to histograms and dropped."""
    kept: dict[LatencyCase, list[Exchange]] = {case: [] for case in cases}
    distributions = {case: Distribution() for case in cases}
    for each in exchanges:
        if each.times_ns is not None:
            distributions[each.case].add(each.times_ns)
        kept[each.case].append(replace(each, times_ns=None))
    return [
        CaseFindings(
            case=case,
            exchanges=found,
            distribution=distributions[case],
            round_trip=_combined(each.round_trip for each in found),
            there=_combined(each.there for each in found),
            back=_combined(each.back for each in found),
        )
        for case, found in kept.items()
    ]


def _combined(parts: Iterable[Percentiles | None]) -> Percentiles | None:
    known = [each for each in parts if each is not None]
    return combine(known) if known else None


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Comparison of one of this package's programs with ddsperf: median round trips, and ratios of ours to theirs."""

    case: LatencyCase
    ours_us: float
    theirs_us: float
    p50: Estimate
    p99: Estimate
    rate: Estimate


def comparable_setups(setups: Sequence[Setup], spec: LatencySpec, notes: list[str]) -> Sequence[Setup]:
    """Drops setups that ddsperf does not support."""
    if spec.ping_cpu == spec.pong_cpu == NO_CPU or not spec.ddsperf:
        return setups
    others = [each for each in setups if each.transport is not Transport.ONE_PROCESS]
    if len(others) < len(setups):
        notes.append("ddsperf cannot pin both sides in one process, as the others do: they are not compared")
    return others


def compare_all(exchanges: Iterable[Exchange], setups: Sequence[Setup]) -> list[Agreement]:
    """Compares each program on Cyclone DDS with ddsperf, in every setup with results of both."""
    found = {(each.case, each.block): (each.round_trip, each.per_second) for each in exchanges if each.round_trip}
    compared = []
    for setup, program in product(setups, (Program.TWIN, Program.CYCLONE)):
        ours, theirs = (LatencyCase(program=each, **vars(setup)) for each in (program, Program.DDSPERF))
        blocks = sorted(block for case, block in found if case == ours and (theirs, block) in found)
        if blocks:
            pairs = [(found[ours, block], found[theirs, block]) for block in blocks]
            p50 = [(our[0].p50, their[0].p50) for our, their in pairs]
            compared.append(
                Agreement(
                    case=ours,
                    ours_us=median([our for our, _ in p50]),
                    theirs_us=median([their for _, their in p50]),
                    p50=Estimate.of_ratios(p50),
                    p99=Estimate.of_ratios([(our[0].p99, their[0].p99) for our, their in pairs]),
                    rate=Estimate.of_ratios([(our[1], their[1]) for our, their in pairs]),
                )
            )
    return compared


P50: Final = Metric(name="round_trip_p50", title="Round trip, median", unit="µs", better=Better.LOWER)
P90: Final = Metric(name="round_trip_p90", title="Round trip, 90th percentile", unit="µs", better=Better.LOWER)
P99: Final = Metric(name="round_trip_p99", title="Round trip, 99th percentile", unit="µs", better=Better.LOWER)
P999: Final = Metric(name="round_trip_p999", title="Round trip, 99.9th percentile", unit="µs", better=Better.LOWER)
ONE_WAY: Final = Metric(name="one_way_p50", title="One way there, median", unit="µs", better=Better.LOWER)
RATE: Final = Metric(name="round_trips", title="Round trips a second", unit="Hz", better=Better.HIGHER)
QUANTITIES: Final = (P50, P90, P99, P999, ONE_WAY, RATE)


def rounds_of(exchanges: Sequence[Exchange], spec: LatencySpec) -> tuple[Round, ...]:
    """Returns the rounds of all programs except ddsperf, which is for validation only."""
    ours = [each for each in exchanges if each.case.program is not Program.DDSPERF]
    return tuple(
        Round(
            case=each.case.name(spec),
            block=each.block,
            values=_values(each),
            details={"sent": float(each.sent), "lost": float(each.lost), "late": float(each.late)},
            failure=each.failure,
        )
        for each in sorted(ours, key=lambda each: each.block)
    )


def _values(found: Exchange) -> dict[str, Value]:
    times = found.round_trip
    if times is None:
        return {}
    return {
        P50.name: times.p50,
        P90.name: times.p90,
        P99.name: times.p99,
        P999.name: Missing("not reported") if times.p999 is None else times.p999,
        ONE_WAY.name: Missing("not reported") if found.there is None else found.there.p50,
        RATE.name: found.per_second,
    }


def remarks_of(exchanges: Sequence[Exchange]) -> list[str]:
    lost, sent = sum(each.lost for each in exchanges), sum(each.sent for each in exchanges)
    losses = [f"{lost} of {sent} messages had no answer in time"] if lost else []
    theirs = [each for each in exchanges if each.case.program is Program.DDSPERF and each.failure]
    return [*losses, *dict.fromkeys(f"ddsperf, {each.case.words}: {each.failure}" for each in theirs)]
