"""Spread, upper tail and rises within a run, tested in addition to a metric's location.

A start is one observation. Only interleaved versions with enough starts and trials are tested, because the change of
equal versions' spread over time is unknown. The metric's share of the error probability is divided by weight among the
location and the tested aspects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from pytest_ldos.base.stats.sequence import find_late_rise
from pytest_ldos.base.stats.spread import (
    IN_TAIL,
    Numbers,
    Samples,
    around_common_median,
    around_medians,
    klotz_scores,
    tail_scores,
    tail_threshold,
)
from pytest_ldos.base.stats.starts import Starts, permutation_p, sum_by_start
from pytest_ldos.judge.gate.case import Case, fractions_of
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.measure.metrics.model import Metric

LOCATION: Final = "location"
LOCATION_WEIGHT: Final = 1.0

_SUSPICIOUS: Final = 0.005
"""p-value below which an uncertain change is reported, and trials are added if allowed."""


@dataclass(frozen=True)
class Spread:
    """Mean distance of the trials from their version's median, relative."""

    name: ClassVar[str] = "spread"
    weight: ClassVar[float] = 0.12

    base: float
    head: float


@dataclass(frozen=True)
class Tail:
    """Share of trials in the upper tail: more than `beyond` (relative) worse than their version's median."""

    name: ClassVar[str] = "tail"
    weight: ClassVar[float] = 0.05

    base: float
    head: float
    beyond: float


@dataclass(frozen=True)
class LateRise:
    """A change for the worse within head's run.

    Attributes:
        from_trial: number of the first trial after the change, from 1.
        ratio: head over base from that trial on, divided by head over base before.
    """

    name: ClassVar[str] = "late_rise"
    weight: ClassVar[float] = 0.05

    from_trial: int
    ratio: float


Aspect = Spread | Tail | LateRise


@dataclass(frozen=True)
class Shape:
    """A tested aspect of one metric.

    Attributes:
        p_value: one-sided, for a change for the worse.
        effect: relative effect that must exceed the metric's floor.
    """

    aspect: Aspect
    p_value: float
    effect: float


@dataclass(frozen=True)
class Finding:
    """The result for an aspect.

    Attributes:
        tail: probability of error granted to the test.
        is_large: True if the change is larger than the metric's floor.
        is_regressed: True if it changed for the worse.
    """

    shape: Shape
    tail: float
    is_large: bool
    is_regressed: bool

    @property
    def is_suspect(self) -> bool:
        """True if it may have changed for the worse, but not certainly."""
        return self.is_large and not self.is_regressed and self.shape.p_value <= _SUSPICIOUS


def aspect_shares(shapes: Iterable[Shape]) -> dict[str, float]:
    """Shares of a metric's location and of its other tested aspects, 1 in total."""
    weights = {LOCATION: LOCATION_WEIGHT, **{each.aspect.name: each.aspect.weight for each in shapes}}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


FEWEST_STARTS: Final = 9
"""Starts of each version with which a permutation test of starts can be significant: one of 48 620 permutations."""

FEWEST_TRIALS: Final = 20
"""Fewest trials of each version for spread and for rises within a run."""

FEWEST_OF_TAIL: Final = 5 * IN_TAIL
"""Fewest trials of each version for the upper tail, a tenth of both; with fewer, the spread shows more."""

_FAR: Final = 0.95
"""Quantile of the distances above the median that must rise by more than the floor for a spread to be reported."""


def shapes_of(case: Case, metric: Metric) -> Iterator[Shape]:
    """The aspects of a metric other than its location that this run can test."""
    if case.is_interleaved and all(
        _are_enough(case, FEWEST_TRIALS, len(series), len(set(series.blocks))) for series in case.series(metric.name)
    ):
        values = _Values.of(case, metric)
        yield from (shape for test in _TESTS if (shape := test(values)) is not None)


def _are_enough(case: Case, fewest: int, trials: int, starts: int) -> bool:
    """True if one version will have so many trials, from enough starts, at the last look."""
    share = fractions_of(case.head, case.base)[-1]
    return starts >= FEWEST_STARTS * share and trials >= fewest * share


@dataclass(frozen=True)
class _Values:
    """Finite values of a metric without goal levels and covariates, larger is worse.

    Attributes:
        samples: of head and of base.
        starts: of each value.
    """

    case: Case
    metric: Metric
    contrasted: Contrast
    samples: Samples
    starts: tuple[Starts, Starts]

    @classmethod
    def of(cls, case: Case, metric: Metric) -> _Values:
        # Levels of pairs are kept: removing them would mix each version's spread into the other's.
        found = contrast(metric, *case.series(metric.name), is_interleaved=False)
        known = np.isfinite(found.head), np.isfinite(found.base)
        starts = found.starts[0][known[0]], found.starts[1][known[1]]
        return cls(case, metric, found, (found.head[known[0]], found.base[known[1]]), starts)

    def reach(self, trials: int) -> bool:
        """True if each version will have so many trials, from enough starts, at the last look."""
        sizes = zip(self.samples, self.starts, strict=True)
        return all(_are_enough(self.case, trials, own.size, np.unique(starts).size) for own, starts in sizes)

    @cached_property
    def centered(self) -> Samples:
        return around_medians(self.samples)

    def p_value(self, score: Callable[[Samples], Samples]) -> float:
        """The larger p-value of both centerings: the common one is exact, the separate ones ignore the location."""
        centers = self.centered, around_common_median(self.samples)
        return max(permutation_p(*sum_by_start(score(each), self.starts)) for each in centers)

    @property
    def rise_of_far(self) -> float:
        """Relative rise of the distance above the median exceeded by one trial in twenty."""
        head, base = (float(np.quantile(each, _FAR)) for each in self.centered)
        return self.contrasted.to_effect(max(0.0, head - base))

    def differences(self) -> tuple[Numbers, Starts]:
        """Mean of head minus mean of base in each pair of starts, in order of time, and the pairs."""
        pairs = self.starts[0] // 2, self.starts[1] // 2
        common = np.intersect1d(*pairs)
        head, base = (
            np.array([values[of == pair].mean() for pair in common])
            for values, of in zip(self.samples, pairs, strict=True)
        )
        return head - base, common

    def first_trial(self, pair: int) -> int:
        """Number of head's first trial in a pair of starts, from 1."""
        series, _ = self.case.series(self.metric.name)
        return 1 + min(trial for trial, start in zip(series.trials, series.blocks, strict=True) if start // 2 == pair)


def _test_spread(values: _Values) -> Shape | None:
    if not values.reach(FEWEST_TRIALS):
        return None
    head, base = (values.contrasted.to_effect(float(np.abs(each).mean())) for each in values.centered)
    return Shape(Spread(base, head), values.p_value(klotz_scores), values.rise_of_far)


def _test_tail(values: _Values) -> Shape | None:
    if not values.reach(FEWEST_OF_TAIL):
        return None
    head, base = (float(each.mean()) for each in tail_scores(values.centered))
    beyond = values.contrasted.to_effect(tail_threshold(values.centered))
    return Shape(Tail(base, head, beyond), values.p_value(tail_scores), values.rise_of_far)


def _test_late_rise(values: _Values) -> Shape | None:
    differences, pairs = values.differences()
    if not (differences.size and values.reach(FEWEST_TRIALS)):
        return None
    rise = find_late_rise(differences)
    aspect = LateRise(values.first_trial(int(pairs[rise.place])), values.contrasted.ratio(rise.size))
    return Shape(aspect, rise.p_value, values.contrasted.to_effect(rise.size))


_TESTS: Final[tuple[Callable[[_Values], Shape | None], ...]] = (_test_spread, _test_tail, _test_late_rise)
