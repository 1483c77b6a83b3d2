"""Matching of values by question, as far as questions explain them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pytest_ldos.base.stats.adjust import match
from pytest_ldos.base.stats.rank_tests import estimate_shift
from tests.builders.representatives import representatives


def asked(count, *, start=0):
    return np.array([f"reach {seed}" for seed in range(start, start + count)])


def together(count):
    return np.zeros(count, dtype=np.int64)


def matched(head, base, *, questions=None, groups=None):
    sides = questions or (asked(len(head)), asked(len(base)))
    return match((head, base), sides, groups or (together(len(head)), together(len(base))))


def drawn(rng, count, *, correlation, shift=0.0):
    level = rng.normal(0, np.sqrt(correlation), count)
    head, base = (level + rng.normal(0, np.sqrt(1 - correlation), count) for _ in range(2))
    return head + shift, base


def test_fully_explained_values_are_compared_in_pairs():
    """The estimate equals that of Walsh averages of differences, and the variance that of the paired t-test."""
    rng = np.random.default_rng(1)
    levels = rng.normal(0, 100, 40)
    head, base = levels + rng.normal(0.5, 1, 40), levels + rng.normal(0, 1, 40)
    found = matched(head, base)
    assert found.correlation > 0.999
    left = found.remove_levels((head, base))
    differences = head - base
    first, second = np.triu_indices(40)
    walsh = np.median((differences[first] + differences[second]) / 2)
    assert estimate_shift(*left, tail=0.1).estimate == pytest.approx(walsh, abs=0.05)
    pooled = sum(float(np.var(each, ddof=1)) for each in left) / 40
    paired = float(np.var(differences, ddof=1)) / 40
    assert pooled * found.inflation((head, base)) == pytest.approx(paired, rel=0.02)
    assert found.spent((head, base), levels=0) == pytest.approx(39, abs=0.01)
    assert stats.ttest_rel(head, base).pvalue < 0.05 < stats.ttest_ind(head, base).pvalue


def test_unexplained_values_are_hardly_matched():
    rng = np.random.default_rng(2)
    seen = [matched(*drawn(rng, 10, correlation=0.0)) for _ in range(300)]
    assert np.mean([each.correlation for each in seen]) < 0.06
    assert np.mean([each.correlation == 0 for each in seen]) > 0.75


@pytest.mark.parametrize("correlation", representatives([0.0, 0.5, 0.95], 2))
@pytest.mark.parametrize("count", representatives([10, 30], 1))
def test_variance_of_the_difference_is_the_residual_one(correlation, count):
    rng = np.random.default_rng([int(100 * correlation), count])
    ratios = []
    for _ in range(400):
        values = drawn(rng, count, correlation=correlation)
        found = matched(*values)
        left = found.remove_levels(values)
        claimed = found.inflation(values) * sum(float(np.var(each, ddof=1)) for each in left) / count
        ratios.append(claimed / (2 * (1 - correlation) / count))
    assert np.mean(ratios) > 0.9
    assert np.mean(ratios) < {0.0: 1.1, 0.5: 1.7, 0.95: 1.5 if count == 10 else 1.2}[correlation]


def test_version_with_other_answers_is_not_matched():
    """Head's plan for each seed differs, so that the base's seeds do not predict it."""
    rng = np.random.default_rng(3)
    levels = rng.normal(0, 10, 20)
    base = levels + rng.normal(0, 0.1, 20)
    head = rng.permutation(levels) + rng.normal(0, 0.1, 20)
    found = matched(head, base)
    assert found.correlation < 0.3


def test_common_effects_of_pairs_are_no_property_of_a_question():
    rng = np.random.default_rng(4)
    pairs = np.repeat(np.arange(10), 2)
    drift = np.repeat(rng.normal(0, 10, 10), 2)
    head, base = (drift + rng.normal(0, 1, 20) for _ in range(2))
    assert matched(head, base).correlation > 0.9
    assert matched(head, base, groups=(pairs, pairs)).correlation < 0.5


def test_shift_is_kept_up_to_rounding():
    rng = np.random.default_rng(5)
    head, base = drawn(rng, 12, correlation=0.9)
    found, moved = matched(head, base), matched(head + 3, base)
    assert moved.correlation == pytest.approx(found.correlation)
    before, after = found.remove_levels((head, base)), moved.remove_levels((head + 3, base))
    assert np.allclose(after[0] - before[0], 3)
    assert np.allclose(after[1], before[1])


def test_values_without_partner_are_not_changed():
    rng = np.random.default_rng(6)
    head, base = drawn(rng, 12, correlation=0.95)
    head[3] = np.inf
    questions = asked(12), asked(12, start=2)
    found = matched(head[:12], np.roll(base, -2), questions=questions)
    assert found.correlation > 0.5
    left = found.remove_levels((head, np.roll(base, -2)))
    assert left[0][:2].tolist() == head[:2].tolist()
    assert np.isinf(left[0][3])
    assert left[1][-2:].tolist() == np.roll(base, -2)[-2:].tolist()


def test_without_questions_nothing_is_matched():
    rng = np.random.default_rng(7)
    head, base = drawn(rng, 12, correlation=0.95)
    nothing = np.array([""] * 12)
    found = matched(head, base, questions=(nothing, nothing))
    assert found.correlation == 0
    assert found.inflation((head, base)) == 1
    assert found.spent((head, base), levels=0) == 0
