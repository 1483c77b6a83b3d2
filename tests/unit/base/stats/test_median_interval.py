"""Intervals of medians and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ldos.base.stats.counts import median_interval


@pytest.mark.parametrize("size", [0, 1, 5])
def test_few_values_give_no_bounds(size):
    assert median_interval([1.0] * size) == (-math.inf, math.inf)


def test_the_ends_are_order_statistics():
    assert median_interval([6, 1, 5, 2, 4, 3]) == (1, 6)
    assert median_interval(range(1, 11)) == (2, 9)
    assert median_interval([*range(1, 9), math.inf, math.inf]) == (2, math.inf)


@pytest.mark.parametrize("size", [6, 10, 33])
def test_coverage_is_as_stated(size):
    rng = np.random.default_rng(size)
    bounds = [median_interval(rng.exponential(size=size)) for _ in range(2000)]
    assert np.mean([low <= math.log(2) <= high for low, high in bounds]) >= 0.945
