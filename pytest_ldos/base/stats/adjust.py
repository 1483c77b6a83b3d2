"""Removes known causes of variation from two samples before they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.stats.robust_scale import draw_in_extremes

Numbers = npt.NDArray[np.float64]
Words = npt.NDArray[np.str_]
Groups = Words | npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LEAST_VARIATION = 1e-12

_FEWEST = 5
"""Fewest values of a sample for a slope: through two or three it can be anything."""

_FEWEST_DEGREES: Final = 4
"""Fewest degrees of freedom of a correlation."""

_EXTREME: Final = 3.0
"""Scales beyond which a value is drawn in before it takes part in a correlation."""

_SURE: Final = 0.9999
"""Largest correlation, for which Fisher's transformation is finite."""


def in_common_strata(strata: tuple[Groups, Groups]) -> tuple[Flags, Flags]:
    """Flags of the values of each sample whose stratum occurs in both samples: only those can be compared."""
    common = np.intersect1d(*strata)
    return np.isin(strata[0], common), np.isin(strata[1], common)


def remove_strata(values: tuple[Numbers, Numbers], strata: tuple[Groups, Groups]) -> tuple[Numbers, Numbers]:
    """Both samples with the level of each stratum removed.

    A stratum's level is the mean of both samples' medians in it, so that a shift between
    the samples is kept. Strata that only one sample has are not changed.
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
    """Values of two samples that answer the same question, and how much of their variation the question explains.

    The level of a question is a random effect: its best predictor is the mean of its ``k`` values, drawn in by
    ``k r / (1 + (k - 1) r)``. Where ``r`` is near 1 values are compared with their partners alone, where it is 0 with
    all others, as if nothing matched.

    Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", 1992, section 7.2 (best linear
    unbiased prediction).

    Attributes:
        questions: of each value of either sample; empty where a value has no partner.
        correlation: ``r``, of two values of different samples that answer the same question.
    """

    questions: tuple[Words, Words]
    correlation: float = 0.0

    def remove_levels(self, values: tuple[Numbers, Numbers]) -> tuple[Numbers, Numbers]:
        """Both samples with the level of each question removed; a shift between them is kept."""
        adjusted = values[0].copy(), values[1].copy()
        if self.correlation == 0.0:
            return adjusted
        centered = [value - _median(value[np.isfinite(value)]) for value in values]
        for question in self.common(values):
            chosen = [
                (asked == question) & np.isfinite(value) for asked, value in zip(self.questions, values, strict=True)
            ]
            found = np.concatenate([value[use] for value, use in zip(centered, chosen, strict=True)])
            level = self._share(found.size) * float(found.mean())
            for value, use in zip(adjusted, chosen, strict=True):
                value[use] -= level
        return adjusted

    def inflation(self, values: tuple[Numbers, Numbers]) -> float:
        """Factor on the variance of what is left, without levels, to that of the values around theirs."""
        taken = sum(2 * share - share**2 for share in map(self._share, self._sizes(values)))
        return 1 / (1 - taken / max(1, sum(map(len, values))))

    def spent(self, values: tuple[Numbers, Numbers], *, levels: int) -> float:
        """Degrees of freedom that `remove_levels` takes from samples of which `levels` were taken before."""
        shares = [self._share(size) for size in self._sizes(values)]
        taken = float(np.mean([2 * share - share**2 for share in shares])) if shares else 0.0
        return taken * max(0, len(shares) - 1 - levels)

    def _sizes(self, values: tuple[Numbers, Numbers]) -> list[int]:
        """Number of values that answer each question."""
        answered = np.concatenate([asked[np.isfinite(value)] for asked, value in self._both(values)])
        return [int(np.count_nonzero(answered == question)) for question in self.common(values)]

    def common(self, values: tuple[Numbers, Numbers]) -> Words:
        """Questions that both samples answer with a finite value."""
        head, base = (asked[np.isfinite(value)] for asked, value in self._both(values))
        common = np.intersect1d(head, base)
        asked: Words = common[common != ""]
        return asked

    def _both(self, values: tuple[Numbers, Numbers]) -> zip[tuple[Words, Numbers]]:
        return zip(self.questions, values, strict=True)

    def _share(self, size: int) -> float:
        return size * self.correlation / (1 + (size - 1) * self.correlation)


def match(values: tuple[Numbers, Numbers], questions: tuple[Words, Words], groups: tuple[Groups, Groups]) -> Matching:
    """Matches values by the question that they answer, as far as questions explain their variation.

    The correlation is taken between the samples, never within one: where a version answers differently, as with another
    plan for the same seed, it is lost and nothing is matched. One standard deviation less is used, so that a few
    questions that agree by chance are not taken for knowledge (on Fisher's scale).

    Args:
        questions: of each value; an empty one matches nothing.
        groups: within which values are compared, as pairs of neighbouring starts: what they have in common
            is no property of a question.
    """
    cells = tuple(
        np.where(asked == "", "", np.char.add(np.char.add(asked, "\n"), of.astype(np.str_)))
        for asked, of in zip(questions, groups, strict=True)
    )
    unknown = Matching((cells[0], cells[1]))
    common = unknown.common(values)
    drawn = draw_in_extremes([value - _median(value[np.isfinite(value)]) for value in values], reach=_EXTREME)
    head, base = (
        np.array([value[(asked == question) & np.isfinite(value)].mean() for question in common])
        for asked, value in zip(cells, drawn, strict=True)
    )
    of_cell = np.array([question.partition("\n")[2] for question in common])
    degrees = common.size - np.unique(of_cell).size
    if degrees < _FEWEST_DEGREES:
        return unknown
    for group in np.unique(of_cell):
        for means in (head, base):
            means[of_cell == group] -= means[of_cell == group].mean()
    scale = float(np.sqrt((head @ head) * (base @ base)))
    if scale < _LEAST_VARIATION:
        return unknown
    seen = float(np.clip(head @ base / scale, -_SURE, _SURE))
    surely = float(np.tanh(np.arctanh(seen) - 1 / np.sqrt(degrees - 2)))
    return Matching((cells[0], cells[1]), max(0.0, surely))


def remove_covariate(
    values: tuple[Numbers, Numbers], covariate: tuple[Numbers, Numbers]
) -> tuple[tuple[Numbers, Numbers], float]:
    """Both samples with a linear influence removed, and the share of variance it explained.

    The slope is fitted within the samples (least squares), so that a shift between them
    is not mistaken for an influence. Censored values, and values whose covariate is
    unknown, do not count towards the fit and are not changed. Nothing is removed where a sample
    has one to four others.
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
