"""Scores of dispersion and tail."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.stats.adjust import IN_TAIL, around_medians, klotz_scores, tail_scores, tail_threshold

RNG = np.random.default_rng(1)
NARROW, WIDE = RNG.normal(3, 1, 50), RNG.normal(5, 2, 50)


def test_a_shift_changes_no_score():
    one, other = (klotz_scores(around_medians((WIDE + shift, NARROW))) for shift in (0.0, 100.0))
    assert one[0] == pytest.approx(other[0])
    assert one[1] == pytest.approx(other[1])


def test_the_wider_sample_scores_higher():
    wide, narrow = klotz_scores(around_medians((WIDE, NARROW)))
    assert wide.mean() > 2 * narrow.mean()


def test_outlier_scores_only_by_its_rank():
    far, farther = (np.append(NARROW, value) for value in (50.0, 5000.0))
    one, other = (klotz_scores(around_medians((values, NARROW))) for values in (far, farther))
    assert one[0] == pytest.approx(other[0])


def test_equal_distances_share_their_rank():
    scores, _ = klotz_scores((np.array([-1.0, 1.0, 0.0]), np.array([2.0])))
    assert scores[0] == scores[1]


def test_tail_has_a_fixed_number_of_values():
    centered = around_medians((WIDE, NARROW))
    head, base = tail_scores(centered)
    assert head.sum() + base.sum() == IN_TAIL
    assert head.sum() > base.sum()
    assert (centered[0] > tail_threshold(centered)).sum() == head.sum()
    assert tail_threshold((WIDE[:5], NARROW[:5])) == min(*WIDE[:5], *NARROW[:5])
