"""Agreement of our times with ddsperf's, from interleaved rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import stdtrit

from pytest_ldos.instruments.latency.case import Case, Program, Setup
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.spec import NO_CPU, LatencySpec, Transport

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
    """Our measurement and ddsperf's in one setup.

    Attributes:
        program: our program.
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
    """Drops the setups in which ddsperf cannot be configured to do what ours does."""
    if spec.ping_cpu == spec.pong_cpu == NO_CPU or not spec.ddsperf:
        return setups
    others = [each for each in setups if each.transport is not Transport.ONE_PROCESS]
    if len(others) < len(setups):
        notes.append("in one process ours has its sides pinned apart, which ddsperf's cannot be: they are not compared")
    return others


def compare_all(exchanges: Iterable[Exchange], setups: Sequence[Setup]) -> list[Agreement]:
    """Compares each of our programs on Cyclone DDS with ddsperf, in every setup where both have results."""
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
