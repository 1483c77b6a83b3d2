"""The mean over strata has equal weights, and its interval covers the true mean as often as it should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ldos.base.stats.adjust import average_strata

STRATA = np.repeat([f"problem {number:02}" for number in range(20)], 6)


def shift(head, base, strata=(STRATA, STRATA), tail=0.025):
    mean = average_strata((np.asarray(head, dtype=float), np.asarray(base, dtype=float)), strata)
    return None if mean is None else mean.shift(tail=tail)


def test_one_large_change_of_twenty_counts_with_its_weight():
    base = np.random.default_rng(1).normal(0, 0.01, 120)
    head = base + np.where(STRATA == "problem 03", 2.0, 0.0)
    assert shift(head, base).estimate == pytest.approx(0.1)


def test_strata_weigh_the_same_however_many_values_they_have():
    base = np.zeros(8)
    found = shift([1, 1, 1, 1, 1, 1, 0, 0], base, strata=(np.array(list("aaaaaabb")), np.array(list("aaaaaabb"))))
    assert found.estimate == pytest.approx(0.5)


def test_interval_covers_the_mean_with_its_confidence():
    rng = np.random.default_rng(2)
    scale = np.repeat(np.geomspace(0.01, 1, 20), 6)  # strata vary differently
    found = [shift(rng.normal(0, scale), rng.normal(0, scale), tail=0.05) for _ in range(1000)]
    assert 0.03 < np.mean([each.low > 0 for each in found]) < 0.075
    assert 0.03 < np.mean([each.high < 0 for each in found]) < 0.075


def test_single_extreme_value_hardly_moves_the_mean():
    rng = np.random.default_rng(3)
    head, base = rng.normal(0, 0.1, 120), rng.normal(0, 0.1, 120)
    before = shift(head, base).estimate
    head[5] = 50.0
    assert shift(head, base).estimate == pytest.approx(before, abs=0.01)


def test_infinite_values_count_as_the_largest_of_their_stratum():
    base = np.tile([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 20)
    head = base.copy()
    head[5] = math.inf
    assert shift(head, base) == shift(base, base)


def test_stratum_of_mostly_infinite_values_is_left_out():
    base = np.tile([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 20)
    head = base + 1.0
    head[:4] = math.inf
    assert shift(head, base).estimate == pytest.approx(1.0)
    assert shift(np.full(120, math.inf), base) is None


def test_single_values_give_no_interval():
    strata = np.array(["a", "b"])
    found = shift([2, 3], [1, 1], strata=(strata, strata))
    assert (found.estimate, found.low, found.high) == (1.5, -math.inf, math.inf)
