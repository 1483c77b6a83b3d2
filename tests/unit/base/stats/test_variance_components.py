"""Variance components of trials, starts and runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.base.stats.starts import estimate_components


def runs_of(*runs):
    return [[np.array(start, dtype=float) for start in run] for run in runs]


def drawn(seed, *, runs=1, starts=8, trials=8, trial_sd=0.1, start_sd=0.0, run_sd=0.0):
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, run_sd, runs)
    return [[rng.normal(level + rng.normal(0, start_sd), trial_sd, trials) for _ in range(starts)] for level in levels]


def mean_variance(name, count=150, **shape):
    return np.mean([getattr(estimate_components(drawn(seed, **shape)), name) ** 2 for seed in range(count)])


def test_a_balanced_case_by_hand():
    """Means 1, 3, 5, 7; within variance 2 a start; MS between starts of one run 2·20/3."""
    found = estimate_components(runs_of([[0, 2], [2, 4], [4, 6], [6, 8]]))
    assert found.trial_sd == pytest.approx(math.sqrt(2))
    assert found.start_df == 3
    assert found.start_sd == pytest.approx(math.sqrt((40 / 3 - 2) / 2))
    assert found.run_sd == found.start_sd
    assert found.run_df == 0


def test_two_runs_by_hand():
    """Means of runs 2 and 6, mean square of runs 32, of starts in them 4; variance of a run's start 32/4 + 4/4 - 2/2."""
    found = estimate_components(runs_of([[0, 2], [2, 4]], [[4, 6], [6, 8]]))
    assert found.run_sd == pytest.approx(math.sqrt(32 / 4 + 4 / 4 - 2 / 2))
    assert found.run_df == 1


def test_similar_runs_keep_the_uncertainty_of_their_variance():
    """Mean square of starts 2: that of runs may be 2 · (1 + √2) by chance; a fourth of the difference is assumed."""
    found = estimate_components(runs_of([[0, 2], [1.5, 3.5]], [[0, 2], [1.5, 3.5]]))
    squares = 1.5**2
    assert found.start_sd == pytest.approx(math.sqrt((squares - 2) / 2))
    assert found.run_sd**2 - found.start_sd**2 == pytest.approx(squares * math.sqrt(2) / 4)


def test_one_outlier_in_eight_has_little_effect():
    plain = [drawn(seed, start_sd=0.05, runs=4) for seed in range(60)]
    for name, most in (("trial_sd", 2.0), ("start_sd", 2.0), ("run_sd", 2.0)):
        clean, dirty = (
            np.median([getattr(estimate_components(runs), name) for runs in sets])
            for sets in (plain, [[[with_outlier(start) for start in run] for run in runs] for runs in plain])
        )
        assert dirty < most * clean


def with_outlier(start):
    return np.where(np.arange(start.size) == 3, start + math.log(3), start)


def test_components_are_estimated_without_bias():
    shape = {"start_sd": 0.06, "run_sd": 0.08, "runs": 3}
    assert mean_variance("trial_sd", **shape) == pytest.approx(0.1**2, rel=0.05)
    assert mean_variance("start_sd", **shape) == pytest.approx(0.06**2, rel=0.1)
    assert mean_variance("run_sd", **shape) == pytest.approx(0.06**2 + 0.08**2, rel=0.2)


def test_unequal_numbers_cause_no_bias():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(250):
        sizes = (2, 9, 4, 12, 3, 7)
        run = [rng.normal(rng.normal(0, 0.1), 0.1, size) for size in sizes]
        found.append(estimate_components([run]).start_sd ** 2)
    assert np.mean(found) == pytest.approx(0.01, rel=0.15)


def test_drift_is_in_the_starts_of_one_run_and_between_several():
    steps = [np.full(4, 0.05 * number) + np.array([-0.01, 0.01, -0.01, 0.01]) for number in range(8)]
    one, two = estimate_components([steps]), estimate_components([steps[:4], steps[4:]])
    assert one.start_sd > two.start_sd
    assert two.run_sd > one.run_sd


def test_upper_bound_has_the_stated_coverage():
    """95 % of the bounds are above the true value."""
    bounds = [estimate_components(drawn(seed, start_sd=0.05)).largest_run_sd for seed in range(150)]
    assert np.mean(np.array(bounds) >= 0.05) >= 0.92


def test_identical_values_have_no_variance():
    found = estimate_components(runs_of([[5, 5], [5, 5], [5, 5]]))
    assert (found.trial_sd, found.start_sd, found.run_sd, found.largest_run_sd) == (0, 0, 0, 0)
    assert found.start_df == 2


@pytest.mark.parametrize("runs", [[], [[]], [[[1.0, 2.0]]], [[[1.0], [2.0]]], [[[], [], [1.0, 2.0]]]])
def test_insufficient_data_gives_none(runs):
    assert estimate_components(runs_of(*runs)) is None


def test_two_starts_are_sufficient():
    found = estimate_components(runs_of([[1.0, 2.0], [], [5.0, 6.0]]))
    assert found.start_df == 1
    assert found.run_sd == found.start_sd > 0


def test_runs_of_one_start_each():
    found = estimate_components(runs_of([[1.0, 2.0]], [[5.0, 6.0]], [[3.0, 4.0]]))
    assert found.start_df == 2
    assert found.run_sd == found.start_sd


@given(
    st.lists(
        st.lists(st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=2, max_size=5), min_size=2, max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.floats(-5, 5),
    st.floats(0.1, 10),
)
def test_components_are_equivariant(runs, shift, scale):
    plain = estimate_components(runs_of(*runs))
    other = estimate_components([[scale * start + shift for start in run] for run in runs_of(*runs)])
    for name in ("trial_sd", "start_sd", "run_sd", "largest_run_sd"):
        assert getattr(other, name) == pytest.approx(scale * getattr(plain, name), abs=1e-6 * scale)
    assert plain.run_sd >= plain.start_sd
    assert plain.largest_run_sd >= plain.start_sd or plain.start_sd == pytest.approx(plain.largest_run_sd)
