"""Boundaries of sequential tests, against published tables and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from pytest_ldos.base.stats.several_tests import critical_values, level_of_last_look, spend

FIVE_LOOKS = (0.2, 0.4, 0.6, 0.8, 1.0)
HALF_ON = tuple(n * 30 / (n + 30) / 15 for n in (10, 15, 20, 25, 30))


def like_pocock(alpha, fraction):
    return alpha * math.log1p((math.e - 1) * fraction)


def like_o_brien_fleming(alpha, fraction):
    return 2 * (1 - ndtr(-ndtri(alpha / 2) / math.sqrt(fraction)))


@pytest.mark.parametrize(
    ("rule", "published"),
    [
        (like_pocock, [2.4380, 2.4268, 2.4102, 2.3966, 2.3860]),
        (like_o_brien_fleming, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
    ],
)
def test_boundaries_match_published_tables(rule, published):
    """Lan and DeMets's two rules, five looks, one-sided 0.025 (Jennison and Turnbull 2000, tables of chapter 7)."""
    assert critical_values(0.025, FIVE_LOOKS, rule) == pytest.approx(published, abs=2e-4)


def test_one_look_spends_everything():
    assert level_of_last_look(0.01, (1.0,)) == pytest.approx(0.01)
    assert critical_values(0.025, (1.0,)) == pytest.approx([1.95996], abs=1e-4)


def test_looks_together_spend_at_most_alpha():
    """Simulated Brownian motions cross by each look no more often than the rule allows."""
    rng = np.random.default_rng(1)
    alpha, paths = 0.05, 200_000
    steps = rng.normal(size=(paths, len(HALF_ON))) * np.sqrt(np.diff((0.0, *HALF_ON)))
    standardised = np.cumsum(steps, axis=1) / np.sqrt(HALF_ON)
    crossed = np.maximum.accumulate(standardised > critical_values(alpha, HALF_ON), axis=1).mean(axis=0)
    allowed = [spend(alpha, fraction) for fraction in HALF_ON]
    assert crossed == pytest.approx(allowed, abs=4 * math.sqrt(alpha / paths))


def test_from_half_of_the_information_on_the_boundary_is_nearly_constant():
    """Like Pocock's rule: clear cases stop at the first look, and the last keeps its power."""
    values = critical_values(0.000225, HALF_ON)
    assert max(values) - min(values) < 0.4
    assert values[-1] < -ndtri(0.000225) + 0.2


@pytest.mark.parametrize("fractions", [(), (0.5, 0.5), (0.5, 0.4), (0.0, 1.0), (0.5, 1.1)])
def test_non_increasing_fractions_are_refused(fractions):
    with pytest.raises(ValueError, match="do not rise"):
        critical_values(0.05, fractions)
