"""The interval of a breaking point holds the threshold as often as it says, for steep and shallow changes."""

from __future__ import annotations

import math
from statistics import NormalDist, fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.breaking_point import SCALE, STACKS, search, search_naively, simulate
from pytest_ldos.campaign.bisection import Batch, Bisection, Finding, LevelScale, LevelState, SearchPlan, Spacing

SEARCHES = 60
CONFIDENCE = 0.8
PLAN = SearchPlan(scale=SCALE, boundary=0.5, confidence=CONFIDENCE)


def coverage(found) -> float:
    return fmean(each.covers(stack.threshold) for stack, each in found)


@pytest.mark.parametrize("kind", ["a step", "steep", "medium", "shallow", "medium, starts differ by half"])
def test_interval_contains_the_threshold_as_often_as_stated(kind):
    """Binomial: of 60 searches, fewer than 40 would cover in one of 200 such tests if 80 % did."""
    assert coverage(simulate(lambda stack, rng: search(stack, rng, PLAN), kind, SEARCHES)) >= 40 / SEARCHES


def test_interval_coverage_with_a_fifth_of_failures():
    """The threshold is then where a fifth of the trials break, below the middle of the change."""
    plan, sd = SearchPlan(scale=SCALE, boundary=0.2, confidence=CONFIDENCE, max_trials=600), STACKS["medium"][0]
    found = simulate(lambda stack, rng: search(stack, rng, plan), "medium", SEARCHES)
    covered = [each.covers(stack.threshold * math.exp(sd * NormalDist().inv_cdf(0.2))) for stack, each in found]
    assert fmean(covered) >= 40 / SEARCHES


def test_fixed_numbers_of_trials_exceed_the_stated_error():
    naive = simulate(lambda stack, rng: search_naively(stack, rng, PLAN), "medium", SEARCHES)
    assert coverage(naive) < 0.5


def test_starts_of_one_trial_need_no_assumed_correlation():
    """Even where starts differ twice as much as trials."""
    single = SearchPlan(scale=SCALE, boundary=0.5, confidence=CONFIDENCE, trials_per_start=1)
    kind = "shallow, starts differ twice as much"
    assert coverage(simulate(lambda stack, rng: search(stack, rng, single), kind, SEARCHES)) >= 40 / SEARCHES


def test_step_takes_the_minimum_number_of_trials():
    found = simulate(lambda stack, rng: search(stack, rng, PLAN), "a step", SEARCHES)
    assert all(each.width <= 0.101 for _, each in found)
    assert all(
        each.trials == PLAN.least_trials * each.starts / (PLAN.least_trials / PLAN.trials_per_start)
        for _, each in found
    )
    assert set(STACKS) >= {"a step", "shallow"}


SCALES = st.builds(
    LevelScale,
    low=st.integers(1, 50),
    high=st.integers(51, 5000),
    spacing=st.sampled_from(Spacing),
    precision=st.sampled_from([0.05, 0.2, 1.0]),
    is_whole=st.booleans(),
    is_falling=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(scale=SCALES, where=st.floats(0, 1), boundary=st.sampled_from([0.2, 0.5, 0.8]))
def test_step_is_found_at_any_place(scale, where, boundary):
    plan = SearchPlan(scale=scale, boundary=boundary, max_trials=10_000)
    bisection = Bisection(plan)
    while (level := bisection.next_level()) is not None:
        bisection.add(Batch(level, 4, 4 * (scale.place(level) > where)))
    assert len(bisection.records) <= plan.most_levels
    if where < 1:
        assert bisection.finding is Finding.BREAKS
        assert scale.place(bisection.holds.level) <= where < scale.place(bisection.breaks.level)
        assert scale.between(bisection.holds.level, bisection.breaks.level) is None
    else:
        assert bisection.finding is Finding.HOLDS


@settings(max_examples=60, deadline=None)
@given(shares=st.lists(st.integers(0, 5), min_size=400, max_size=400), spent=st.integers(20, 300))
def test_search_always_ends_within_its_trials(shares, spent):
    """5 stands for a start that comes to nothing."""
    from pytest_ldos.campaign.bisection import Exclusion

    bisection, starts = Bisection(SearchPlan(scale=SCALE, boundary=0.5, max_trials=spent)), iter(shares)
    while (level := bisection.next_level()) is not None:
        share = next(starts)
        bisection.add(Batch(level, exclusion=Exclusion.NOT_STARTED) if share == 5 else Batch(level, 4, share))
    assert bisection.trials <= spent
    sound, broken = bisection.holds, bisection.breaks
    if sound is not None and broken is not None:
        assert sound.level < broken.level
    assert all(each.standing is not LevelState.OPEN for each in bisection.records.values()) or bisection.is_spent
