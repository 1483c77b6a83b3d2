"""Exact tests on counts of successes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, stdtr


def failure_rise_p(*, head_failures: int, head_trials: int, base_failures: int, base_trials: int) -> float:
    """p-value of a rise of failures: Boschloo's exact test, one-sided.

    Boschloo's test is uniformly more powerful than Fisher's (R. D. Boschloo, "Raised
    conditional level of significance for the 2×2-table", Statistica Neerlandica 24, 1970).
    """
    if head_failures == 0:
        return 1.0
    from scipy import stats  # noqa: PLC0415 - takes a second to import, and is only needed after failures

    table = [[head_failures, base_failures], [head_trials - head_failures, base_trials - base_failures]]
    return float(stats.boschloo_exact(table, alternative="greater").pvalue)


def shortfall_p(*, successes: int, trials: int, expected_rate: float) -> float:
    """Probability of at most this many successes at the expected rate: exact binomial, one-sided."""
    return float(bdtr(successes, trials, expected_rate))


def mean_shortfall_p(values: Sequence[float], expected: float) -> float:
    """Probability of a mean at most this large if the expected one is true: Student's t, one-sided.

    Returns 0 for equal values below the expected mean. A single value does not show any variation, so it gives 1.
    """
    below = expected - float(np.mean(values)) if values else 0.0
    if below <= 0 or len(values) < 2:
        return 1.0
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return 0.0 if error == 0 else float(stdtr(len(values) - 1, -below / error))
