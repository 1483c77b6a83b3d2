"""Permutation of runs with all their quantities: exact for any number of quantities."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from pytest_ldos.base.stats.counts import fewest_runs, largest_contrast_p, smallest_p


def runs(seed, *, quantities=300, size=5):
    """Runs of two equal versions, with spread between starts and dependent quantities."""
    rng = np.random.default_rng(seed)
    made = rng.normal(scale=0.05, size=(2 * size, quantities)) + rng.normal(scale=0.05, size=(2 * size, 1))
    return made[:size], made[size:]


def test_the_smallest_probability_is_that_of_the_number_of_divisions():
    head, base = runs(1)
    head[:, 7] += 3.0
    p = largest_contrast_p(head, base)
    assert p[7] == pytest.approx(2 / comb(10, 5)) == pytest.approx(smallest_p(5, 5))
    assert (p > 0.01).sum() == 299
    assert largest_contrast_p(base, head)[7] == pytest.approx(p[7])


def test_unequal_numbers_of_runs():
    head, base = runs(2, size=6)
    head[:3, 0] -= 3.0
    p = largest_contrast_p(head[:3], base)
    assert p[0] == pytest.approx(1 / comb(9, 3)) == pytest.approx(smallest_p(3, 6))


def test_false_alarms_of_equal_versions():
    found = sum(bool((largest_contrast_p(*runs(seed, quantities=50)) <= 0.05).any()) for seed in range(400))
    assert 8 <= found <= 32, "5 % of 400, within three deviations; the level is 10 of 252 divisions at most"


def test_random_divisions():
    head, base = runs(3, size=12)
    head[:, 5] += 1.0
    p = largest_contrast_p(head, base)
    assert p[5] <= 1 / 1000
    assert p[6] > 0.01


def test_equal_values_do_not_differ():
    assert largest_contrast_p(np.ones((5, 3)), np.ones((5, 3))).tolist() == [1.0, 1.0, 1.0]
    assert largest_contrast_p(np.ones((5, 0)), np.ones((5, 0))).size == 0


def test_fewest_runs():
    assert fewest_runs(0.01) == 5
    assert smallest_p(4, 4) > 0.01 >= smallest_p(4, 6)
