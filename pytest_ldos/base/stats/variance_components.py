"""Splits the variation of a measurement into components between trials, between starts and between runs.

Nested analysis of variance with unequal numbers. Negative components count as zero;
their degrees of freedom remain those of the mean squares they were computed from.

Reference: S. R. Searle, G. Casella, C. E. McCulloch, "Variance Components", Wiley 1992, chapter 3;
F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
Biometrics Bulletin 2(6), 1946.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from pytest_ldos.base.stats.robust_scale import winsorize_groups

Sample = npt.NDArray[np.float64]
Runs = Sequence[Sequence[Sample]]
"""Values by run and, within a run, by start, both in chronological order."""


_CONFIDENCE: Final = 0.95


@dataclass(frozen=True)
class Components:
    """Standard deviations with their degrees of freedom.

    Attributes:
        trial_sd: between values of one start.
        start_sd: between starts of one run, beyond what their values explain.
        start_df: degrees of freedom of `start_sd`.
        run_sd: between starts of different runs, beyond what their values explain; never less than
            `start_sd`, because different runs are different starts, too.
        run_df: degrees of freedom of what runs add to `start_sd`; 0 if that is not known, as from one run.
        largest_run_sd: upper bound of `run_sd` with 95 % confidence; of one run, of `start_sd`.
    """

    trial_sd: float
    start_sd: float
    start_df: float
    run_sd: float
    run_df: float
    largest_run_sd: float


@dataclass(frozen=True)
class _MeanSquares:
    """Mean squares of nested groups: runs, starts in runs, values in starts."""

    runs: float
    starts: float
    values: float
    run_df: int
    start_df: int
    start_weight: float
    start_weight_in_runs: float
    run_weight: float


def estimate_components(runs: Runs) -> Components | None:
    """The components of finite values; ``None`` for fewer than two starts, or if no start has two values.

    Single values that lie far from their start are drawn in before; see `robust_scale`.
    """
    kept = _without_outliers([[start for start in run if start.size] for run in runs])
    starts = [start for run in kept for start in run]
    if len(starts) < 2 or sum(start.size - 1 for start in starts) < 1:
        return None
    squares = _mean_squares(kept)
    if squares.start_df == 0:  # each start is a run of its own
        squares = _mean_squares([starts])
    start = _start_level(squares)
    run = _run_level(squares) if squares.run_df else start
    return Components(
        trial_sd=math.sqrt(squares.values),
        start_sd=math.sqrt(start.variance),
        start_df=start.degrees,
        run_sd=math.sqrt(max(run.variance, start.variance)),
        run_df=float(squares.run_df),
        largest_run_sd=math.sqrt(max(run.largest, start.largest)),
    )


@dataclass(frozen=True)
class _Level:
    """Variation between the means of some groups.

    Attributes:
        observed: variance of the means.
        by_values: the part of it explained by the variation of the values within groups.
    """

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


def _start_level(squares: _MeanSquares) -> _Level:
    weight = squares.start_weight
    return _Level(squares.starts / weight, squares.values / weight, float(squares.start_df))


def _run_level(squares: _MeanSquares) -> _Level:
    """Variation between starts of different runs.

    What runs add is no less than the standard error of that estimate: a few runs cannot tell it from nothing.
    """
    from_runs = 1 / squares.run_weight
    from_starts = (1 - squares.start_weight_in_runs * from_runs) / squares.start_weight
    by_starts = squares.starts * squares.start_weight_in_runs / squares.start_weight
    least = by_starts * (1 + math.sqrt(2 / squares.run_df))
    parts = (from_runs * max(squares.runs, least), from_starts * squares.starts)
    uncertainty = parts[0] ** 2 / squares.run_df + parts[1] ** 2 / squares.start_df
    degrees = sum(parts) ** 2 / uncertainty if uncertainty > 0 else float(squares.start_df)
    return _Level(sum(parts), (from_runs + from_starts) * squares.values, degrees)


def _without_outliers(runs: Runs) -> list[list[Sample]]:
    """The runs that have starts, with outliers drawn in."""
    drawn = iter(winsorize_groups([start for run in runs for start in run]))
    return [[next(drawn) for _ in run] for run in runs if run]


def _mean_squares(runs: Runs) -> _MeanSquares:
    starts = [start for run in runs for start in run]
    sizes = [np.array([start.size for start in run], dtype=np.float64) for run in runs]
    of_runs = np.array([size.sum() for size in sizes])
    total = float(of_runs.sum())
    means = [np.array([start.mean() for start in run]) for run in runs]
    run_means = np.array([size @ mean / size.sum() for size, mean in zip(sizes, means, strict=True)])
    within = sum(float(np.sum((start - start.mean()) ** 2)) for start in starts)
    between = sum(
        float(size @ (mean - middle) ** 2) for size, mean, middle in zip(sizes, means, run_means, strict=True)
    )
    apart = float(of_runs @ (run_means - of_runs @ run_means / total) ** 2)
    run_df, start_df = len(runs) - 1, len(starts) - len(runs)
    nested = sum(float(size @ size / size.sum()) for size in sizes)
    return _MeanSquares(
        runs=apart / run_df if run_df else 0.0,
        starts=between / start_df if start_df else 0.0,
        values=within / max(1, int(total) - len(starts)),
        run_df=run_df,
        start_df=start_df,
        start_weight=(total - nested) / start_df if start_df else 1.0,
        start_weight_in_runs=(nested - sum(float(size @ size) for size in sizes) / total) / run_df if run_df else 0.0,
        run_weight=(total - float(of_runs @ of_runs) / total) / run_df if run_df else 1.0,
    )
