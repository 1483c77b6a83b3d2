"""Change points: detection, location and false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.change_points import autoregressions, flagged, simulate_limit
from pytest_ldos.base.stats.rank_tests import (
    CORRELATIONS,
    FEWEST,
    LENGTHS,
    LIMITS,
    LONGEST,
    correlation_of,
    find_change_points,
    normal_scores,
)


def noise(seed: int, length: int):
    return np.random.default_rng(seed).standard_normal(length)


@pytest.mark.parametrize(
    ("correlation", "most"), [(0.0, 0.02), (0.5, 0.05), (0.7, 0.08)], ids=["independent", "correlated", "strongly"]
)
def test_false_alarms_of_a_hundred_points(correlation, most):
    rng = np.random.default_rng(11)
    assert flagged(autoregressions(rng, 400, 100, correlation)) <= most


def test_heavy_tails_raise_no_more_alarms():
    assert flagged(np.random.default_rng(12).standard_t(2, (400, 60))) <= 0.02


def test_limits_match_the_simulation():
    for length, correlation in ((24, 0.0), (96, 0.5)):
        stated = LIMITS[LENGTHS.index(length)][CORRELATIONS.index(correlation)]
        assert simulate_limit(length, correlation, count=4000, seed=2) == pytest.approx(stated, rel=0.06)


def test_limits_rise_with_length_and_correlation():
    table = np.array(LIMITS)
    assert np.all(np.diff(table, axis=0) > 0)
    assert np.all(np.diff(table, axis=1) > -0.05)


@pytest.mark.parametrize("at", [20, 50, 80])
def test_a_step_is_placed(at):
    values = noise(1, 100) + 3 * (np.arange(100) >= at)
    (point,) = find_change_points(values)
    assert abs(point.index - at) <= 1
    assert point.strength > 1


def test_slow_stretch_has_two_change_points():
    place = np.arange(100)
    values = noise(2, 100) + 4 * ((place >= 40) & (place < 65))
    assert [point.index for point in find_change_points(values)] == pytest.approx([40, 65], abs=1)


def test_several_steps():
    place = np.arange(120)
    values = noise(3, 120) + 4 * (place >= 40) + 4 * (place >= 80)
    assert [point.index for point in find_change_points(values)] == pytest.approx([40, 80], abs=1)


def test_result_is_independent_of_units_and_direction():
    values = noise(4, 60) + 3 * (np.arange(60) >= 30)
    expected = [point.index for point in find_change_points(values)]
    assert expected
    assert [point.index for point in find_change_points(-values)] == expected
    assert [point.index for point in find_change_points(np.exp(values / 10))] == expected


def test_one_outlier_is_no_change():
    values = noise(5, 60)
    values[30] = 1e9
    assert find_change_points(values) == []


def test_infinite_values_count_as_the_largest():
    values = np.where(np.arange(40) >= 20, np.inf, noise(6, 40))
    assert [point.index for point in find_change_points(values)] == [20]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 50, list(range(FEWEST - 1))])
def test_short_sequence_has_no_change(values):
    assert find_change_points(np.array(values, dtype=np.float64)) == []


def test_end_of_a_long_sequence_is_searched():
    values = noise(7, LONGEST + 200)
    values[:100] += 10
    values[-60:] += 4
    assert [point.index for point in find_change_points(values)] == pytest.approx([LONGEST + 140], abs=1)


def test_step_does_not_affect_the_correlation():
    stepped = noise(8, 400) + 5 * (np.arange(400) >= 200)
    assert abs(float(correlation_of(normal_scores(stepped)))) < 0.25
    correlated = autoregressions(np.random.default_rng(9), 1, 400, 0.8)
    assert float(correlation_of(normal_scores(correlated))[0]) == pytest.approx(0.8, abs=0.1)
