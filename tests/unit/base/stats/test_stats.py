"""Statistics against SciPy, known numbers, and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_ldos.base.stats.adjust import in_common_strata, remove_covariate, remove_strata
from pytest_ldos.base.stats.counts import failure_rise_p, shortfall_p
from pytest_ldos.base.stats.rank_tests import (
    estimate_shift,
    lower_quantile,
    mann_whitney,
    rank_sum_p,
    smallest_detectable_shift,
)
from pytest_ldos.base.stats.several_tests import step_down


@pytest.mark.parametrize(("head", "base"), [(1, 1), (3, 4), (10, 10), (5, 30), (30, 30)])
def test_exact_p_value_equals_scipys(head, base):
    rng = np.random.default_rng(head * 100 + base)
    for shift in (0.0, 0.5):
        one, other = rng.normal(shift, size=head), rng.normal(size=base)
        expected = stats.mannwhitneyu(one, other, alternative="greater", method="exact").pvalue
        assert rank_sum_p(one, other) == pytest.approx(expected, rel=1e-9)


def test_the_estimate_is_the_median_of_all_differences():
    head, base = np.array([3.0, 5.0, 9.0]), np.array([1.0, 2.0])
    differences = sorted(a - b for a in head for b in base)
    assert estimate_shift(head, base, tail=0.5).estimate == np.median(differences)


def test_the_interval_and_the_test_agree():
    """The interval excludes zero if and only if the test rejects at the same level."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        head, base = rng.normal(0.8, size=9), rng.normal(size=11)
        rejected = rank_sum_p(head, base) <= 0.02
        assert (estimate_shift(head, base, tail=0.02).low > 0) == rejected


def test_coverage_is_as_stated():
    """For skewed noise, each end is wrong no more often than its tail probability."""
    rng = np.random.default_rng(2)
    runs, tail = 3000, 0.05
    below = above = 0
    for _ in range(runs):
        shift = estimate_shift(rng.exponential(size=10) + 0.7, rng.exponential(size=10), tail=tail)
        below += shift.low > 0.7
        above += shift.high < 0.7
    most = stats.binom.ppf(0.9999, runs, tail)
    assert below <= most
    assert above <= most
    assert below + above > 0.5 * runs * tail


def test_too_few_values_give_no_bounds():
    shift = estimate_shift(np.array([2.0, 3.0]), np.array([1.0]), tail=0.01)
    assert (shift.low, shift.high) == (-math.inf, math.inf)
    assert lower_quantile(2, 1, 0.01) == 0


def test_censored_values_rank_highest_and_equal():
    base = np.array([1.0, 2.0, 3.0, 4.0])
    failed = np.full(4, math.inf)
    assert estimate_shift(failed, base, tail=0.05).estimate == math.inf
    assert rank_sum_p(failed, base) == pytest.approx(1 / math.comb(8, 4))
    assert estimate_shift(failed, failed, tail=0.05).estimate == 0.0
    assert rank_sum_p(failed, failed) >= 0.5


def test_boschloo_equals_scipys_and_finds_a_rise():
    expected = stats.boschloo_exact([[4, 0], [6, 10]], alternative="greater").pvalue
    assert failure_rise_p(head_failures=4, head_trials=10, base_failures=0, base_trials=10) == pytest.approx(expected)
    assert failure_rise_p(head_failures=10, head_trials=10, base_failures=0, base_trials=10) < 1e-4
    assert failure_rise_p(head_failures=0, head_trials=10, base_failures=5, base_trials=10) == 1.0


def test_a_shortfall_of_successes():
    assert shortfall_p(successes=9, trials=10, expected_rate=1.0) == 0.0
    assert shortfall_p(successes=10, trials=10, expected_rate=1.0) == 1.0
    assert shortfall_p(successes=8, trials=10, expected_rate=0.9) == pytest.approx(stats.binom.cdf(8, 10, 0.9))


def step_down_of(p_values, shares, alpha):
    return step_down(shares, lambda name, level: p_values[name] <= level, alpha=alpha)


def test_holm_on_a_worked_example():
    p_values = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}
    steps = step_down_of(p_values, dict.fromkeys(p_values, 0.25), 0.05)
    assert {name for name, step in steps.items() if step.rejected} == {"a", "d"}
    assert steps["d"].alpha == pytest.approx(0.05 / 4)
    assert steps["a"].alpha == pytest.approx(0.05 / 4)
    assert steps["c"].alpha == pytest.approx(0.05 / 2)


def test_holm_stops_at_the_first_that_fails():
    steps = step_down_of({"a": 0.5, "b": 0.02}, {"a": 0.5, "b": 0.5}, 0.03)
    assert not any(step.rejected for step in steps.values())


def test_test_without_rejection_does_not_affect_others():
    p_values, shares = {"a": 0.001, "b": 0.03}, {"a": 0.4, "b": 0.4}
    alone = step_down_of(p_values, shares, 0.05)
    with_it = step_down_of({**p_values, "c": 0.9}, {**shares, "c": 0.2}, 0.05)
    assert {name: with_it[name] for name in alone} == alone
    assert alone["b"].alpha == pytest.approx(0.05 * 0.4 / 0.6)


def test_shares_above_one_are_refused():
    with pytest.raises(ValueError, match="exceed the whole"):
        step_down_of({"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.6}, 0.05)


def test_mde_is_reported_with_the_stated_power():
    """A shift of this size in simulated noise is found in about 80 % of the cases."""
    rng = np.random.default_rng(3)
    tail, noise, size = 0.01, 0.1, 15
    mde = np.median(
        [
            smallest_detectable_shift(shift.estimate - shift.low, tail=tail, floor=0.0)
            for shift in (
                estimate_shift(rng.normal(0, noise, size), rng.normal(0, noise, size), tail=tail) for _ in range(300)
            )
        ]
    )
    found = np.mean(
        [
            estimate_shift(rng.normal(mde, noise, size), rng.normal(0, noise, size), tail=tail).low > 0
            for _ in range(1000)
        ]
    )
    assert 0.7 <= found <= 0.9


def test_floor_above_the_noise_determines_the_mde():
    assert smallest_detectable_shift(0.001, tail=0.01, floor=0.05) == pytest.approx(0.05, abs=0.001)
    assert smallest_detectable_shift(math.inf, tail=0.01, floor=0.05) == math.inf


def test_strata_lose_their_levels_and_keep_the_shift():
    rng = np.random.default_rng(4)
    groups = np.array(["near", "far"] * 20)
    levels = np.where(groups == "far", 5.0, 0.0)
    base = levels + rng.normal(0, 0.1, 40)
    head = levels + 0.3 + rng.normal(0, 0.1, 40)
    adjusted = remove_strata((head, base), (groups, groups))
    assert adjusted[0].std() < 0.2
    assert np.median(adjusted[0]) - np.median(adjusted[1]) == pytest.approx(0.3, abs=0.08)


def test_strata_of_one_side_only_are_not_common():
    head, base = in_common_strata((np.array(["a", "a", "b"]), np.array(["a", "c"])))
    assert (head.tolist(), base.tolist()) == ([True, True, False], [True, False])


def test_only_the_covariates_influence_is_removed():
    rng = np.random.default_rng(5)
    causes = rng.normal(size=(2, 200))
    head = 0.25 + 2 * causes[0] + rng.normal(0, 0.1, 200)
    base = 2 * causes[1] + rng.normal(0, 0.1, 200)
    (new_head, new_base), share = remove_covariate((head, base), (causes[0], causes[1]))
    assert share > 0.99
    assert new_head.std() < 0.15
    assert np.median(new_head) - np.median(new_base) == pytest.approx(0.25, abs=0.04)


def test_a_constant_covariate_changes_nothing():
    values = np.arange(6.0), np.array([3.0, 4.0, 5.0, 6.0, 7.0, math.inf])
    (head, base), share = remove_covariate(values, (np.ones(6), np.ones(6)))
    assert share == 0.0
    assert head.tolist() == values[0].tolist()
    assert base.tolist() == values[1].tolist()


def test_shift_between_sides_is_no_influence():
    """Nothing is removed if the covariate differs only between the sides."""
    (head, base), share = remove_covariate(
        (np.array([5.0, 5.1, 4.9, 5.0, 5.0]), np.array([1.0, 1.1, 0.9, 1.0, 1.0])), (np.full(5, 10.0), np.full(5, 2.0))
    )
    assert share == 0.0
    assert head.mean() - base.mean() == pytest.approx(4.0)


def test_two_values_give_no_slope():
    """Regression: a slope through two nearly equal plans multiplied a shift of 30 ms by 10^15."""
    values = np.array([0.0, 0.5]), np.array([0.1, 0.4])
    found, share = remove_covariate(values, (np.array([0.0, 1e-5]), np.array([0.01, 0.01 + 1e-5])))
    assert share == 0.0
    assert found is values


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
@pytest.mark.parametrize(("head", "base"), [(101, 101), (120, 160), (20, 900)])
def test_p_value_of_large_samples_equals_scipys(head, base, shift):
    rng = np.random.default_rng(head)
    one, other = rng.normal(shift, size=head), rng.normal(size=base)
    expected = stats.mannwhitneyu(one, other, alternative="greater", method="exact").pvalue
    assert rank_sum_p(one, other) == pytest.approx(expected, rel=0.05)


def test_samples_of_several_hundred_have_a_symmetric_distribution():
    """Regression: the recurrence loses precision there; the median of 300 against 300 was off by two thirds."""
    for size in (90, 300, 600):
        distribution = mann_whitney(size, size)
        assert distribution.sum() == pytest.approx(1)
        assert np.cumsum(distribution)[size * size // 2] == pytest.approx(0.5, abs=0.001)
