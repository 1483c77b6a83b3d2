"""Sequential tests against a boundary keep their error probability for any number of looks."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.stats.several_tests import BoundaryTest, Side

TRIALS = 150


def wrong_calls(test: BoundaryTest, probability: float, side: Side) -> float:
    """Exact probability that a side is ever chosen within the given number of independent trials."""
    pending, called = {0: 1.0}, 0.0
    for trials in range(1, TRIALS + 1):
        then: dict[int, float] = {}
        for hits, chance in pending.items():
            for step, share in ((1, probability), (0, 1 - probability)):
                then[hits + step] = then.get(hits + step, 0.0) + chance * share
        decided = {hits for hits in then if test.log_evidence(hits, trials, side) >= -np.log(test.error)}
        called += sum(then[hits] for hits in decided)
        pending = {hits: chance for hits, chance in then.items() if hits not in decided}
    return called


@pytest.mark.parametrize("boundary", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("side", list(Side))
def test_error_at_the_boundary_is_at_most_the_stated_one(boundary, side):
    found = wrong_calls(BoundaryTest(boundary, 0.1), boundary, side)
    assert 0.01 < found <= 0.1


def test_error_beyond_the_boundary_is_smaller():
    test = BoundaryTest(0.5, 0.1)
    assert wrong_calls(test, 0.6, Side.BELOW) < wrong_calls(test, 0.5, Side.BELOW)
    assert wrong_calls(test, 0.4, Side.ABOVE) < wrong_calls(test, 0.5, Side.ABOVE)


def test_clear_cases_are_decided_early():
    test = BoundaryTest(0.5, 0.01)
    assert test.fewest_trials == 8
    assert test.decide(0, 8) is Side.BELOW
    assert test.decide(8, 8) is Side.ABOVE
    assert test.decide(0, 7) is None
    assert test.decide(0, 0) is None
    assert test.decide(50, 100) is None


def test_fewest_trials_depend_on_the_boundary():
    """Proof of a success rate above 0.9 takes many successes; proof of less, few failures."""
    test = BoundaryTest(0.1, 0.01)
    assert test.decide(0, test.fewest_trials) is Side.BELOW
    assert test.fewest_trials > 40
    assert test.decide(3, 3) is Side.ABOVE


def test_exponent_below_one_takes_more_trials():
    assert BoundaryTest(0.5, 0.01, 0.5).fewest_trials == 16


def test_interval_contains_the_share_and_narrows():
    test = BoundaryTest(0.5, 0.05)
    assert test.interval(0, 0) == (0.0, 1.0)
    assert test.interval(0, 10)[0] == 0.0
    assert test.interval(10, 10)[1] == 1.0
    few, many = test.interval(3, 10), test.interval(30, 100)
    assert few[0] < many[0] < 0.3 < many[1] < few[1]


def test_interval_agrees_with_the_test():
    """The interval excludes a value exactly when the two-sided mixture does."""
    rng = np.random.default_rng(0)
    test, missed, runs = BoundaryTest(0.5, 0.1), 0, 100
    for _ in range(runs):
        hits = np.cumsum(rng.random(100) < 0.3)
        looks = (test.interval(int(hits[n - 1]), n) for n in range(5, 101, 5))
        missed += any(not low <= 0.3 <= high for low, high in looks)
    assert missed / runs <= 0.1


@pytest.mark.parametrize("wrong", [(0.0, 0.1, 1.0), (1.0, 0.1, 1.0), (0.5, 0.0, 1.0), (0.5, 0.1, 0.0), (0.5, 0.1, 1.1)])
def test_invalid_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match="no test"):
        BoundaryTest(*wrong)


def test_evidence_for_both_sides_is_inconclusive():
    """Two statistics of one trial can count for both sides."""
    test = BoundaryTest(0.5, 0.01)
    assert test.decide(0, 16, misses=0) is None
    assert test.decide(16, 16, misses=16) is None
    assert test.decide(16, 16, misses=14) is None
    assert test.decide(16, 16, misses=8) is Side.ABOVE
    assert test.decide(8, 16, misses=16) is Side.BELOW
    assert all(test.decide(hits, 16) is test.decide(hits, 16, misses=16 - hits) for hits in range(17))
