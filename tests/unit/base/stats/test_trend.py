"""Trends: against SciPy's tests, and by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from pytest_ldos.base.stats.rank_tests import estimate_trend


@pytest.mark.parametrize("size", [6, 7, 12, 30])
def test_trend_is_kendalls_and_theils(size):
    rng = np.random.default_rng(size)
    for _ in range(10):
        values = rng.normal(size=size) + 0.05 * np.arange(size)
        found = estimate_trend(values.tolist())
        tau = stats.kendalltau(np.arange(size), values, method="exact")
        assert found.p_value == pytest.approx(tau.pvalue)
        assert found.slope == pytest.approx(stats.theilslopes(values).slope)


def test_monotone_rise():
    found = estimate_trend([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert found.slope == 1.0
    assert found.p_value == pytest.approx(2 / 720)


def test_equal_values_are_no_trend():
    found = estimate_trend([3.0] * 8)
    assert (found.slope, found.p_value) == (0.0, 1.0)


def test_too_few_values_have_no_trend():
    assert estimate_trend([1.0, 2.0, 3.0, 4.0, 5.0]) is None


def test_false_alarms_are_as_stated():
    rng = np.random.default_rng(1)
    found = [estimate_trend(rng.normal(size=10).tolist()).p_value < 0.05 for _ in range(2000)]
    assert np.mean(found) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("size", [61, 200])
def test_approximation_for_many_values(size):
    rng = np.random.default_rng(size)
    for slope in (0.0, 0.003, 0.01):
        values = rng.normal(size=size) + slope * np.arange(size)
        exact = stats.kendalltau(np.arange(size), values, method="exact").pvalue
        assert estimate_trend(values.tolist()).p_value == pytest.approx(exact, abs=0.002)


def test_thousands_of_values_are_fast():
    values = np.random.default_rng(1).normal(size=1500)
    began_s = time.process_time()
    assert estimate_trend(values.tolist()).p_value > 0.01
    assert time.process_time() - began_s < 5
