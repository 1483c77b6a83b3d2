"""Tests for a rise of failures: Boschloo's exact test with one or several looks.

Outcomes are ordered by Fisher's p-value, as in Boschloo's test. The critical value at each look
comes from the exact distribution of both counts, for every failure rate that both versions may
share, so that all looks together spend no more than allowed. Error probability that an early look
cannot spend, because few outcomes are possible, remains for later looks.

Reference: R. D. Boschloo, "Raised conditional level of significance for the 2×2-table when
testing the equality of two probabilities", Statistica Neerlandica 24, 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from pytest_ldos.base.stats.spending import Fractions, spend

_Numbers = npt.NDArray[np.float64]
_Flags = npt.NDArray[np.bool_]

_RATES: Final = np.linspace(0.002, 0.998, 250)
"""Grid of common failure rates; the error probability hardly differs between grid points."""

_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Counts:
    """Number of trials of each version so far."""

    head: int
    base: int


def failures_rose(
    *, head_failures: int, base_failures: int, looks: tuple[Counts, ...], fractions: Fractions, alpha: float
) -> bool:
    """True if the failures at the last look show that head fails more often (one-sided).

    Args:
        looks: numbers of trials at this look and at all earlier ones.
        fractions: information at each look over the most there can be.
        alpha: largest probability that any look rejects if both versions fail equally often.
    """
    now = looks[-1]
    if head_failures == 0 or now.base == 0:
        return False
    p_value = _fisher_p(now.head, now.base)[head_failures, base_failures]
    return bool(p_value <= _critical_p(looks, fractions, alpha))


@lru_cache(maxsize=64)
def _critical_p(looks: tuple[Counts, ...], fractions: Fractions, alpha: float) -> float:
    """The largest Fisher p-value at the last look that is rejected; negative if none is."""
    rejected = np.zeros(len(_RATES))
    undecided, before, critical = np.ones((len(_RATES), 1, 1)), Counts(0, 0), -1.0
    for look, fraction in zip(looks, fractions, strict=True):
        undecided = _add_trials(undecided, look.head - before.head, axis=1)
        undecided = _add_trials(undecided, look.base - before.base, axis=2)
        p_values = _fisher_p(look.head, look.base)
        critical = _largest_region(undecided, rejected, p_values, spend(alpha, fraction))
        is_rejected = p_values <= critical
        rejected = rejected + _probability(undecided, is_rejected)
        undecided, before = np.where(is_rejected, 0.0, undecided), look
    return critical


def _largest_region(undecided: _Numbers, rejected: _Numbers, p_values: _Numbers, allowed: float) -> float:
    """The largest p-value that may be rejected, adding outcomes one by one from the most extreme.

    Args:
        undecided: probability of each outcome without an earlier rejection; shape (rates, head, base).
        rejected: probability of an earlier rejection, for each rate.
    """
    candidates, low, high = np.unique(p_values), -1, len(np.unique(p_values)) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if (rejected + _probability(undecided, p_values <= candidates[middle])).max() <= allowed:
            low = middle
        else:
            high = middle - 1
    return float(candidates[low]) * (1 + _ROUNDING) if low >= 0 else -1.0


def _probability(outcomes: _Numbers, region: _Flags) -> _Numbers:
    total: _Numbers = outcomes[:, region].sum(axis=1)
    return total


def _add_trials(outcomes: _Numbers, trials: int, *, axis: int) -> _Numbers:
    """The distribution after more trials of one version; shape (rates, head failures + 1, base failures + 1)."""
    if trials < 0:
        raise ValueError(f"a later look has {-trials} trials less")
    if trials == 0:
        return outcomes
    shape = list(outcomes.shape)
    shape[axis] += trials
    grown = np.zeros(shape)
    for failures, probability in enumerate(_binomial(trials).T):
        target: list[slice] = [slice(None)] * 3
        target[axis] = slice(failures, failures + outcomes.shape[axis])
        grown[tuple(target)] += outcomes * probability[:, None, None]
    return grown


def _binomial(trials: int) -> _Numbers:
    """Probabilities of 0 to `trials` failures, shape (rates, trials + 1)."""
    failures = np.arange(trials + 1)
    logs = (
        _log_choose(trials, failures)
        + np.outer(np.log(_RATES), failures)
        + np.outer(np.log1p(-_RATES), trials - failures)
    )
    result: _Numbers = np.exp(logs)
    return result


@lru_cache(maxsize=64)
def _fisher_p(head: int, base: int) -> _Numbers:
    """Fisher's one-sided p-value of each outcome, shape (head + 1, base + 1)."""
    failures = np.add.outer(np.arange(head + 1), np.arange(base + 1))
    logs = _log_choose(head, np.arange(head + 1))[:, None] + _log_choose(base, np.arange(base + 1))
    probabilities = np.exp(logs - _log_choose(head + base, failures))
    p_values = np.zeros_like(probabilities)
    for row in range(head, -1, -1):  # at equal total, the next more extreme outcome is one row down, one column left
        p_values[row] = probabilities[row]
        if row < head:
            p_values[row, 1:] += p_values[row + 1, :-1]
    return p_values


def _log_choose(of: int, chosen: npt.NDArray[np.int64]) -> _Numbers:
    result: _Numbers = gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1)
    return result
