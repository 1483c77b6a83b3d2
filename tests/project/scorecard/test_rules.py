"""Rules of other tools, compared with their documentation."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.scorecard.rules.asv import Asv, two_sided_p
from benchmarks.scorecard.rules.bencher import Bencher, upper_limit
from benchmarks.scorecard.rules.chosen import OTHERS
from benchmarks.scorecard.rules.mean_ratio import GithubActionBenchmark, PytestBenchmark

BLOCKS = np.repeat(np.arange(6), 5)


def noise(runs=4, trials=30, spread=0.02, seed=1):
    return np.random.default_rng(seed).lognormal(0, spread, (runs, trials))


@pytest.mark.parametrize("rule", OTHERS, ids=lambda rule: rule.name)
def test_a_change_for_the_worse_is_red_and_one_for_the_better_is_not(rule):
    base, head = noise(), noise(seed=2)
    assert rule.fires(base, 3 * head, BLOCKS).all()
    assert not rule.fires(3 * base, head, BLOCKS).any()


@pytest.mark.parametrize("rule", OTHERS, ids=lambda rule: rule.name)
def test_trials_without_a_value_do_not_count(rule):
    base, head = noise(), noise(seed=2)
    gaps = head.copy()
    gaps[:, :5] = np.nan
    assert rule.fires(base, 3 * gaps, BLOCKS).all()
    assert not rule.fires(base, gaps * 0.5, BLOCKS).any()


def test_benchers_limit_is_that_of_its_documentation():
    limit = upper_limit(np.array([100.0]), np.array([10.0]), 25, boundary=0.977)
    assert limit[0] == pytest.approx(121.46, abs=0.01)


def test_bencher_sees_one_report_a_start():
    base = np.repeat(np.array([[1.0, 1.1, 1.0, 1.1, 1.0, 1.1]]), 5, axis=1)
    limit = upper_limit(np.array([1.05]), np.array([np.std([1.0, 1.1] * 3, ddof=1)]), 6)[0]
    heads = np.array([[limit * 0.999] * 5, [limit * 1.001] * 5])
    assert Bencher().fires(np.repeat(base, 2, axis=0), heads, BLOCKS).tolist() == [False, True]


@pytest.mark.parametrize(("rule", "limit"), [(PytestBenchmark(), 1.1), (GithubActionBenchmark(2.0, ""), 2.0)])
def test_ratios_of_means_are_compared_with_the_limit(rule, limit):
    base = np.full((2, 30), 10.0)
    heads = np.array([[10 * limit - 0.01] * 30, [10 * limit + 0.01] * 30])
    assert rule.fires(base, heads, BLOCKS).tolist() == [False, True]


def test_asv_needs_the_factor_and_the_test():
    base = noise(spread=0.3, seed=3)
    small = base * 1.09
    assert not Asv().fires(base, small, BLOCKS).any()
    clear = noise(spread=0.01, seed=4)
    assert Asv().fires(clear, clear * 1.11, BLOCKS).all()


def test_asv_breaks_ties_the_least_significant_way():
    equal = np.full((1, 30), 1.0)
    assert two_sided_p(equal, equal)[0] == pytest.approx(1.0)


def test_asv_counts_few_samples_exactly():
    rng = np.random.default_rng(3)
    base, head = rng.normal(size=(20, 18)), rng.normal(0.5, size=(20, 18))
    expected = [stats.mannwhitneyu(*pair, method="exact").pvalue for pair in zip(base, head, strict=True)]
    np.testing.assert_allclose(two_sided_p(base, head), expected)
