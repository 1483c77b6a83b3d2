"""Sequential test for the side of a boundary on which a probability lies; decides as early as the data allow.

The evidence against "it is at most the boundary" is the likelihood ratio of the data, mixed over all
probabilities above the boundary by Jeffreys' prior truncated there (and the mirror image for the other side). If
the hypothesis is true, the expectation of this ratio is at most 1 after any number of trials. It therefore ever
reaches ``1 / error`` with a probability of at most `error` (Ville), so the data may be tested after each trial
and sampling may stop at any time.

Trials of one stack start are more alike than trials of several starts. A likelihood ratio raised to a power
below 1 (`stats.overdispersion`) keeps this property if starts differ.

Reference: H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical
Statistics 41, 1970; S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Annals of Statistics 49, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

from scipy.special import betainc, betaincc, betaln

_JEFFREYS: Final = 0.5
_HALVINGS: Final = 50
_MOST_TRIALS: Final = 100_000


class Side(StrEnum):
    """Side of a boundary."""

    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True)
class BoundaryTest:
    """Decides whether a probability lies above or below a boundary.

    Attributes:
        boundary: between 0 and 1, both excluded.
        error: probability of deciding for the wrong side, however often the data are tested.
        exponent: power to which likelihood ratios are raised; 1 for independent trials.
    """

    boundary: float
    error: float
    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.boundary < 1 and 0 < self.error < 1 and 0 < self.exponent <= 1):
            raise ValueError(f"no test: boundary {self.boundary}, error {self.error}, exponent {self.exponent}")

    def decide(self, hits: int, trials: int, *, misses: int | None = None) -> Side | None:
        """The side that the data show; ``None`` while inconclusive.

        Args:
            misses: trials that count for the lower side, if they are not all that are no hits; while the data are
                evidence for both sides, they show neither.
        """
        return _decide(self, hits, hits if misses is None else trials - misses, trials)

    def log_evidence(self, hits: int, trials: int, side: Side) -> float:
        """Logarithm of the evidence that the probability lies on `side`; negative values are evidence against it."""
        hit, missed = self.exponent * hits, self.exponent * (trials - hits)
        posterior = _log_part(_JEFFREYS + hit, _JEFFREYS + missed, self.boundary, side)
        prior = _log_part(_JEFFREYS, _JEFFREYS, self.boundary, side)
        return posterior - prior - hit * math.log(self.boundary) - missed * math.log1p(-self.boundary)

    def interval(self, hits: int, trials: int) -> tuple[float, float]:
        """Interval of the probability that holds at all numbers of trials together, with error probability `error`."""
        if not trials:
            return 0.0, 1.0
        middle = hits / trials
        low = _edge(0.0, middle, lambda value: self._is_excluded(value, hits, trials)) if hits else 0.0
        high = _edge(1.0, middle, lambda value: self._is_excluded(value, hits, trials)) if hits < trials else 1.0
        return low, high

    def _is_excluded(self, value: float, hits: int, trials: int) -> bool:
        if not 0 < value < 1:
            return True
        hit, missed = self.exponent * hits, self.exponent * (trials - hits)
        mixed = float(betaln(_JEFFREYS + hit, _JEFFREYS + missed) - betaln(_JEFFREYS, _JEFFREYS))
        return mixed - hit * math.log(value) - missed * math.log1p(-value) >= -math.log(self.error)

    @cached_property
    def fewest_trials(self) -> int:
        """Trials required to decide if the probability is 0 or 1, whichever takes more."""
        return max(self._fewest(side) for side in Side)

    def _fewest(self, side: Side) -> int:
        for trials in range(1, _MOST_TRIALS):
            if self.decide(trials if side is Side.ABOVE else 0, trials) is side:
                return trials
        return _MOST_TRIALS


@lru_cache(maxsize=4096)
def _decide(test: BoundaryTest, hits: int, others: int, trials: int) -> Side | None:
    below, above = test.log_evidence(others, trials, Side.BELOW), test.log_evidence(hits, trials, Side.ABOVE)
    if min(below, above) > 0:
        return None
    shown = max(below, above) >= -math.log(test.error)
    return (Side.BELOW if below > above else Side.ABOVE) if shown else None


def _log_part(hit: float, missed: float, boundary: float, side: Side) -> float:
    """Logarithm of the integral of ``p^(hit-1) (1-p)^(missed-1)`` over one side of the boundary."""
    share = float(betainc(hit, missed, boundary) if side is Side.BELOW else betaincc(hit, missed, boundary))
    return float(betaln(hit, missed)) + math.log(share) if share > 0 else -math.inf


def _edge(excluded: float, included: float, is_excluded: Callable[[float], bool]) -> float:
    """Bisects for the edge of the excluded range, between an excluded and an included value."""
    for _ in range(_HALVINGS):
        middle = (excluded + included) / 2
        excluded, included = (middle, included) if is_excluded(middle) else (excluded, middle)
    return excluded
