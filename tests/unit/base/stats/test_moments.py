"""Moments of a part of a series, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.series import Moments


def moments(values):
    return Moments(len(values), float(np.mean(values)), float(np.std(values)))


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50),
)
def test_moments_since_a_reading_equal_those_of_the_part(before, after):
    found, alone = moments([*before, *after]).since(moments(before)), moments(after)
    assert found.count == alone.count
    assert found.mean == pytest.approx(alone.mean, abs=1e-6)
    assert found.sd == pytest.approx(alone.sd, abs=1e-2)


def test_short_trial_after_days_is_exact():
    """Two seconds at 1 kHz after a day at 1 kHz."""
    rng = np.random.default_rng(1)
    values = rng.normal(1000.0, 10.0, 2_000)
    day = Moments(86_400_000, 1000.0, 8.0)
    count = day.count + values.size
    mean = (day.count * day.mean + values.sum()) / count
    squares = day.count * (day.sd**2 + (day.mean - mean) ** 2) + np.sum((values - mean) ** 2)
    found = Moments(count, mean, float(np.sqrt(squares / count))).since(day)
    assert found.count == values.size
    assert found.mean == pytest.approx(values.mean(), rel=1e-6)
    assert found.sd == pytest.approx(values.std(), rel=1e-2)


def test_no_new_values_or_a_restart_give_none():
    assert moments([1.0, 2.0]).since(moments([1.0, 2.0])) is None
    assert moments([1.0]).since(moments([1.0, 2.0])) is None
