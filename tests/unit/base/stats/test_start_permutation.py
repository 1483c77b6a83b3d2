"""Permutation of starts: exact, and conservative if starts differ."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from pytest_ldos.base.stats.starts import permutation_p, sum_by_start


def test_p_value_counts_all_divisions():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, 9) / 4  # multiples of the step, so that rounding has no effect
    scores[0], scores[1] = 0.0, 1.0
    seen = scores[:4].sum()
    sums = [scores[list(chosen)].sum() for chosen in combinations(range(9), 4)]
    assert permutation_p(scores[:4], scores[4:]) == pytest.approx(np.mean([each >= seen - 1e-9 for each in sums]))


def test_separated_starts_have_the_smallest_probability():
    assert permutation_p(np.arange(10.0, 19.0), np.arange(9.0)) == pytest.approx(1 / comb(18, 9))
    assert permutation_p(np.arange(9.0), np.arange(10.0, 19.0)) == pytest.approx(1)


def test_equal_scores_have_p_value_one():
    assert permutation_p(np.ones(5), np.ones(7)) == 1.0


def test_many_starts_are_near_the_exact_probability():
    rng = np.random.default_rng(2)
    head, base = rng.normal(0.5, 1, 40), rng.normal(0, 1, 40)
    exact = permutation_p(head, base)
    # One more start of each version, at the mean, exceeds the limit of the exact count.
    mean = [np.concatenate([head, base]).mean()]
    assert permutation_p(np.append(head, mean), np.append(base, mean)) == pytest.approx(exact, rel=0.3)


def test_starts_with_more_trials_do_not_count_as_worse():
    head, base = sum_by_start((np.ones(6), np.ones(3)), (np.array([0, 0, 0, 0, 1, 1]), np.array([2, 3, 4])))
    assert head == pytest.approx([0, 0])
    assert base == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("slow", [0.0, 1.1])
def test_false_alarms_with_slow_starts(slow):
    rng, small = np.random.default_rng(3), 0
    starts = np.repeat(np.arange(9), 4)
    for _ in range(400):
        head, base = (np.abs(rng.normal(0, 0.1, 36) + slow * (rng.random(9) < 0.2)[starts]) for _ in range(2))
        small += permutation_p(*sum_by_start((head, base), (starts, starts))) <= 0.05
    assert small <= 32  # a larger count has a probability of 0.3 % with 20 expected
