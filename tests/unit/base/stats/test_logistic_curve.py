"""Logistic curves through counts, also for a step from none to all."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.stats.counts import LogisticCurve, fit_logistic


def test_curve_is_recovered():
    rng = np.random.default_rng(3)
    true = LogisticCurve(0.6, 20.0)
    places = np.linspace(0, 1, 30)
    hits = [int(rng.binomial(200, true(place))) for place in places]
    found = fit_logistic(list(places), hits, [200] * 30)
    assert found.middle == pytest.approx(0.6, abs=0.01)
    assert found.slope == pytest.approx(20, rel=0.2)


def test_middle_of_a_step_is_between_the_levels():
    found = fit_logistic([0, 0.5, 0.75, 1], [0, 0, 15, 15], [15] * 4)
    assert 0.55 < found.middle < 0.7


def test_place_of_is_the_inverse():
    curve = LogisticCurve(0.4, 8.0)
    for probability in (0.1, 0.5, 0.9):
        assert curve(curve.place_of(probability)) == pytest.approx(probability)
    assert curve(-1e6) == pytest.approx(0.0)
    assert curve(1e6) == pytest.approx(1.0)
