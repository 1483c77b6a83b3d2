"""Removes known causes of variation from samples before a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.spread import draw_in_extremes

Numbers = npt.NDArray[np.float64]
Numbered = npt.NDArray[np.int64]
Words = npt.NDArray[np.str_]
Groups = Words | npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LEAST_VARIATION = 1e-12

_FEWEST = 5
"""Fewest values of a sample for a slope estimate."""

_FEWEST_DEGREES: Final = 4
"""Fewest degrees of freedom of a correlation."""

_EXTREME: Final = 3.0
"""Number of scales at which values are Winsorized for a correlation."""

_SURE: Final = 0.9999
"""Upper limit of a correlation, so that Fisher's transformation is finite."""


def in_common_strata(strata: tuple[Groups, Groups]) -> tuple[Flags, Flags]:
    """Flags of each sample's comparable values, whose stratum occurs in both samples."""
    common = np.intersect1d(*strata)
    return np.isin(strata[0], common), np.isin(strata[1], common)


def remove_strata(values: tuple[Numbers, Numbers], strata: tuple[Groups, Groups]) -> tuple[Numbers, Numbers]:
    """Both samples with the level of each stratum removed.

    A stratum's level is the mean of both samples' medians, so that a shift between the
    samples is kept. Strata of only one sample are not changed.
    """
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
class Matching:
    """Matching of two samples by question, with the share of variation that questions explain.

    The level of a question is a random effect: its best predictor is the mean of its ``k`` values, shrunk by
    ``k r / (1 + (k - 1) r)``. With ``r`` near 1, values are compared only with their partners; with ``r`` = 0, with all
    others, as if unmatched.

    Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, section 7.2 (best linear
    unbiased prediction).

    Attributes:
        questions: number of the question of each value of either sample; -1 for none.
        correlation: ``r``, the correlation of two values of different samples with the same question.
    """

    questions: tuple[Numbered, Numbered]
    correlation: float = 0.0

    def remove_levels(self, values: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
        """Both samples with the level of each question removed; a shift between them is kept."""
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

    def means(self, values: tuple[Numbers, Numbers]) -> tuple[npt.NDArray[np.int64], Numbers, Numbers]:
        """The questions of both samples, and each sample's mean of finite values per question."""
        common = np.flatnonzero(self._sizes(values))
        head, base = (
            self._of_questions(side, value, value)[common] / self._of_questions(side, value)[common]
            for side, value in enumerate(values)
        )
        return common, head, base

    def _sizes(self, values: tuple[Numbers, Numbers]) -> Numbers:
        """Number of finite values of each question, 0 if there are none."""
        head, base = (self._of_questions(side, value) for side, value in enumerate(values))
        return np.where((head > 0) & (base > 0), head + base, 0.0)

    def _of_questions(self, side: int, values: Numbers, weights: Numbers | None = None) -> Numbers:
        """Sum of weights over a sample's finite values of each question; by default their number."""
        asked = self.questions[side]
        use = (asked >= 0) & np.isfinite(values)
        count = 1 + max((int(each.max()) for each in self.questions if each.size), default=-1)
        found: Numbers = np.bincount(asked[use], None if weights is None else weights[use], count).astype(np.float64)
        return found

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

    The slope is fitted within the samples (least squares), so that a shift between them
    is no influence. Values that are censored or have an unknown covariate are excluded
    from the fit and not changed. Nothing is removed if a sample has one to four other
    values.
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


Indices = npt.NDArray[np.int64]


def remove_cause(values: Numbers, cause: Numbers, groups: Indices, *, within: bool = False) -> Numbers:
    """The values adjusted for a linear influence, at the mean of the cause.

    The slope is fitted within the groups, so that differences between groups do not affect it. Values that are infinite
    or have an unknown cause are excluded from the fit and not changed.

    Args:
        groups: number of the group of each value, from 0.
        within: True to keep the influence between groups.
    """
    known = np.isfinite(values) & np.isfinite(cause)
    if not known.any():
        return values
    y, x = (_centered(each[known], groups[known]) for each in (values, cause))
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


def _centered(values: Numbers, groups: Indices) -> Numbers:
    counts = np.bincount(groups)
    means = np.bincount(groups, weights=values) / np.maximum(counts, 1)
    centered: Numbers = values - means[groups]
    return centered
