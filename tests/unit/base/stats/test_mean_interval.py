"""Intervals of means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ldos.base.stats.counts import mean_interval


def test_interval_matches_students_t():
    low, high = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (low, high) == (pytest.approx(3 - half, rel=1e-6), pytest.approx(3 + half, rel=1e-6))


def test_few_values_give_no_bounds():
    assert mean_interval([]) == mean_interval([3.0]) == (-math.inf, math.inf)
    assert mean_interval([3.0, 3.0]) == (3.0, 3.0)


def test_coverage_is_as_stated():
    samples = np.random.default_rng(7).normal(10, 3, (2000, 5))
    found = [mean_interval(sample.tolist()) for sample in samples]
    assert np.mean([low <= 10 <= high for low, high in found]) == pytest.approx(0.95, abs=0.015)
