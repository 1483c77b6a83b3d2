"""Confidence interval of a probability from a count of successes."""

from __future__ import annotations

from scipy.special import betaincinv


def share_interval(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability (Clopper and Pearson); 0 to 1 without trials.

    Reference: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in
    the case of the binomial", Biometrika 26(4), 1934.
    """
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high
