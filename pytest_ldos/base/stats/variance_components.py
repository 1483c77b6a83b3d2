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
from scipy.special import chdtri, fdtrc

Sample = npt.NDArray[np.float64]
Runs = Sequence[Sequence[Sample]]
"""Values by run and, within a run, by start, both in chronological order."""


_CONFIDENCE: Final = 0.95

_POOLED: Final = 0.25
"""p-value above which mean squares are pooled (T. A. Bancroft, "Analysis and inference for
incompletely specified models", Biometrics 20(3), 1964)."""


@dataclass(frozen=True)
class Components:
    """Standard deviations with their degrees of freedom.

    Attributes:
        trial_sd: between values of one start.
        start_sd: between starts of one run, beyond what their values explain.
        start_df: degrees of freedom of `start_sd`.
        run_sd: between starts of different runs, beyond what their values explain; never less than
            `start_sd`, because different runs are different starts, too.
        run_df: degrees of freedom of `run_sd`.
        largest_run_sd: upper bound of `run_sd` with 95 % confidence.
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

    A single run is split into an earlier and a later half that stand for two runs, so that drift shows.
    If runs differ by no more than starts do, the variance is estimated from all starts together.
    """
    kept = [[start for start in run if start.size] for run in runs]
    kept = [run for run in kept if run]
    starts = [start for run in kept for start in run]
    if len(starts) < 2 or sum(start.size - 1 for start in starts) < 1:
        return None
    start_part = _mean_squares(kept)
    if start_part.start_df == 0:  # each start is a run of its own
        start_part = _mean_squares([starts])
    start = _start_level(start_part)
    run = _run_level(kept if len(kept) > 1 else _halves(kept[0])) or _start_level(_mean_squares([starts]))
    return Components(
        trial_sd=math.sqrt(start_part.values),
        start_sd=math.sqrt(start.variance),
        start_df=start.degrees,
        run_sd=math.sqrt(max(run.variance, start.variance)),
        run_df=run.degrees,
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


def _run_level(runs: Runs) -> _Level | None:
    """Variation between starts of different runs; ``None`` if runs do not appear to differ by more than starts do."""
    squares = _mean_squares(runs)
    if squares.start_df == 0 or _may_be_chance(squares):
        return None
    from_runs = 1 / squares.run_weight
    from_starts = (1 - squares.start_weight_in_runs * from_runs) / squares.start_weight
    parts = (from_runs * squares.runs, from_starts * squares.starts)
    uncertainty = parts[0] ** 2 / squares.run_df + parts[1] ** 2 / squares.start_df
    degrees = sum(parts) ** 2 / uncertainty if uncertainty > 0 else float(squares.start_df)
    return _Level(sum(parts), (from_runs + from_starts) * squares.values, degrees)


def _may_be_chance(squares: _MeanSquares) -> bool:
    """True if the means of runs are no further apart than expected from the means of their starts.

    All starts are then pooled, because a few runs alone give a poor estimate of their variance.
    """
    if squares.starts == 0:
        return squares.runs == 0
    return float(fdtrc(squares.run_df, squares.start_df, squares.runs / squares.starts)) > _POOLED


def _halves(run: Sequence[Sample]) -> Runs:
    middle = len(run) // 2
    return [run[:middle], run[middle:]]


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
