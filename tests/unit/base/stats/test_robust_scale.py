"""Robust estimates of spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_ldos.base.stats.adjust import draw_in_extremes, group_scale, winsorize_groups, winsorize_levels
from pytest_ldos.base.stats.rank_tests import estimate_shift
from tests.builders.representatives import representatives

SHAPES = [(1, 10), (2, 15), (10, 2), (12, 5)]


def groups_of(seed, shape, *, outliers=0.0):
    rng = np.random.default_rng(seed)
    return list(rng.normal(0, 0.05, shape) + math.log(3) * (rng.random(shape) < outliers))


def deviation(groups):
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return math.sqrt(squares / sum(group.size - 1 for group in groups))


@pytest.mark.parametrize("shape", SHAPES)
def test_normal_values_have_their_standard_deviation(shape):
    found = [group_scale(groups_of(seed, shape)) for seed in range(400)]
    assert np.mean(found) == pytest.approx(0.05, rel=0.06)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_outlier_in_ten_hardly_changes_the_scale(shape):
    plain, robust, drawn = (
        np.median([scale(groups_of(seed, shape, outliers=0.1)) for seed in range(200)]) / 0.05
        for scale in (deviation, group_scale, lambda groups: deviation(winsorize_groups(groups)))
    )
    assert plain > 6
    assert robust < 1.5
    assert drawn < 1.8


@pytest.mark.parametrize("shape", SHAPES)
def test_efficiency_for_normal_values(shape):
    """Compares the relative variances of both estimates of the standard deviation."""
    pairs = [
        (deviation(groups), deviation(winsorize_groups(groups))) for groups in (groups_of(s, shape) for s in range(500))
    ]
    plain, drawn = np.std(pairs, axis=0) / np.mean(pairs, axis=0)
    assert (plain / drawn) ** 2 > 0.85


def test_of_two_distant_values_the_nearer_to_others_is_kept():
    groups = [np.array([0.05, 5.0]), np.array([-5.0, 0.05]), *[np.array([0.0, 0.1])] * 5]
    drawn = winsorize_groups(groups)
    assert drawn[0][0] == drawn[1][1] == 0.05
    assert 0.05 < drawn[0][1] < 1
    assert -1 < drawn[1][0] < 0.05
    np.testing.assert_array_equal(drawn[2:], groups[2:])


def test_distant_group_is_not_changed():
    groups = [*groups_of(1, (5, 4)), groups_of(2, (1, 4))[0] + 5.0]
    np.testing.assert_allclose(winsorize_groups(groups)[-1], groups[-1], atol=0.05)


def test_values_that_are_mostly_equal_keep_their_outliers():
    """The scale is zero, so that outliers cannot be identified."""
    groups = [np.array([1.0, 1.0, 1.0, 1.0, 2.0])]
    assert winsorize_groups(groups)[0].tolist() == groups[0].tolist()
    assert group_scale([]) == group_scale([np.array([1.0])]) == 0.0


def test_single_levels_are_winsorized_only_among_many():
    levels = np.random.default_rng(1).normal(0, 0.01, 15)
    levels[3] = 1.0
    assert winsorize_levels(levels)[3] < 0.1
    np.testing.assert_array_equal(winsorize_levels(levels)[4:], levels[4:])
    np.testing.assert_array_equal(winsorize_levels(levels[:6]), levels[:6])


def test_two_kinds_of_levels_are_no_outliers():
    levels = np.where(np.arange(15) % 4 == 0, 1.0, 0.0) + np.random.default_rng(1).normal(0, 0.01, 15)
    np.testing.assert_array_equal(winsorize_levels(levels), levels)
    np.testing.assert_array_equal(draw_in_extremes([levels, levels], reach=2.0), [levels, levels])


def test_extreme_value_is_winsorized_within_its_sample():
    head, base = np.random.default_rng(1).normal(0, 0.01, (2, 10))
    head += 0.3
    head[2], base[4], base[0] = 2.0, -2.0, np.inf
    drawn = draw_in_extremes([head, base], reach=2.0)
    assert 0.3 < drawn[0][2] < 0.4
    assert -0.1 < drawn[1][4] < 0.0
    assert drawn[1][0] == np.inf, "what did not end within its time stays unknown"
    np.testing.assert_array_equal(draw_in_extremes([head[:4], base[:4]], reach=2.0), [head[:4], base[:4]])


@pytest.mark.parametrize("reach", [2.0, 3.0])
@pytest.mark.parametrize("draw", representatives(["normal", "standard_exponential", "standard_cauchy"], 1))
def test_interval_keeps_its_error_probability(draw, reach):
    rng, errors = np.random.default_rng(1), 0
    for _ in range(2000):
        samples = getattr(rng, draw)(size=(2, 10))
        found = estimate_shift(*draw_in_extremes(list(samples), reach=reach), tail=0.02)
        errors += found.low > 0 or found.high < 0
    assert errors < 0.04 * 2000 + 20, "two standard deviations more than four in a hundred"
