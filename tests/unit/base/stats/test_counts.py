"""Exact intervals of shares."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from pytest_ldos.base.stats.counts import share_interval


@pytest.mark.parametrize(("count", "of"), [(0, 10), (10, 10), (3, 17), (1, 200), (99, 200)])
def test_interval_is_clopper_and_pearsons(count, of):
    expected = binomtest(count, of).proportion_ci(0.95, "exact")
    assert share_interval(count, of) == pytest.approx((expected.low, expected.high))


def test_without_trials_the_interval_is_unbounded():
    assert share_interval(0, 0) == (0.0, 1.0)
