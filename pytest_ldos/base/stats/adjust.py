"""Removes known causes of variation from two samples before they are compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Groups = npt.NDArray[np.str_] | npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_LEAST_VARIATION = 1e-12

_FEWEST = 5
"""Fewest values of a sample for a slope: through two or three it can be anything."""


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
