"""Robust estimates of spread, and scores of dispersion.

The scale is the median distance between two values of one group (Shamos' estimator). It needs no centre, so that groups
of two values suffice; its breakdown point is 29 %. For normal values in one group its variance is 1.16 times that of
the standard deviation.

Values beyond three scales are Winsorized before variances are estimated. Only 0.3 % of normal values are changed: the
estimate has an efficiency of 0.98, and keeps its degrees of freedom.

References: M. I. Shamos, "Geometry and statistics: problems at the interface", 1976; P. J. Rousseeuw, C. Croux,
"Alternatives to the median absolute deviation", Journal of the American Statistical Association 88, 1993;
J. W. Tukey, D. H. McLaughlin, "Less vulnerable confidence and significance procedures for location based on a single
sample: trimming/Winsorization 1", Sankhya A 25, 1963.

Around own medians, a shift alone changes no score. Permutations of scores are exact only around the common median: if
half of one version's starts are slow by chance, its median is between both kinds, and all its values seem distant.

Klotz' scores (squared normal scores of the ranks of distances) have the power of the variance ratio for normal values,
and outliers count only by rank. The tail's score is 1 for a fixed number of the largest values.

Reference: J. Klotz, "Nonparametric tests for scale", Annals of Mathematical Statistics 33, 1962.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

Numbers = npt.NDArray[np.float64]

_REACH: Final = 3.0
"""Number of scales from the centre at which values are Winsorized."""

_UPPER: Final = 0.75
"""Quantile of the distances between levels: insensitive to one level in ten, but sensitive to two kinds of starts."""

_FEWEST_LEVELS: Final = 9
"""Fewest levels among which one can be an outlier: its distances are then less than a quarter of all, in one or two
samples."""


def group_scale(groups: Sequence[Numbers]) -> float:
    """Standard deviation of normal values within groups, from the median distance; 0 if no group has two values."""
    return _scale(np.concatenate([_distances(group) for group in groups]) if groups else np.empty(0), 0.5)


def winsorize_groups(groups: Sequence[Numbers]) -> list[Numbers]:
    """Winsorizes values far from the centre of their group.

    The centre is the median of the group's values and the overall median: of two distant values, the one nearer to all
    others is kept. A group that is distant as a whole is not changed.
    """
    scale = group_scale(groups)
    if scale == 0.0:
        return list(groups)
    middle = float(np.median(np.concatenate(groups)))
    return [_drawn_in(group, _centre(group, middle), scale) for group in groups]


def winsorize_levels(levels: Numbers) -> Numbers:
    """Winsorizes single levels far from all others; levels of a few groups are not changed."""
    if levels.size < _FEWEST_LEVELS:
        return levels
    scale = _scale(_distances(levels), _UPPER)
    return _drawn_in(levels, float(np.median(levels)), scale) if scale else levels


def draw_in_extremes(samples: Sequence[Numbers], *, reach: float) -> list[Numbers]:
    """Winsorizes values beyond `reach` scales from their sample's centre; small samples are not changed.

    For the interval of a shift, which keeps its error probability but is otherwise bounded by extreme values if that is
    small. Not for variances, because a short reach also changes normal samples. Infinite values are ignored and not
    changed.
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


def _centre(group: Numbers, middle: float) -> float:
    """Centre of a group."""
    return float(np.median([*group, middle] if group.size > 1 else group))


def _scale(distances: Numbers, quantile: float) -> float:
    """Standard deviation of the normal distribution whose distances have this quantile."""
    if distances.size == 0:
        return 0.0
    usual = math.sqrt(2) * float(ndtri((1 + quantile) / 2))
    return float(np.quantile(distances, quantile)) / usual


def _distances(group: Numbers) -> Numbers:
    first, second = np.triu_indices(group.size, 1)
    distances: Numbers = np.abs(group[first] - group[second])
    return distances


def _drawn_in(values: Numbers, centre: float, scale: float, reach: float = _REACH) -> Numbers:
    drawn: Numbers = np.clip(values, centre - reach * scale, centre + reach * scale)
    return drawn


Samples = tuple[Numbers, Numbers]

IN_TAIL: Final = 16
"""Number of values in the upper tail of the pooled samples. All of them are in the same one of two equal samples with a
probability below 1 in 65 536. In simulations with 5 to 10 % of the values three times as large, 14 to 20 are best for
any sample size."""


def around_medians(samples: Samples) -> Samples:
    """Subtracts each sample's own median."""
    return samples[0] - np.median(samples[0]), samples[1] - np.median(samples[1])


def around_common_median(samples: Samples) -> Samples:
    """Subtracts the median of the pooled samples."""
    middle = np.median(np.concatenate(samples))
    return samples[0] - middle, samples[1] - middle


def klotz_scores(centered: Samples) -> Samples:
    """Scores that increase with the distance from the median."""
    distances = np.abs(np.concatenate(centered))
    scores = ndtri(0.5 + _ranks(distances) / (2 * (distances.size + 1))) ** 2
    return _split(scores, centered)


def tail_threshold(centered: Samples) -> float:
    """Distance above the median at which the upper tail of the pooled samples begins."""
    return float(np.sort(np.concatenate(centered))[-1 - IN_TAIL :][0])


def tail_scores(centered: Samples) -> Samples:
    """1 for each value of the upper tail, 0 for others."""
    return _split(np.where(np.concatenate(centered) > tail_threshold(centered), 1.0, 0.0), centered)


def _ranks(values: Numbers) -> Numbers:
    """Ranks from 1; ties share their mean rank."""
    ordered = np.sort(values)
    ranks: Numbers = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2
    return ranks


def _split(scores: Numbers, like: Samples) -> Samples:
    return scores[: like[0].size], scores[like[0].size :]
