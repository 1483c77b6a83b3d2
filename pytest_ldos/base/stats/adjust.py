"""Prepares samples for a comparison: removes known causes of variation, Winsorizes, scores dispersion, averages strata.

References: M. I. Shamos, "Geometry and statistics: problems at the interface", 1976; P. J. Rousseeuw, C. Croux,
"Alternatives to the median absolute deviation", Journal of the American Statistical Association 88, 1993;
J. W. Tukey, D. H. McLaughlin, "Less vulnerable confidence and significance procedures for location based on a single
sample: trimming/Winsorization 1", Sankhya A 25, 1963.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from pytest_ldos.base.stats.rank_tests import Shift, mean_ranks

Numbers = npt.NDArray[np.float64]
Samples = tuple[Numbers, Numbers]
Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.str_]
Groups = Words | Indices
Flags = npt.NDArray[np.bool_]

_REACH: Final = 3.0
"""Scales from the centre at which values are Winsorized."""

_UPPER: Final = 0.75
"""Quantile of the distances between levels: insensitive to one level in ten, but sensitive to two kinds of starts."""

_FEWEST_LEVELS: Final = 9
"""Fewest levels among which one can be an outlier: its distances are then less than a quarter of all, in one or two
samples."""


def group_scale(groups: Sequence[Numbers]) -> float:
    """Standard deviation of normal values within groups; 0 if no group has two values.

    It comes from the median distance of two values of a group (Shamos' estimator), which needs no centre. Its breakdown
    point is 29 %. For normal values in one group its variance is 1.16 times that of the standard deviation.
    """
    return _scale(np.concatenate([_distances(group) for group in groups]) if groups else np.empty(0), 0.5)


def winsorize_groups(groups: Sequence[Numbers]) -> list[Numbers]:
    """Winsorizes values beyond three scales from the centre of their group: 0.3 % of normal values.

    The centre is the median of the group's values and the overall median: of two distant values, the one nearer to all
    others is kept. A group that is distant as a whole is not changed.
    """
    scale = group_scale(groups)
    if scale == 0.0:
        return list(groups)
    middle = float(np.median(np.concatenate(groups)))
    centres = (float(np.median([*group, middle] if group.size > 1 else group)) for group in groups)
    return [_drawn_in(group, centre, scale) for group, centre in zip(groups, centres, strict=True)]


def winsorize_levels(levels: Numbers) -> Numbers:
    """Winsorizes single levels far from all others; levels of a few groups are not changed."""
    if levels.size < _FEWEST_LEVELS:
        return levels
    scale = _scale(_distances(levels), _UPPER)
    return _drawn_in(levels, float(np.median(levels)), scale) if scale else levels


def draw_in_extremes(samples: Sequence[Numbers], *, reach: float) -> list[Numbers]:
    """Winsorizes values beyond `reach` scales from their sample's centre; ignores infinite ones and small samples.

    For the interval of a shift, which keeps its error probability but is otherwise bounded by extreme values if that is
    small. Not for variances, because a short reach also changes normal samples.
    """
    known = [values[np.isfinite(values)] for values in samples]
    scale = _scale(np.concatenate([_distances(values) for values in known]), _UPPER)
    if scale == 0.0 or sum(values.size for values in known) < _FEWEST_LEVELS:
        return list(samples)
    drawn = []
    for values, finite in zip(samples, known, strict=True):
        middle = float(np.median(finite)) if finite.size else 0.0
        drawn.append(np.where(np.isfinite(values), _drawn_in(values, middle, scale, reach), values))
    return drawn


def _scale(distances: Numbers, quantile: float) -> float:
    if distances.size == 0:
        return 0.0
    usual = math.sqrt(2) * float(ndtri((1 + quantile) / 2))
    return float(np.quantile(distances, quantile)) / usual


def _distances(group: Numbers) -> Numbers:
    first, second = np.triu_indices(group.size, 1)
    return np.abs(group[first] - group[second])


def _drawn_in(values: Numbers, centre: float, scale: float, reach: float = _REACH) -> Numbers:
    return np.clip(values, centre - reach * scale, centre + reach * scale)


IN_TAIL: Final = 16
"""Number of values in the upper tail of the pooled samples. All of them are in the same one of two equal samples with a
probability below 1 in 65 536. In simulations with 5 to 10 % of the values three times as large, 14 to 20 are best for
any sample size."""


def around_medians(samples: Samples) -> Samples:
    """Subtracts each sample's own median, so that a shift alone changes no score."""
    return samples[0] - np.median(samples[0]), samples[1] - np.median(samples[1])


def around_common_median(samples: Samples) -> Samples:
    """Subtracts the median of the pooled samples, around which alone permutations of scores are exact."""
    middle = np.median(np.concatenate(samples))
    return samples[0] - middle, samples[1] - middle


def klotz_scores(centered: Samples) -> Samples:
    """Squared normal scores of the ranks of distances from the median.

    For normal values they have the power of the variance ratio, and outliers count only by rank.

    Reference: J. Klotz, "Nonparametric tests for scale", Annals of Mathematical Statistics 33, 1962.
    """
    distances = np.abs(np.concatenate(centered))
    return _split(ndtri(0.5 + mean_ranks(distances) / (2 * (distances.size + 1))) ** 2, centered)


def tail_threshold(centered: Samples) -> float:
    """Distance above the median at which the upper tail of the pooled samples begins."""
    return float(np.sort(np.concatenate(centered))[-1 - IN_TAIL :][0])


def tail_scores(centered: Samples) -> Samples:
    return _split(np.where(np.concatenate(centered) > tail_threshold(centered), 1.0, 0.0), centered)


def _split(scores: Numbers, like: Samples) -> Samples:
    return scores[: like[0].size], scores[like[0].size :]


_LEAST_VARIATION = 1e-12

_FEWEST = 5

_FEWEST_DEGREES: Final = 4

_EXTREME: Final = 3.0
"""The same for a correlation."""

_SURE: Final = 0.9999
"""Upper limit of a correlation, so that Fisher's transformation is finite."""


def in_common_strata(strata: tuple[Groups, Groups]) -> tuple[Flags, Flags]:
    """Flags of each sample's comparable values, whose stratum occurs in both samples."""
    common = np.intersect1d(*strata)
    return np.isin(strata[0], common), np.isin(strata[1], common)


def remove_strata(values: tuple[Numbers, Numbers], strata: tuple[Groups, Groups]) -> tuple[Numbers, Numbers]:
    """Both samples with the level of each common stratum removed: the mean of both medians, so that a shift is kept."""
    adjusted = values[0].copy(), values[1].copy()
    for stratum in np.intersect1d(*strata):
        members = [groups == stratum for groups in strata]
        levels = [_median(value[member]) for value, member in zip(adjusted, members, strict=True)]
        known = [level for level in levels if np.isfinite(level)]
        if known:
            level = float(np.mean(known))
            for value, member in zip(adjusted, members, strict=True):
                value[member] -= level
    return adjusted


@dataclass(frozen=True)
class MeanShift:
    """A mean of shifts with its standard error, infinite if unknown, and Welch's degrees of freedom."""

    estimate: float
    error: float
    degrees: float

    @property
    def p_value(self) -> float:
        """One-sided, of a shift above zero."""
        if self.error == 0:
            return 0.0 if self.estimate > 0 else 1.0
        return float(stdtr(self.degrees, -self.estimate / self.error))

    def shift(self, *, tail: float) -> Shift:
        reach = -float(stdtrit(self.degrees, tail)) * self.error
        return Shift(self.estimate, self.estimate - reach, self.estimate + reach, self.error)


def average_strata(samples: Samples, strata: tuple[Groups, Groups]) -> MeanShift | None:
    """The mean over strata of the shift of the first sample above the second.

    Each stratum has equal weight, so that a large change of few strata counts. Values are Winsorized within their
    stratum and sample; infinite ones count as the largest of their stratum. Strata in which half of a sample or more is
    infinite are left out; ``None`` if that leaves none.

    Reference: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
    involved", Biometrika 34, 1947.
    """
    groups: list[Numbers] = []
    for stratum in np.intersect1d(*strata):
        pair = [values[of == stratum] for values, of in zip(samples, strata, strict=True)]
        finite = [values[np.isfinite(values)] for values in pair]
        if all(2 * known.size > values.size for known, values in zip(finite, pair, strict=True)):
            largest = float(np.concatenate(finite).max())
            groups += winsorize_groups([np.where(np.isfinite(values), values, largest) for values in pair])
    if not groups:
        return None
    estimate = float(np.mean([head.mean() - base.mean() for head, base in zip(groups[::2], groups[1::2], strict=True)]))
    parts = [(float(group.var(ddof=1)) / group.size, group.size - 1) for group in groups if group.size > 1]
    if not parts:
        return MeanShift(estimate, math.inf, 1.0)
    # Groups with a single value are taken to vary as the others do.
    variance = sum(part for part, _ in parts) * len(groups) / len(parts)
    uncertainty = sum(part**2 / degrees for part, degrees in parts) * (len(groups) / len(parts)) ** 2
    degrees = variance**2 / uncertainty if uncertainty else float(sum(degrees for _, degrees in parts))
    return MeanShift(estimate, 2 * math.sqrt(variance) / len(groups), degrees)


@dataclass(frozen=True)
class Matching:
    """Matching of two samples by question, with the share of variation that questions explain.

    The level of a question is a random effect: its best predictor is the mean of its ``k`` values, shrunk by
    ``k r / (1 + (k - 1) r)``. With ``r`` near 1, values are compared only with their partners; with ``r`` = 0, with all
    others, as if unmatched.

    Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, section 7.2 (best linear
    unbiased prediction).
    """

    questions: tuple[Indices, Indices]  # number of the question of each value of either sample; -1 for none
    correlation: float = 0.0  # ``r``, the correlation of two values of different samples with the same question

    def remove_levels(self, values: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
        """Both samples without the level of each question; a shift between them is kept."""
        if self.correlation == 0.0:
            return values
        centered = [value - _median(value[np.isfinite(value)]) for value in values]
        sums = sum(self._of_questions(side, value, centered[side]) for side, value in enumerate(values))
        sizes = self._sizes(values)
        levels = self._shares(sizes) * sums / np.maximum(sizes, 1)
        head, base = (
            np.where((asked >= 0) & np.isfinite(value), value - levels[asked], value)
            for asked, value in zip(self.questions, values, strict=True)
        )
        return head, base

    def inflation(self, values: tuple[Numbers, Numbers]) -> float:
        """Ratio of the variance around true levels to the variance of the residuals."""
        shares = self._shares(self._sizes(values))
        return 1 / (1 - float(np.sum(2 * shares - shares**2)) / max(1, sum(map(len, values))))

    def spent(self, values: tuple[Numbers, Numbers], *, levels: int) -> float:
        """Degrees of freedom used by `remove_levels`, given `levels` removed before."""
        sizes = self._sizes(values)
        shares = self._shares(sizes[sizes > 0])
        taken = float(np.mean(2 * shares - shares**2)) if shares.size else 0.0
        return taken * max(0, shares.size - 1 - levels)

    def means(self, values: tuple[Numbers, Numbers]) -> tuple[Indices, Numbers, Numbers]:
        """The questions of both samples, and each sample's mean of finite values per question."""
        common = np.flatnonzero(self._sizes(values))
        head, base = (
            self._of_questions(side, value, value)[common] / self._of_questions(side, value)[common]
            for side, value in enumerate(values)
        )
        return common, head, base

    def _sizes(self, values: tuple[Numbers, Numbers]) -> Numbers:
        """Number of finite values of each question that both samples have, 0 for others."""
        head, base = (self._of_questions(side, value) for side, value in enumerate(values))
        return np.where((head > 0) & (base > 0), head + base, 0.0)

    def _of_questions(self, side: int, values: Numbers, weights: Numbers | None = None) -> Numbers:
        """Sum of weights over a sample's finite values of each question; by default their number."""
        asked = self.questions[side]
        use = (asked >= 0) & np.isfinite(values)
        count = 1 + max((int(each.max()) for each in self.questions if each.size), default=-1)
        return np.bincount(asked[use], None if weights is None else weights[use], count).astype(np.float64)

    def _shares(self, sizes: Numbers) -> Numbers:
        return sizes * self.correlation / (1 + (np.maximum(sizes, 1) - 1) * self.correlation)


def number_questions(questions: tuple[Words, Words], groups: tuple[Groups, Groups]) -> Matching:
    """Numbers the questions of two samples; equal questions of different groups are distinct."""
    asked, of = np.concatenate(questions), np.concatenate([each.astype(np.str_) for each in groups])
    _, numbers = np.unique(np.char.add(np.char.add(asked, "\n"), of), return_inverse=True)
    numbers = np.where(asked == "", -1, numbers)
    return Matching((numbers[: len(questions[0])], numbers[len(questions[0]) :]))


def match(values: tuple[Numbers, Numbers], questions: tuple[Words, Words], groups: tuple[Groups, Groups]) -> Matching:
    """Matches values by question, as far as questions explain their variation.

    The correlation is estimated between the samples, not within one: if versions answer differently (another plan for
    the same seed), it vanishes and nothing is matched. One standard error is subtracted (on Fisher's scale), so that
    chance agreement of a few questions has no effect.

    Args:
        questions: question of each value; an empty one matches nothing.
        groups: groups within which values are compared, such as pairs of neighbouring starts; common effects of a
            group are no property of a question.
    """
    nothing = number_questions(questions, groups)
    head_drawn, base_drawn = draw_in_extremes(
        [value - _median(value[np.isfinite(value)]) for value in values], reach=_EXTREME
    )
    common, head, base = nothing.means((head_drawn, base_drawn))
    asked, of = np.concatenate(nothing.questions), np.concatenate([each.astype(np.str_) for each in groups])
    _, group = np.unique([of[np.flatnonzero(asked == question)[0]] for question in common], return_inverse=True)
    degrees = common.size - np.unique(group).size
    if degrees < _FEWEST_DEGREES:
        return nothing
    head, base = (means - (np.bincount(group, means) / np.bincount(group))[group] for means in (head, base))
    scale = float(np.sqrt((head @ head) * (base @ base)))
    if scale < _LEAST_VARIATION:
        return nothing
    seen = float(np.clip(head @ base / scale, -_SURE, _SURE))
    surely = float(np.tanh(np.arctanh(seen) - 1 / np.sqrt(degrees - 2)))
    return Matching(nothing.questions, max(0.0, surely))


def remove_covariate(
    values: tuple[Numbers, Numbers], covariate: tuple[Numbers, Numbers]
) -> tuple[tuple[Numbers, Numbers], float]:
    """Both samples with a linear influence removed, and the explained share of variance.

    The slope is fitted within the samples (least squares), so that a shift between them is no influence. Values that
    are censored or have an unknown covariate are excluded from the fit and not changed. Nothing is removed if a sample
    has one to four other values.
    """
    known = [np.isfinite(value) & np.isfinite(cause) for value, cause in zip(values, covariate, strict=True)]
    if any(0 < np.count_nonzero(use) < _FEWEST for use in known):
        return values, 0.0
    centered = [
        (value[use] - value[use].mean(), cause[use] - cause[use].mean())
        for value, cause, use in zip(values, covariate, known, strict=True)
        if use.any()
    ]
    effect = sum(float(y @ x) for y, x in centered)
    variation = sum(float(x @ x) for _, x in centered)
    total = sum(float(y @ y) for y, _ in centered)
    if variation < _LEAST_VARIATION or total < _LEAST_VARIATION:
        return values, 0.0
    slope = effect / variation
    middle = float(np.mean(np.concatenate([cause[use] for cause, use in zip(covariate, known, strict=True)])))
    adjusted = [
        np.where(use, value - slope * (np.where(use, cause, middle) - middle), value)
        for value, cause, use in zip(values, covariate, known, strict=True)
    ]
    return (adjusted[0], adjusted[1]), slope * effect / total


def _median(values: Numbers) -> float:
    """The lower median of the values that are not NaN; also works if the middle two are infinite."""
    ordered = np.sort(values[~np.isnan(values)])
    return float(ordered[(len(ordered) - 1) // 2]) if len(ordered) else np.nan


def remove_cause(values: Numbers, cause: Numbers, groups: Indices, *, within: bool = False) -> Numbers:
    """The values adjusted for a linear influence, at the mean of the cause.

    The slope is fitted within the groups, so that differences between groups do not affect it. Values that are infinite
    or have an unknown cause are excluded from the fit and not changed.

    Args:
        groups: group of each value, from 0.
        within: True to keep the influence between groups.
    """
    known = np.isfinite(values) & np.isfinite(cause)
    if not known.any():
        return values
    counts = np.maximum(np.bincount(groups[known]), 1)
    y, x = (
        each[known] - (np.bincount(groups[known], weights=each[known]) / counts)[groups[known]]
        for each in (values, cause)
    )
    variation = float(x @ x)
    if variation < _LEAST_VARIATION:
        return values
    slope = float(x @ y) / variation
    adjusted = values.copy()
    adjusted[known] -= slope * (x if within else cause[known] - cause[known].mean())
    return adjusted


def remove_levels(values: Numbers, strata: Indices) -> Numbers:
    """The values with the median of their stratum replaced by the median of all values."""
    finite = np.isfinite(values)
    if not finite.any() or np.all(strata == strata[0]):
        return values
    adjusted = values.copy()
    middle = float(np.median(values[finite]))
    for stratum in np.unique(strata):
        members = strata == stratum
        if (members & finite).any():
            adjusted[members] += middle - float(np.median(values[members & finite]))
    return adjusted
