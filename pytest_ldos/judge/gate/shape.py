"""Tests spread, upper tail and rises within a run, beside a metric's location.

A start is one piece of evidence. Interleaved versions alone are tested, in runs with enough starts and trials: how much
the spread of equal versions differs from hour to hour is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from pytest_ldos.base.stats.dispersion import (
    IN_TAIL,
    Numbers,
    Samples,
    around_common_median,
    around_medians,
    klotz_scores,
    tail_scores,
    tail_threshold,
)
from pytest_ldos.base.stats.late_rise import find_late_rise
from pytest_ldos.base.stats.start_permutation import permutation_p, sum_by_start
from pytest_ldos.base.stats.starts import Starts
from pytest_ldos.judge.gate.aspects import LateRise, Shape, Spread, Tail
from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.contrast import Contrast, contrast
from pytest_ldos.judge.gate.levels import fractions_of
from pytest_ldos.measure.metrics.model import Metric

FEWEST_STARTS: Final = 9
"""Starts of each version with which a permutation of starts can be significant: one of 48 620."""

FEWEST_TRIALS: Final = 20
"""Trials of each version, for spread and for rises within a run."""

FEWEST_OF_TAIL: Final = 5 * IN_TAIL
"""Trials of each version of which the upper tail of both is a tenth; with fewer, the spread shows more."""

_FAR: Final = 0.95
"""Quantile of the distances above the median: it must rise by more than the floor, or a spread is none to report."""


def shapes_of(case: Case, metric: Metric) -> Iterator[Shape]:
    """The aspects of a metric that this run can test, beside the location."""
    if case.is_interleaved and all(
        _are_enough(case, FEWEST_TRIALS, len(series), len(set(series.blocks))) for series in case.series(metric.name)
    ):
        values = _Values.of(case, metric)
        yield from (shape for test in _TESTS if (shape := test(values)) is not None)


def _are_enough(case: Case, fewest: int, trials: int, starts: int) -> bool:
    """True if one version's trials, of enough starts, will be so many at the last look."""
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
        # Levels of pairs stay in: without them, each version would take part in the other's spread.
        found = contrast(metric, *case.series(metric.name), is_interleaved=False)
        known = np.isfinite(found.head), np.isfinite(found.base)
        starts = found.starts[0][known[0]], found.starts[1][known[1]]
        return cls(case, metric, found, (found.head[known[0]], found.base[known[1]]), starts)

    def reach(self, trials: int) -> bool:
        """True if there will be so many trials of each version, of enough starts, at the last look."""
        sizes = zip(self.samples, self.starts, strict=True)
        return all(_are_enough(self.case, trials, own.size, np.unique(starts).size) for own, starts in sizes)

    @cached_property
    def centered(self) -> Samples:
        return around_medians(self.samples)

    def p_value(self, score: Callable[[Samples], Samples]) -> float:
        """The larger p-value of both centers: the common one makes it exact, the own ones leave out the location."""
        centers = self.centered, around_common_median(self.samples)
        return max(permutation_p(*sum_by_start(score(each), self.starts)) for each in centers)

    @property
    def rise_of_far(self) -> float:
        """Relative rise of the distance above the median that one trial in twenty exceeds."""
        head, base = (float(np.quantile(each, _FAR)) for each in self.centered)
        return self.contrasted.to_effect(max(0.0, head - base))

    def differences(self) -> tuple[Numbers, Starts]:
        """Mean of head less mean of base in each pair of starts, in order of time, and the pairs."""
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
