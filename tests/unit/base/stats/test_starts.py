"""Variance between starts, by simulation, and unknown cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ldos.base.stats.rank_tests import estimate_shift, rank_sum_p
from pytest_ldos.base.stats.starts import (
    UNKNOWN,
    Extra,
    Variance,
    pool,
    variance_between_paired_starts,
    variance_between_starts,
)


def started(rng, *, starts, trials, start_sd):
    """Values, and the number of each value's start."""
    levels = rng.normal(0, start_sd, starts)
    return rng.normal(np.repeat(levels, trials), 0.1), np.repeat(np.arange(starts), trials)


@pytest.mark.parametrize("start_sd", [0.0, pytest.param(0.1, marks=pytest.mark.acceptance), 0.3])
def test_variance_between_starts_is_recovered(start_sd):
    rng = np.random.default_rng(1)
    found = [variance_between_starts(*started(rng, starts=6, trials=5, start_sd=start_sd)) for _ in range(2000)]
    assert {each.degrees for each in found} == {5}
    assert np.mean([each.value for each in found]) == pytest.approx(start_sd**2, abs=0.1 * start_sd**2 + 0.0005)


def test_common_drift_is_no_variance_between_starts():
    rng = np.random.default_rng(2)
    found, naive = [], []
    for _ in range(1000):
        drift = np.repeat(rng.normal(0, 1.0, 4), 5)
        pairs = np.repeat(np.arange(4), 5)
        head, base = (rng.normal(drift, 0.1) for _ in range(2))
        found.append(variance_between_paired_starts(head, base, (pairs, pairs)).value)
        naive.append(variance_between_starts(head, pairs).value)
    assert np.mean(found) == pytest.approx(0.0, abs=0.001)
    assert np.mean(naive) > 0.8


@pytest.mark.parametrize(
    ("values", "starts"), [([1.0, 2.0, 3.0], [0, 0, 0]), ([1.0, 2.0], [0, 1]), ([math.inf, 2.0], [0, 1]), ([], [])]
)
def test_single_start_or_single_trials_give_no_estimate(values, starts):
    assert variance_between_starts(np.array(values), np.array(starts, dtype=np.int64)) == UNKNOWN


def test_estimates_are_pooled_by_degrees_of_freedom():
    assert pool([Variance(1.0, 3), Variance(-1.0, 1), UNKNOWN]) == Variance(0.5, 4)
    assert pool([UNKNOWN]) == UNKNOWN


def test_known_variance_between_starts_keeps_false_alarms():
    """Four starts per version: without their variance, there are five times as many false alarms."""
    rng = np.random.default_rng(3)
    known, naive, excluded = [], [], []
    for _ in range(4000):
        (head, _), (base, _) = (started(rng, starts=4, trials=5, start_sd=0.1) for _ in range(2))
        shift, p_value = estimate_shift(head, base, tail=0.01), rank_sum_p(head, base)
        naive.append(p_value <= 0.01)
        extra = Extra(Variance(0.1**2, 20) * (2 / 4))
        known.append(extra.widened_p(p_value, shift) <= 0.01)
        excluded.append(extra.widen(shift, tail=0.01).low > 0)
    assert np.mean(naive) > 0.03
    assert np.mean(known) <= 0.01
    assert np.mean(excluded) <= 0.01


def test_identical_values_keep_the_variance_between_starts():
    same = np.full(8, 5.0)
    shift = estimate_shift(same, same, tail=0.05)
    assert (shift.low, shift.high, shift.standard_error) == (0.0, 0.0, 0.0)
    assert Extra().widen(shift, tail=0.05) == shift
    widened = Extra(Variance(0.01, 1e6)).widen(shift, tail=0.05)
    assert (widened.low, widened.high) == pytest.approx((-0.16449, 0.16449), abs=1e-4)
    assert Extra(Variance(0.01, 1e6)).widened_p(0.5, shift) == pytest.approx(0.5)


@pytest.mark.parametrize("p_value", [0.0, 1.0])
def test_no_extra_variance_keeps_the_interval(p_value):
    shift = estimate_shift(np.arange(6.0), np.arange(6.0) + 9, tail=0.05)
    assert Extra(Variance(0.01, 3)).widened_p(p_value, shift) == p_value


def test_few_starts_widen_the_interval():
    """The same variance, estimated from fewer starts, gives a wider interval."""
    rng = np.random.default_rng(4)
    shift = estimate_shift(rng.normal(size=10), rng.normal(size=10), tail=0.01)
    widths = [Extra(Variance(1.0, degrees)).widen(shift, tail=0.01).high for degrees in (1, 3, 10, 100)]
    assert widths == sorted(widths, reverse=True)


def test_removed_levels_widen_the_interval():
    rng = np.random.default_rng(5)
    shift = estimate_shift(rng.normal(size=10), rng.normal(size=10), tail=0.01)
    wider = Extra(inflation=1.21).widen(shift, tail=0.01)
    assert wider.high - shift.estimate == pytest.approx(1.1 * (shift.high - shift.estimate), rel=1e-5)


def test_infinite_ends_stay_infinite():
    failed = np.full(6, math.inf)
    shift = estimate_shift(failed, np.arange(6.0), tail=0.01)
    assert Extra(Variance(1.0, 3)).widen(shift, tail=0.01) == shift
    assert Extra(Variance(1.0, 3)).widened_p(0.001, shift) == 0.001


def test_sum_has_satterthwaites_degrees_of_freedom():
    assert Variance(1.0, 4) + UNKNOWN == Variance(1.0, 4)
    both = Variance(1.0, 4) + Variance(2.0, 8)
    assert both.value == 3.0
    assert both.degrees == pytest.approx(3**2 / (1 / 4 + 4 / 8))
    assert Variance(-1.0, 4) + Variance(2.0, 8) == Variance(2.0, 8)


@pytest.mark.parametrize("trials", [pytest.param(2, marks=pytest.mark.acceptance), 5])
def test_single_outliers_do_not_change_the_variance_between_starts(trials):
    rng = np.random.default_rng(6)
    found = {"clean": [], "dirty": [], "paired": []}
    for _ in range(300):
        (head, starts), (base, _) = (started(rng, starts=10, trials=trials, start_sd=0.05) for _ in range(2))
        slow = math.log(3) * (rng.random(head.size) < 0.1)
        found["clean"].append(variance_between_starts(head, starts).value)
        found["dirty"].append(variance_between_starts(head + slow, starts).value)
        found["paired"].append(variance_between_paired_starts(head + slow, base, (starts, starts)).value)
    assert np.median(found["dirty"]) < np.median(found["clean"]) + 0.1**2
    assert np.median(found["paired"]) < np.median(found["clean"]) + 0.1**2


def test_single_slow_start_among_many_is_an_outlier():
    rng = np.random.default_rng(7)
    values, starts = started(rng, starts=15, trials=2, start_sd=0.0)
    slow = np.where(starts == 0, values + math.log(3), values)
    assert variance_between_starts(slow, starts).value < 0.1**2


def test_small_estimate_from_few_starts_keeps_heavy_tails():
    """It may be small by chance."""
    shift = estimate_shift(np.random.default_rng(4).normal(size=10), np.zeros(10), tail=0.01)
    small = shift.standard_error**2 / 2
    total, few = Extra(Variance(small, 3)).of(shift)
    assert total == pytest.approx(1.5 * shift.standard_error**2)
    assert few < 10
    assert Extra(Variance(small, 100)).of(shift)[1] > 500


@pytest.mark.parametrize("degrees", [1e-9, 1e-3, 1e6])
def test_extreme_degrees_of_freedom_are_supported(degrees):
    shift = estimate_shift(np.random.default_rng(4).normal(size=10), np.zeros(10), tail=0.01)
    total, found = Extra(Variance(1.0, degrees)).of(shift)
    assert total > 1.0
    assert found >= degrees
