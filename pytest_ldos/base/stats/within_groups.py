"""Removes known causes of variation from many groups of values and keeps the differences between groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_LEAST_VARIATION = 1e-12


def remove_cause(values: Numbers, cause: Numbers, groups: Indices, *, within: bool = False) -> Numbers:
    """The values adjusted for a linear influence, to the mean of the cause.

    The slope is fitted within the groups, so that differences between groups do not affect it. Infinite values, and
    values whose cause is unknown, do not count towards the fit and are not changed.

    Args:
        groups: number of the group of each value, from 0.
        within: remove only the influence within the groups; its influence between groups is kept.
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
