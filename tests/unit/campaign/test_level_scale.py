"""Levels from the calm end of a range to its harsh end."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.bisection import LevelScale, Spacing

RATES = LevelScale(low=100, high=200_000)
CPUS = LevelScale(low=1, high=16, spacing=Spacing.LINEAR, is_whole=True, is_falling=True)


def test_rates_are_halved_by_their_logarithms():
    assert (RATES.calm, RATES.harsh) == (100, 200_000)
    assert RATES.between(100, 200_000) == 4470
    assert RATES.place(RATES.level(0.3)) == pytest.approx(0.3, abs=1e-3)


def test_fewer_cpus_are_harsher():
    assert (CPUS.calm, CPUS.harsh) == (16, 1)
    assert (CPUS.place(16), CPUS.place(1)) == (0, 1)
    assert CPUS.between(16, 1) == 8
    assert CPUS.between(3, 2) is None


@pytest.mark.parametrize(
    "scale",
    [RATES, CPUS, LevelScale(low=5, high=400, spacing=Spacing.LINEAR), LevelScale(low=1, high=64, is_whole=True)],
)
def test_bisection_visits_at_most_the_predicted_levels(scale):
    """For any threshold."""
    for number in range(200):
        threshold, visited = scale.level(number / 199), 0
        calm, harsh = scale.calm, scale.harsh
        while (middle := scale.between(calm, harsh)) is not None:
            calm, harsh = (middle, harsh) if scale.place(middle) < scale.place(threshold) else (calm, middle)
            visited += 1
        assert visited <= scale.halvings()
        assert scale.is_near(calm, harsh)


def test_levels_are_close_by_ratio_or_as_neighbours():
    assert RATES.is_near(1000, 1100)
    assert not RATES.is_near(1000, 1101)
    assert LevelScale(low=1, high=8, is_whole=True).is_near(2, 1)


def test_a_linear_range_may_begin_at_zero():
    scale = LevelScale(low=0, high=80, spacing=Spacing.LINEAR, precision=0.1)
    assert scale.between(0, 80) == 40
    assert scale.halvings() < 40


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"low": 200, "high": 100}, "nothing to search from 200 to 100"),
        ({"low": 100, "high": 100}, "nothing to search from 100 to 100"),
        ({"low": math.nan, "high": 100}, "nothing to search"),
        ({"low": 0, "high": 100}, "no logarithms"),
        ({"low": 1, "high": 100, "precision": 0}, "a precision of 0"),
        ({"low": 1.5, "high": 3, "is_whole": True}, "only whole numbers"),
    ],
)
def test_invalid_range_is_refused(wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        LevelScale(**wrong)
