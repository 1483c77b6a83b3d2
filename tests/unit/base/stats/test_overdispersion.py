"""Correlated trials of a start do not increase the error of a tempered test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

from pytest_ldos.base.stats.counts import SUPPOSED_CORRELATION, estimate_correlation, tempering
from pytest_ldos.base.stats.several_tests import BoundaryTest, Side

STARTS = 25


def wrong_calls(test: BoundaryTest, *, group: int, correlation: float, side: Side) -> float:
    """Exact probability that a side is chosen at the boundary, with a look after each start."""
    spread = 1 / correlation - 1
    chances = betabinom(group, test.boundary * spread, (1 - test.boundary) * spread).pmf(np.arange(group + 1))
    pending, called = np.array([1.0]), 0.0
    for start in range(1, STARTS + 1):
        pending = np.convolve(pending, chances)
        trials = start * group
        decided = [test.log_evidence(hits, trials, side) >= -np.log(test.error) for hits in range(trials + 1)]
        called += pending[decided].sum()
        pending[decided] = 0.0
    return float(called)


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize(
    ("boundary", "group", "correlation"), [(0.5, 4, SUPPOSED_CORRELATION), (0.5, 5, 0.4), (0.2, 4, 0.2)]
)
def test_tempered_test_keeps_its_error(boundary, group, correlation, side):
    test = BoundaryTest(boundary, 0.05, tempering(group, boundary, correlation))
    assert wrong_calls(test, group=group, correlation=correlation, side=side) <= 0.05


def test_untempered_test_has_a_larger_error():
    naive = BoundaryTest(0.5, 0.05)
    assert wrong_calls(naive, group=5, correlation=0.4, side=Side.ABOVE) > 0.1


def test_exponent_is_the_inverse_overdispersion():
    assert tempering(1, 0.5, 0.9) == 1.0
    assert tempering(5, 0.5, 0.0) == 1.0
    assert tempering(4, 0.5, SUPPOSED_CORRELATION) == pytest.approx(1 / (1 + 3 * SUPPOSED_CORRELATION), abs=1e-3)
    assert tempering(4, 0.5, 0.999) == pytest.approx(1 / 4, abs=0.01)


def test_the_correlation_of_starts_is_estimated():
    rng = np.random.default_rng(1)
    alike = [(int(each), 8) for each in betabinom(8, 1.0, 1.0).rvs(200, random_state=rng)]
    independent = [(int(each), 8) for each in rng.binomial(8, 0.5, 200)]
    assert estimate_correlation([alike]) == pytest.approx(1 / 3, abs=0.08)
    assert estimate_correlation([independent]) == pytest.approx(0.0, abs=0.05)


def test_differences_between_levels_are_no_correlation():
    rng = np.random.default_rng(2)
    levels = [[(int(each), 8) for each in rng.binomial(8, share, 30)] for share in (0.1, 0.5, 0.9)]
    found = estimate_correlation(levels)
    assert found is not None
    assert found < 0.06


@pytest.mark.parametrize("levels", [[], [[(1, 4)]], [[(0, 4), (0, 4)]], [[(1, 1), (0, 1)]], [[(0, 0), (2, 4)]]])
def test_unknown_correlation_is_none(levels):
    assert estimate_correlation(levels) is None
