"""Count, mean and standard deviation of a part of a series, beside numpy on that part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.stats.moments import Moments


def moments(values):
    return Moments(len(values), float(np.mean(values)), float(np.std(values)))


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=50),
)
def test_what_came_since_a_look_is_as_if_counted_alone(before, after):
    found, alone = moments([*before, *after]).since(moments(before)), moments(after)
    assert found.count == alone.count
    assert found.mean == pytest.approx(alone.mean, abs=1e-6)
    assert found.sd == pytest.approx(alone.sd, abs=1e-2)


def test_a_short_trial_after_days_is_exact():
    """Two seconds of 1 kHz after a day of it."""
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


def test_nothing_new_or_a_count_that_began_again_has_none():
    assert moments([1.0, 2.0]).since(moments([1.0, 2.0])) is None
    assert moments([1.0]).since(moments([1.0, 2.0])) is None
