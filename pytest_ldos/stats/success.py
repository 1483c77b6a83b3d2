"""Exact tests on counts of successes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, stdtr


def failure_rise_p(*, head_failures: int, head_trials: int, base_failures: int, base_trials: int) -> float:
    """Probability of such a rise of failures by chance: Boschloo's exact test, one-sided.

    Boschloo's test is uniformly more powerful than Fisher's (R. D. Boschloo, "Raised
    conditional level of significance for the 2×2-table", Statistica Neerlandica 24, 1970).
    """
    if head_failures == 0:
        return 1.0
    from scipy import stats  # noqa: PLC0415 - takes a second, and is only needed after failures

    table = [[head_failures, base_failures], [head_trials - head_failures, base_trials - base_failures]]
    return float(stats.boschloo_exact(table, alternative="greater").pvalue)


def shortfall_p(*, successes: int, trials: int, expected_rate: float) -> float:
    """Probability of so few successes if the expected rate held: exact binomial, one-sided."""
    return float(bdtr(successes, trials, expected_rate))


def mean_shortfall_p(values: Sequence[float], expected: float) -> float:
    """Probability of so small a mean if the expected one held: Student's t, one-sided.

    Values that are all equal leave no doubt; a single one shows nothing of how much they vary.
    """
    below = expected - float(np.mean(values)) if values else 0.0
    if below <= 0 or len(values) < 2:
        return 1.0
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return 0.0 if error == 0 else float(stdtr(len(values) - 1, -below / error))
