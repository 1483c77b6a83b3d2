"""Upper bound of power: the best possible test at the same error budget.

For a shift of logarithms whose estimate has a known standard deviation the one-sided z-test is uniformly most powerful
(Neyman and Pearson). The deviation is taken from runs without a shift, for the best of three estimates: as if everything
about the noise were known. Failures are bounded by Boschloo's exact test, without any looks on the way.
"""

from __future__ import annotations

import math
import warnings
from typing import Final

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from benchmarks.scorecard.sample import METRICS, SCENARIOS, Batch, Numbers
from pytest_ldos.measure.trial.record import Look

RUN_BUDGET: Final = 0.01
"""Red runs without any change, at most."""

COMPARISON_BUDGET: Final = RUN_BUDGET / len(METRICS) / len(SCENARIOS)


def power_of_shift(batch: Batch, metric: str, factor: float) -> float:
    """Probability that the best test finds the factor in these runs, none of which has it yet."""
    return _power(batch, metric, factor, batch.looks[-1])


def fewest_head_trials(batch: Batch, metric: str, factor: float) -> int:
    """The first look at which the best test finds the factor in half of the runs, even if it looked only there."""
    looks = (look for look in batch.looks if _power(batch, metric, factor, look) >= 0.5)
    return next(looks, batch.looks[-1]).head


def _power(batch: Batch, metric: str, factor: float, look: Look) -> float:
    base, head = batch.base.passed(metric)[:, : look.base], batch.head.passed(metric)[:, : look.head]
    logs = np.log(base), np.log(head)
    differences = [estimate(logs[1]) - estimate(logs[0]) for estimate in (_mean, _median, _trimmed_mean)]
    deviation = min(float(np.nanstd(each)) for each in differences)
    if deviation == 0.0:
        return 1.0
    return float(ndtr(math.log(factor) / deviation + ndtri(COMPARISON_BUDGET)))


def power_of_failures(*, base_trials: int, head_trials: int, rate: float) -> float:
    """Probability that the best exact test finds this rate of failures where there were none."""
    budget = RUN_BUDGET / len(SCENARIOS)
    for failures in range(1, head_trials + 1):
        table = [[failures, 0], [head_trials - failures, base_trials]]
        if stats.boschloo_exact(table, alternative="greater").pvalue <= budget:
            return float(stats.binom.sf(failures - 1, head_trials, rate))
    return 0.0


def _mean(values: Numbers) -> Numbers:
    return np.asarray(np.nanmean(values, axis=1))


def _median(values: Numbers) -> Numbers:
    return np.asarray(np.nanmedian(values, axis=1))


def _trimmed_mean(values: Numbers) -> Numbers:
    """Without the fifth of the values farthest from the median."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        distance = np.abs(values - np.nanmedian(values, axis=1, keepdims=True))
        limit = np.nanquantile(distance, 0.8, axis=1, keepdims=True)
        return np.asarray(np.nanmean(np.where(distance <= limit, values, np.nan), axis=1))
