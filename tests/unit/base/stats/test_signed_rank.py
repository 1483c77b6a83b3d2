"""Locations of many samples, compared with slower computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pytest_ldos.base.stats.rank_tests import locate


def pair_means(sample):
    return sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(sample, 2))


def test_estimate_is_the_median_of_pair_means():
    samples = np.random.default_rng(1).normal(5, 1, (3, 7))
    assert locate(samples, tail=0.025).estimate == pytest.approx([np.median(pair_means(row)) for row in samples])


def test_interval_matches_published_tables():
    """n = 10 drops 8 of 55 means at each end at 95 % (Hollander, Wolfe, Chicken, table A.4)."""
    sample = np.random.default_rng(2).normal(0, 1, 10)
    found = locate(sample[None, :], tail=0.025)
    assert (found.low[0], found.high[0]) == (pair_means(sample)[8], pair_means(sample)[-9])


def test_the_interval_covers():
    samples = np.random.default_rng(3).normal(3, 1, (2000, 12))
    found = locate(samples, tail=0.025)
    assert np.mean((found.low <= 3) & (found.high >= 3)) == pytest.approx(0.955, abs=0.015)


def test_too_few_values_have_no_interval():
    found = locate(np.array([[1.0, 2.0, 3.0]]), tail=0.025)
    assert found.estimate[0] == 2.0
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)


def test_censored_values_increase_the_location():
    sample = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, np.inf]])
    found = locate(sample, tail=0.025)
    assert found.estimate[0] > np.median(pair_means(range(1, 10)))
    assert np.isinf(found.high[0])
    assert np.isinf(locate(np.where(sample > 5, np.inf, sample), tail=0.025).estimate[0])


def test_a_large_sample_is_thinned():
    sample = np.random.default_rng(4).normal(10, 1, 1000)
    assert locate(sample[None, :], tail=0.025).estimate[0] == pytest.approx(np.mean(sample), abs=0.1)
