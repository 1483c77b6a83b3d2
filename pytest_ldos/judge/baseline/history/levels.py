"""Estimates the level of neighbouring runs, and how far apart runs may be without a change."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri, stdtrit

from pytest_ldos.base.stats.change_points import correlation_of, normal_scores
from pytest_ldos.judge.baseline.history.series import CONFIDENCE, MetricSeries, Run

TAIL: Final = (1 - CONFIDENCE) / 2
_DEVIATIONS_OF_HALF_WIDTH: Final = -float(ndtri(TAIL))
_MAD_TO_DEVIATION: Final = 1.4826
_FEWEST_RUNS: Final = 5
"""Fewest runs from which the variation between runs is estimated."""


@dataclass(frozen=True)
class Change:
    """A relative change with its interval; 0.1 is 10 % more."""

    effect: float
    low: float
    high: float


@dataclass(frozen=True)
class Level:
    """A location with its standard deviation, and the degrees of freedom of the latter."""

    location: float
    deviation: float
    degrees: float


@dataclass(frozen=True)
class Noise:
    """Variation between runs of an unchanged level.

    Attributes:
        deviation: total standard deviation of a run; 0 if it is not estimated.
        is_estimated: True if there are enough runs.
    """

    deviation: float
    degrees: float
    correlation: float
    is_estimated: bool = True

    def level(self, runs: Sequence[Run]) -> Level | None:
        """The common level of some neighbouring runs; ``None`` if none of them has a finite location."""
        known = [run for run in runs if math.isfinite(run.location)]
        if not known:
            return None
        locations = [run.location for run in known]
        middle = statistics.median(locations)
        own = sum((run.half_width / _DEVIATIONS_OF_HALF_WIDTH) ** 2 for run in known) / len(known)
        shared = (1 + self.correlation) / (1 - self.correlation)
        variance = max(own, self.deviation**2) * min(1.0, shared / len(known))
        return Level(middle, math.sqrt(variance), self.degrees if self.deviation**2 >= own else math.inf)


def noise_of(series: MetricSeries) -> Noise:
    """Noise estimated from differences of neighbouring runs; a few changes of level among them do no harm."""
    locations = np.array([run.location for run in series.runs if run.is_accepted])
    if len(locations) < _FEWEST_RUNS:
        return Noise(0.0, math.inf, 0.0, is_estimated=False)
    steps = np.diff(locations)
    between = _MAD_TO_DEVIATION * float(np.median(np.abs(steps - np.median(steps)))) / math.sqrt(2)
    correlation = 0.0
    if len(locations) >= 2 * _FEWEST_RUNS:
        correlation = min(max(float(correlation_of(normal_scores(locations))), 0.0), 0.9)
    return Noise(between / math.sqrt(1 - correlation), max(2.0, len(steps) / 3), correlation)


@dataclass(frozen=True)
class AcceptedRuns:
    """The runs of a series that may serve as an anchor.

    Attributes:
        places: index of each among all runs of the series, increasing.
    """

    runs: tuple[Run, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, series: MetricSeries) -> AcceptedRuns:
        kept = [(run, place) for place, run in enumerate(series.runs) if run.is_accepted]
        return cls(tuple(run for run, _ in kept), tuple(place for _, place in kept))

    def before(self, place: int, count: int) -> tuple[Run, ...]:
        """The last `count` accepted runs before an index."""
        end = bisect_left(self.places, place)
        return self.runs[max(0, end - count) : end]


def bounds(level: Level | None) -> tuple[float, float]:
    if level is None:
        return math.inf, math.inf
    half = level.deviation * -_quantile(TAIL, level.degrees)
    return level.location - half, level.location + half


def change_between(
    series: MetricSeries, before: Level | None, after: Level | None, *, tail: float = TAIL
) -> Change | None:
    if before is None or after is None:
        return None
    difference = after.location - before.location
    deviation = math.hypot(before.deviation, after.deviation)
    half = deviation * -_quantile(tail, min(before.degrees, after.degrees))
    low, high = (series.effect(bound) for bound in (difference - half, difference + half))
    return Change(series.effect(difference), low, high)


def _quantile(tail: float, degrees: float) -> float:
    return float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))
