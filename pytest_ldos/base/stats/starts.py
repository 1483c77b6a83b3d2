"""Variance between stack starts: trials of one start are more alike than trials of several.

If starts differ, the trials of one start are not independent evidence about a version.
The variance between starts is estimated by the method of moments (the one-way random model),
and widens an interval that was computed without it. Single trials that lie far from their start,
and single starts among many, are drawn in before: see `robust_scale`.

Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, chapter 3;
degrees of freedom by F. E. Satterthwaite, "An approximate distribution of estimates of variance
components", Biometrics Bulletin 2, 1946.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, stdtr, stdtrit

from pytest_ldos.base.stats.rank_sum import Shift
from pytest_ldos.base.stats.robust_scale import winsorize_groups, winsorize_levels

Numbers = npt.NDArray[np.float64]
Starts = npt.NDArray[np.int64]

_MOST_DEGREES: Final = 1e6

_USUALLY: Final = 0.9
"""Probability that a variance is less than what is taken for its largest when its degrees of freedom are judged."""


@dataclass(frozen=True)
class Variance:
    """An estimated variance.

    Attributes:
        value: may be negative, because it is estimated by moments; then it counts as zero.
        degrees: degrees of freedom; 0 if nothing is known.
    """

    value: float
    degrees: float

    def __mul__(self, factor: float) -> Variance:
        return Variance(self.value * factor, self.degrees)

    def __add__(self, other: Variance) -> Variance:
        """The sum of two estimates that are independent; its degrees of freedom are Satterthwaite's."""
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
    """Variance between the starts of one version, beyond what the variation of their trials explains.

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
    """Variance between starts, from differences of neighbouring ones: drift common to both versions cancels.

    Args:
        pairs: number of the pair that each value of `head` and of `base` belongs to.
        inflation: factor from the variance within starts to that of values whose levels were not removed.
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
    """Variance of a shift that the samples themselves do not show.

    Attributes:
        between: variance to be added: between starts, or between runs.
        inflation: factor on the variance within the samples. Levels estimated from the same
            values and removed make them look more alike than they are.
        degrees: degrees of freedom of the variance within the samples: of two samples as they are, and of what was
            left of them when levels were removed.
    """

    between: Variance = UNKNOWN
    inflation: float = 1.0
    degrees: tuple[float, float] = (_MOST_DEGREES, _MOST_DEGREES)

    @property
    def deviation(self) -> float:
        """Standard deviation of what is to be added."""
        return math.sqrt(max(self.between.value, 0.0))

    def of(self, shift: Shift) -> tuple[float, float]:
        """Total variance of the shift, and its degrees of freedom."""
        between = max(self.between.value, 0.0)
        own = self.inflation * shift.standard_error**2
        if between == 0:
            return own, self.degrees[1]
        # By chance the estimate may be small, and would then seem to matter little: it counts by what it may be.
        degrees = self.between.degrees
        share = own * float(chdtri(degrees, _USUALLY)) / (between * degrees)
        return own + between, min(_MOST_DEGREES, (1 + share) ** 2 / (1 / degrees + share**2 / self.degrees[1]))

    def matters(self, shift: Shift) -> bool:
        known = math.isfinite(shift.standard_error) and math.isfinite(shift.estimate)
        return known and (self.between.value > 0 or self.inflation > 1)


def widen(shift: Shift, extra: Extra, *, tail: float) -> Shift:
    """The interval of a shift whose variance is larger than its samples show.

    Each end keeps its own distance, to which the variance is added: an outlier on one side of samples that hardly vary
    is not magnified with them.

    Args:
        tail: probability of error of each end of the interval.
    """
    if not extra.matters(shift):
        return shift
    total, degrees = extra.of(shift)
    quantile = -float(stdtrit(degrees, tail))
    factor = math.sqrt(extra.inflation) * quantile / -float(stdtrit(extra.degrees[0], tail))
    below, above = (
        math.hypot(factor * distance, quantile * extra.deviation)
        for distance in (shift.estimate - shift.low, shift.high - shift.estimate)
    )
    return Shift(shift.estimate, shift.estimate - below, shift.estimate + above, math.sqrt(total))


def widened_p(p_value: float, shift: Shift, extra: Extra) -> float:
    """The one-sided p-value of a shift whose variance is larger than its samples show."""
    if not extra.matters(shift) or not 0 < p_value < 1:
        return p_value
    total, degrees = extra.of(shift)
    if shift.standard_error > 0:
        deviations = float(stdtrit(extra.degrees[0], p_value))
        return float(stdtr(degrees, deviations * shift.standard_error / math.sqrt(total)))
    return float(stdtr(degrees, -shift.estimate / math.sqrt(total))) if total > 0 else p_value


def _groups(values: Numbers, starts: Starts) -> list[Numbers]:
    found = (values[(starts == start) & np.isfinite(values)] for start in np.unique(starts))
    return [group for group in found if len(group)]


def variance_within(groups: Sequence[Numbers]) -> float:
    """Variance of values around the means of their groups; 0 where each group is a single value."""
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return squares / max(sum(map(len, groups)) - len(groups), 1)
