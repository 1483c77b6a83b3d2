"""The answer of a search over commits holds the commit that brought the regression as often as it says."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.bisecting import COMMITS, search, search_naively, simulate
from pytest_ldos.campaign.bisection import Batch, Bisection, Finding
from pytest_ldos.campaign.commit_rounds import CommitScale, plan_search, without

SEARCHES = 40
PLAN = plan_search(COMMITS)


def run(kind, searches=SEARCHES):
    return simulate(lambda history, rng: search(history, rng, PLAN), kind, searches)


@pytest.mark.parametrize("kind", ["a step of 15 %, CV 10 %", "the same, starts differ by 5 %"])
def test_answer_contains_the_commit_as_often_as_stated(kind):
    """Binomial: of 40 searches, fewer than 35 would in one of 60 such tests if 95 % did."""
    found = run(kind)
    assert sum(each.covers(history) for history, each in found) >= 35
    assert fmean(each.trials for _, each in found) < 900
    assert fmean(each.commits for _, each in found) < 1.5


def test_without_a_step_there_is_no_answer():
    assert not any(each.is_found for _, each in run("no step, CV 10 %"))


def test_answer_contains_one_of_two_steps():
    """A commit between them is evidence against both GOOD and BAD: it is inconclusive, and not blamed."""
    found = run("two steps of 10 %, CV 10 %")
    assert sum(each.covers(history) for history, each in found) >= 35


def test_fixed_number_of_trials_exceeds_the_stated_error():
    naive = simulate(
        lambda history, rng: search_naively(history, rng, COMMITS, trials=4, per_start=4),
        "a step of 15 %, CV 10 %",
        SEARCHES,
    )
    assert fmean(each.covers(history) for history, each in naive) < 0.8


@pytest.mark.acceptance
def test_commit_is_found_in_95_percent_of_a_thousand_searches():
    found = run("a step of 15 %, CV 10 %", 1000)
    assert fmean(each.covers(history) for history, each in found) >= 0.95


@settings(max_examples=80, deadline=None)
@given(data=st.data(), commits=st.integers(1, 300))
def test_clear_step_is_found_at_any_place_despite_skipped_commits(data, commits):
    first = data.draw(st.integers(1, commits))
    left_out = data.draw(st.sets(st.integers(1, max(1, commits - 1)), max_size=8)) - {commits}
    plan = without(plan_search(commits, max_trials=10_000), {float(each) for each in left_out})
    bisection = Bisection(plan)
    while (place := bisection.next_level()) is not None:
        assert place not in left_out
        is_slow = place >= first
        bisection.add(Batch(place, 4, 4 * is_slow, sound=4 * (not is_slow) if place != commits else None))
    assert bisection.finding is Finding.BREAKS
    low, high = bisection.holds.level, bisection.breaks.level
    assert low < first <= high
    assert set(range(int(low) + 1, int(high))) <= left_out
    assert len(bisection.records) <= plan.most_levels


def test_search_starts_in_the_middle():
    scale = CommitScale(high=8.0, left_out=frozenset({4.0, 5.0}))
    assert scale.between(0, 8) == 3
    assert scale.between(3, 6) is None
    assert [CommitScale(high=float(each)).halvings() for each in (1, 2, 3, 4, 5, 32, 33)] == [0, 1, 2, 2, 3, 5, 6]
