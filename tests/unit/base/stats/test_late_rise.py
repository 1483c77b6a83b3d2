"""Rises within a sequence."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.stats.rank_tests import find_late_rise


def noise(seed, count=15):
    return np.random.default_rng(seed).normal(0, 0.08, count)


def test_a_rise_is_found_at_its_place():
    values = noise(1)
    values[10:] += 0.5
    rise = find_late_rise(values)
    assert rise.place == 10
    assert rise.size == pytest.approx(0.5, abs=0.1)
    assert rise.p_value < 1e-4


def test_fall_is_no_rise():
    values = noise(1)
    values[10:] -= 0.5
    assert find_late_rise(values).p_value > 0.5


def test_short_sequences_have_no_place():
    assert find_late_rise(noise(1, 5)).p_value == 1.0
    assert find_late_rise(np.empty(0)).p_value == 1.0


def test_a_sequence_without_variation():
    assert find_late_rise(np.zeros(10)).p_value == 1.0
    assert find_late_rise(np.repeat([0.0, 1.0], 5)).p_value == 0.0


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_false_alarms_of_level_sequences(outliers):
    rng = np.random.default_rng(4)
    small = 0
    for _ in range(400):
        slow = 1.1 * ((rng.random((2, 12)) < outliers).astype(float))
        small += find_late_rise(rng.normal(0, 0.08, 12) + slow[0] - slow[1]).p_value <= 0.05
    assert small <= 32  # a larger count has a probability of 0.3 % with 20 expected
