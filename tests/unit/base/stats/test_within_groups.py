"""Influences are removed within groups; differences between groups are kept."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.stats.adjust import remove_cause, remove_levels

GROUPS = np.repeat(np.arange(20), 10)


def test_influence_is_removed_and_difference_is_kept():
    rng = np.random.default_rng(1)
    cause, shift = rng.normal(0, 1, 200), 0.3 * (GROUPS >= 10)
    values = 2 + 0.8 * cause + shift + rng.normal(0, 0.01, 200)
    adjusted = remove_cause(values, cause, GROUPS)
    assert np.std(adjusted - shift) < 0.02
    assert adjusted[100:].mean() - adjusted[:100].mean() == pytest.approx(0.3, abs=0.01)


def test_cause_that_differs_only_between_groups_has_no_effect():
    values = np.random.default_rng(2).normal(0, 1, 200)
    assert np.array_equal(remove_cause(values, GROUPS.astype(float), GROUPS), values)


def test_unknown_causes_and_censored_values_are_not_changed():
    rng = np.random.default_rng(3)
    cause = rng.normal(0, 1, 200)
    values = 0.5 * cause
    cause[3], values[7] = np.nan, np.inf
    adjusted = remove_cause(values, cause, GROUPS)
    assert adjusted[3] == values[3]
    assert np.isinf(adjusted[7])
    assert np.isfinite(np.delete(adjusted, 7)).all()


def test_unknown_causes_change_nothing():
    values = np.ones(200)
    assert np.array_equal(remove_cause(values, np.full(200, np.nan), GROUPS), values)


def test_levels_of_strata_are_removed():
    strata = np.tile([1, 2], 100)
    values = np.where(strata == 2, 10.0, 1.0) + 0.1 * (GROUPS >= 10)
    adjusted = remove_levels(values, strata)
    assert np.ptp(adjusted[:100]) == pytest.approx(0)
    assert adjusted[150] - adjusted[50] == pytest.approx(0.1)


def test_influence_between_groups_can_be_kept():
    rng = np.random.default_rng(4)
    cause = rng.normal(0, 1, 200) + 2.0 * (GROUPS >= 10)
    values = 0.5 * cause
    adjusted = remove_cause(values, cause, GROUPS, within=True)
    assert adjusted[100:].mean() - adjusted[:100].mean() == pytest.approx(values[100:].mean() - values[:100].mean())
    assert np.std(adjusted[:10]) < 1e-9
