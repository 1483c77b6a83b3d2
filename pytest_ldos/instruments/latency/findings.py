"""Combined rounds of cases, and their agreement with ddsperf."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import stdtrit

from pytest_ldos.base.series import Better, Missing, Value
from pytest_ldos.base.stats.rank_tests import median
from pytest_ldos.instruments.latency.case import Case, Program, Setup
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.spec import NO_CPU, LatencySpec, Transport
from pytest_ldos.instruments.latency.timings import Distribution, Percentiles, combine
from pytest_ldos.instruments.study import Round
from pytest_ldos.measure.metrics.model import Metric


@dataclass(frozen=True)
class CaseFindings:
    """A case and its rounds, in order.

    Attributes:
        distribution: distribution of all its round trips; empty if they are not known individually.
    """

    case: Case
    exchanges: Sequence[Exchange]
    distribution: Distribution

    @property
    def round_trip(self) -> Percentiles | None:
        return _combined(each.round_trip for each in self.exchanges)

    @property
    def there(self) -> Percentiles | None:
        return _combined(each.there for each in self.exchanges)

    @property
    def back(self) -> Percentiles | None:
        return _combined(each.back for each in self.exchanges)

    @property
    def per_second(self) -> float | None:
        known = [each.per_second for each in self.exchanges if each.round_trip is not None]
        return median(known) if known else None

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.exchanges)


def by_case(cases: Sequence[Case], exchanges: Iterable[Exchange]) -> list[CaseFindings]:
    """Groups exchanges by case; times are added to histograms and dropped."""
    kept: dict[Case, list[Exchange]] = {case: [] for case in cases}
    distributions = {case: Distribution() for case in cases}
    for each in exchanges:
        if each.times_ns is not None:
            distributions[each.case].add(each.times_ns)
        kept[each.case].append(each.without_times())
    return [CaseFindings(case, kept[case], distributions[case]) for case in cases]


def _combined(parts: Iterable[Percentiles | None]) -> Percentiles | None:
    known = [each for each in parts if each is not None]
    return combine(known) if known else None


CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval.

    Attributes:
        low, high: bounds; ``None`` with fewer than two rounds.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Comparison of a measurement with ddsperf's in one setup.

    Attributes:
        program: this package's program.
        ours_us, theirs_us: median round trips, as the median over all rounds.
        p50, p99, rate: ours divided by ddsperf's.
    """

    setup: Setup
    program: Program
    ours_us: float
    theirs_us: float
    p50: Ratio
    p99: Ratio
    rate: Ratio


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
    found = {(each.case, each.block): each for each in exchanges if each.round_trip is not None}
    compared = []
    for setup in setups:
        for program in (Program.TWIN, Program.CYCLONE):
            pairs = _pairs(found, setup, program)
            if pairs:
                compared.append(_compare(setup, program, pairs))
    return compared


_Pairs = list[tuple[Exchange, Exchange]]


def _pairs(found: Mapping[tuple[Case, int], Exchange], setup: Setup, program: Program) -> _Pairs:
    """Pairs the exchanges of the same block."""
    ours, theirs = (Case(program=each, **vars(setup)) for each in (program, Program.DDSPERF))
    blocks = sorted(block for case, block in found if case == ours)
    return [(found[ours, block], found[theirs, block]) for block in blocks if (theirs, block) in found]


def _compare(setup: Setup, program: Program, pairs: _Pairs) -> Agreement:
    ours, theirs = [_median_us(one) for one, _ in pairs], [_median_us(other) for _, other in pairs]
    return Agreement(
        setup=setup,
        program=program,
        ours_us=float(np.median(ours)),
        theirs_us=float(np.median(theirs)),
        p50=ratio_of(ours, theirs),
        p99=ratio_of([_p99_us(one) for one, _ in pairs], [_p99_us(other) for _, other in pairs]),
        rate=ratio_of([one.per_second for one, _ in pairs], [other.per_second for _, other in pairs]),
    )


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Returns the geometric mean of the rounds' ratios, with Student's t interval over their logarithms."""
    logs = np.log(np.asarray(ours)) - np.log(np.asarray(theirs))
    middle = float(logs.mean())
    if len(logs) < 2:
        return Ratio(math.exp(middle), None, None)
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * error
    return Ratio(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))


def _median_us(exchange: Exchange) -> float:
    assert exchange.round_trip is not None
    return exchange.round_trip.p50


def _p99_us(exchange: Exchange) -> float:
    assert exchange.round_trip is not None
    return exchange.round_trip.p99


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
    return tuple(_round(each, spec) for each in sorted(ours, key=lambda each: each.block))


def _round(found: Exchange, spec: LatencySpec) -> Round:
    return Round(
        case=found.case.name(spec),
        block=found.block,
        values=_values(found),
        details={"sent": float(found.sent), "lost": float(found.lost), "late": float(found.late)},
        failure=found.failure,
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
    """Returns notes on lost messages, and on failures of ddsperf."""
    lost, sent = sum(each.lost for each in exchanges), sum(each.sent for each in exchanges)
    losses = [f"{lost} of {sent} messages had no answer in time"] if lost else []
    theirs = [each for each in exchanges if each.case.program is Program.DDSPERF and each.failure]
    return [*losses, *dict.fromkeys(f"ddsperf, {each.case.words}: {each.failure}" for each in theirs)]
