"""Fits a rising probability by a logistic curve.

The likelihood is penalised by Jeffreys' prior, so that a fit exists even if outcomes change from never to always
between two levels.

Reference: D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika 80, 1993.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_MIDDLES: Final = 801
_SLOPES: Final = 40
_SHALLOWEST: Final = 1.0
_STEEPEST: Final = 400.0
_SMALLEST: Final = 1e-300


@dataclass(frozen=True)
class LogisticCurve:
    """``P(x) = 1 / (1 + exp(-slope (x - middle)))``."""

    middle: float
    slope: float

    def __call__(self, place: float) -> float:
        """The probability at a place."""
        return 1 / (1 + math.exp(-min(700.0, max(-700.0, self.slope * (place - self.middle)))))

    def place_of(self, probability: float) -> float:
        """The place at which the curve reaches a probability."""
        return self.middle + math.log(probability / (1 - probability)) / self.slope


def fit_logistic(places: Sequence[float], hits: Sequence[int], trials: Sequence[int]) -> LogisticCurve:
    """The rising curve with the largest penalised likelihood; places lie between 0 and 1."""
    x, k, n = (np.asarray(each, dtype=np.float64) for each in (places, hits, trials))
    middles = np.linspace(0, 1, _MIDDLES)[:, None, None]
    slopes = np.geomspace(_SHALLOWEST, _STEEPEST, _SLOPES)[None, :, None]
    logits = slopes * (x - middles)
    log_hit, log_missed = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    weights = n * np.exp(log_hit + log_missed)
    information = weights.sum(-1) * (weights * x**2).sum(-1) - (weights * x).sum(-1) ** 2
    penalty = np.log(np.maximum(information, _SMALLEST)) / 2
    likelihood = (k * log_hit + (n - k) * log_missed).sum(-1) + penalty
    middle, slope = np.unravel_index(int(np.argmax(likelihood)), likelihood.shape)
    return LogisticCurve(float(middles[middle, 0, 0]), float(slopes[0, slope, 0]))
