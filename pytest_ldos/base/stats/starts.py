"""Variance between stack starts, and tests with starts as the unit of evidence.

If starts differ, the trials of one start are not independent evidence about a version: a slow start has several slow
trials. Variances are estimated by the method of moments (one-way and nested random models), after outlying trials
within a start, and outlying starts among many, are Winsorized.

Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, chapter 3; degrees of freedom by F.
E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from pytest_ldos.base.stats.adjust import winsorize_groups, winsorize_levels
from pytest_ldos.base.stats.rank_tests import Shift

Numbers = npt.NDArray[np.float64]
Starts = npt.NDArray[np.int64]

_MOST_DEGREES: Final = 1e6

_USUALLY: Final = 0.9
"""Confidence of the upper bound of a variance that is used for its degrees of freedom."""


@dataclass(frozen=True)
class Variance:
    """A variance estimated by moments (negative counts as zero), and its degrees of freedom; 0 if nothing is known."""

    value: float
    degrees: float

    def __mul__(self, factor: float) -> Variance:
        return Variance(self.value * factor, self.degrees)

    def __add__(self, other: Variance) -> Variance:
        """The sum of two independent estimates, with Satterthwaite's degrees of freedom."""
        parts = [Variance(max(each.value, 0.0), each.degrees) for each in (self, other)]
        total = sum(each.value for each in parts)
        uncertainty = sum(each.value**2 / each.degrees for each in parts if each.value and each.degrees)
        return Variance(total, total**2 / uncertainty) if uncertainty else Variance(total, self.degrees + other.degrees)


UNKNOWN: Final = Variance(0.0, 0.0)


def pool(variances: Sequence[Variance]) -> Variance:
    """Pools estimates of the same variance, weighted by their degrees of freedom."""
    degrees = sum(each.degrees for each in variances)
    return Variance(sum(each.value * each.degrees for each in variances) / degrees, degrees) if degrees else UNKNOWN


def variance_between_starts(values: Numbers, starts: Starts) -> Variance:
    """Variance between the starts of one version, without the contribution of their trials.

    Values that are not finite are ignored. A single start gives no estimate.
    """
    groups = winsorize_groups(_groups(values, starts))
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    if len(groups) < 2 or sizes.sum() <= len(groups):
        return UNKNOWN
    means = winsorize_levels(np.array([group.mean() for group in groups]))
    whole = float(sizes @ means) / sizes.sum()
    between = float(np.sum(sizes * (means - whole) ** 2)) / (len(groups) - 1)
    usual_size = float(sizes.sum() - np.sum(sizes**2) / sizes.sum()) / (len(groups) - 1)
    return Variance((between - variance_within(groups)) / usual_size, len(groups) - 1)


def variance_between_paired_starts(
    head: Numbers, base: Numbers, pairs: tuple[Starts, Starts], *, inflation: float = 1.0
) -> Variance:
    """Variance between starts, from differences of neighbouring starts, in which common drift cancels.

    `inflation` corrects the variance within starts for removed levels.
    """
    found: list[Numbers] = []
    for pair in np.intersect1d(*pairs):
        groups = [values[(of == pair) & np.isfinite(values)] for values, of in zip((head, base), pairs, strict=True)]
        found += groups if all(len(group) for group in groups) else []
    if len(found) < 4 or sum(map(len, found)) <= len(found):
        return UNKNOWN
    found = winsorize_groups(found)
    means = np.array([group.mean() for group in found])
    differences = winsorize_levels(means[::2] - means[1::2])
    by_trials = inflation * variance_within(found) * 2 * float(np.mean([1 / len(group) for group in found]))
    return Variance((float(np.var(differences, ddof=1)) - by_trials) / 2, len(differences) - 1)


@dataclass(frozen=True)
class Extra:
    """Variance of a shift that is not visible within the samples."""

    between: Variance = UNKNOWN  # variance to add: between starts, or between runs
    # factor of the variance within the samples, which is too small if estimated levels were removed
    inflation: float = 1.0
    # degrees of freedom of the variance within the samples: originally, and after levels were removed
    degrees: tuple[float, float] = (_MOST_DEGREES, _MOST_DEGREES)

    @property
    def deviation(self) -> float:
        return math.sqrt(max(self.between.value, 0.0))

    def of(self, shift: Shift) -> tuple[float, float]:
        """Total variance of the shift, and its degrees of freedom."""
        between = max(self.between.value, 0.0)
        own = self.inflation * shift.standard_error**2
        if between == 0:
            return own, self.degrees[1]
        # A small estimate may be due to chance, so that its upper bound determines its weight.
        degrees = self.between.degrees
        share = own * float(chdtri(degrees, _USUALLY)) / (between * degrees)
        return own + between, min(_MOST_DEGREES, (1 + share) ** 2 / (1 / degrees + share**2 / self.degrees[1]))

    def matters(self, shift: Shift) -> bool:
        known = math.isfinite(shift.standard_error) and math.isfinite(shift.estimate)
        return known and (self.between.value > 0 or self.inflation > 1)

    def widen(self, shift: Shift, *, tail: float) -> Shift:
        """Widens the interval of a shift by this variance; `tail` is the probability of error of each end.

        The variance is added to each end's own distance, so that an outlier on one side of samples with little
        variation is not magnified.
        """
        if not self.matters(shift):
            return shift
        total, degrees = self.of(shift)
        quantile = -float(stdtrit(degrees, tail))
        factor = math.sqrt(self.inflation) * quantile / -float(stdtrit(self.degrees[0], tail))
        below, above = (
            math.hypot(factor * distance, quantile * self.deviation)
            for distance in (shift.estimate - shift.low, shift.high - shift.estimate)
        )
        return Shift(shift.estimate, shift.estimate - below, shift.estimate + above, math.sqrt(total))

    def widened_p(self, p_value: float, shift: Shift) -> float:
        if not self.matters(shift) or not 0 < p_value < 1:
            return p_value
        total, degrees = self.of(shift)
        if shift.standard_error > 0:
            deviations = float(stdtrit(self.degrees[0], p_value))
            return float(stdtr(degrees, deviations * shift.standard_error / math.sqrt(total)))
        return float(stdtr(degrees, -shift.estimate / math.sqrt(total))) if total > 0 else p_value


def _groups(values: Numbers, starts: Starts) -> list[Numbers]:
    found = (values[(starts == start) & np.isfinite(values)] for start in np.unique(starts))
    return [group for group in found if len(group)]


def variance_within(groups: Sequence[Numbers]) -> float:
    """Variance of values around the means of their groups; 0 if each group has a single value."""
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return squares / max(sum(map(len, groups)) - len(groups), 1)


_STEPS: Final = 200
"""Number of steps from the smallest to the largest score; rounding keeps the test exact."""

_MOST_EXACT: Final = 40
"""Largest number of starts per version for the exact distribution; above it, the normal approximation is used."""


def sum_by_start(scores: tuple[Numbers, Numbers], starts: tuple[Starts, Starts]) -> tuple[Numbers, Numbers]:
    """Sums of each start's centred scores, so that the number of trials has no effect."""
    mean = float(np.concatenate(scores).mean())
    head, base = (
        np.array([(values[of == start] - mean).sum() for start in np.unique(of)])
        for values, of in zip(scores, starts, strict=True)
    )
    return head, base


def permutation_p(head: Numbers, base: Numbers) -> float:
    """Probability that a random choice of as many starts as `head` has has a sum of scores as large as `head`'s.

    Between equal versions, starts are exchangeable, for any scores and any distribution of starts. A common drift of
    both versions makes the test conservative.

    Reference: P. Good, "Permutation, Parametric, and Bootstrap Tests of Hypotheses", 3rd ed., 2005, chapters 3 and 9.
    """
    together = np.concatenate([head, base])
    spread = float(np.ptp(together))
    if spread == 0:
        return 1.0
    chosen = head.size
    if max(chosen, base.size) > _MOST_EXACT:
        variance = chosen * (1 - chosen / together.size) * float(together.var(ddof=1))
        return float(ndtr((chosen * float(together.mean()) - float(head.sum())) / math.sqrt(variance)))
    scores = np.rint((together - together.min()) * (_STEPS / spread)).astype(np.int64)
    largest = int(np.sort(scores)[-chosen:].sum())
    ways = np.zeros((chosen + 1, largest + 1))  # of choosing a number of the scores, by number and sum
    ways[0, 0] = 1.0
    for score in scores:
        ways[1:, score:] += ways[:-1, : largest + 1 - score].copy()
    return float(ways[chosen, scores[:chosen].sum() :].sum() / ways[chosen].sum())


Runs = Sequence[Sequence[Numbers]]
"""Values by run and, within a run, by start, both in chronological order."""


_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Components:
    """Standard deviations with their degrees of freedom."""

    trial_sd: float  # between values of one start
    start_sd: float  # between starts of one run, without the contribution of their values
    start_df: float  # degrees of freedom of `start_sd`
    run_sd: float  # the same of different runs; at least `start_sd`, because different runs have different starts
    run_df: float  # degrees of freedom of the runs' addition to `start_sd`; 0 if unknown, as with one run
    largest_run_sd: float  # upper bound of `run_sd` with 95 % confidence; with one run, of `start_sd`


def estimate_components(runs: Runs) -> Components | None:
    """The components of finite values; ``None`` for fewer than two starts, or if no start has two values.

    Nested analysis of variance with unequal numbers. Outlying values within a start are Winsorized before. Negative
    components count as zero; their degrees of freedom remain those of the mean squares they were computed from.
    """
    measured = [[start for start in run if start.size] for run in runs]
    drawn = iter(winsorize_groups([start for run in measured for start in run]))
    kept = [[next(drawn) for _ in run] for run in measured if run]
    starts = [start for run in kept for start in run]
    if len(starts) < 2 or sum(start.size - 1 for start in starts) < 1:
        return None
    if len(kept) == len(starts):  # each start is a separate run
        kept = [starts]
    values = sum(float(np.sum((each - each.mean()) ** 2)) for each in starts)
    values /= max(1, sum(each.size for each in starts) - len(starts))
    start, run = _levels(kept, values)
    return Components(
        trial_sd=math.sqrt(values),
        start_sd=math.sqrt(start.variance),
        start_df=start.degrees,
        run_sd=math.sqrt(max(run.variance, start.variance)),
        run_df=float(len(kept) - 1),
        largest_run_sd=math.sqrt(max(run.largest, start.largest)),
    )


@dataclass(frozen=True)
class _Level:
    """Variance of the means of some groups, and its part due to the variation of values within groups."""

    observed: float
    by_values: float
    degrees: float

    @property
    def variance(self) -> float:
        return max(0.0, self.observed - self.by_values)

    @property
    def largest(self) -> float:
        observed = self.degrees * self.observed / float(chdtri(self.degrees, _CONFIDENCE))
        return max(0.0, observed - self.by_values)


def _levels(runs: Runs, values: float) -> tuple[_Level, _Level]:
    """Variation between starts of one run, and of different runs; the same twice for one run.

    `values` is the mean square of the values in starts.
    """
    sizes = [np.array([start.size for start in run], dtype=np.float64) for run in runs]
    of_runs = np.array([size.sum() for size in sizes])
    total = float(of_runs.sum())
    run_df, start_df = len(runs) - 1, sum(map(len, runs)) - len(runs)
    means = [np.array([start.mean() for start in run]) for run in runs]
    run_means = np.array([size @ mean / size.sum() for size, mean in zip(sizes, means, strict=True)])
    around = zip(sizes, means, run_means, strict=True)
    starts = sum(float(size @ (mean - middle) ** 2) for size, mean, middle in around) / start_df
    nested = sum(float(size @ size / size.sum()) for size in sizes)
    weight = (total - nested) / start_df
    of_start = _Level(starts / weight, values / weight, float(start_df))
    if not run_df:
        return of_start, of_start
    between = float(of_runs @ (run_means - of_runs @ run_means / total) ** 2) / run_df
    weight_in_runs = (nested - sum(float(size @ size) for size in sizes) / total) / run_df
    from_runs = 1 / ((total - float(of_runs @ of_runs) / total) / run_df)
    from_starts = (1 - weight_in_runs * from_runs) / weight
    # The runs' addition is at least the standard error of its estimate, because a few runs cannot rule it out.
    least = starts * weight_in_runs / weight * (1 + math.sqrt(2 / run_df))
    parts = (from_runs * max(between, least), from_starts * starts)
    uncertainty = parts[0] ** 2 / run_df + parts[1] ** 2 / start_df
    degrees = sum(parts) ** 2 / uncertainty if uncertainty > 0 else float(start_df)
    return of_start, _Level(sum(parts), (from_runs + from_starts) * values, degrees)
