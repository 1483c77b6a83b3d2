"""Order of levels, and results of a search."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_ldos.campaign.bisection import Batch, Bisection, Exclusion, Finding, LevelScale, LevelState, SearchPlan

SCALE = LevelScale(low=1, high=1000)
PLAN = SearchPlan(scale=SCALE, boundary=0.5)
FOUR = PLAN.trials_per_start

Answer = Callable[[float], Batch]


def broken(level: float, share: float = 1.0) -> Batch:
    return Batch(level, FOUR, round(share * FOUR))


def step(threshold: float) -> Answer:
    return lambda level: broken(level, level > threshold)


def search(answer: Answer, plan: SearchPlan = PLAN) -> Bisection:
    bisection = Bisection(plan)
    while (level := bisection.next_level()) is not None:
        assert bisection.most_left > 0
        before = bisection.most_left
        bisection.add(answer(level))
        assert bisection.most_left <= before
    assert bisection.most_left == 0
    return bisection


def levels(bisection: Bisection) -> dict[float, LevelState]:
    return {each.level: each.standing for each in bisection.records.values()}


@pytest.mark.parametrize("threshold", [1.5, 20, 37, 650, 950])
def test_step_is_found_between_close_levels(threshold):
    bisection = search(step(threshold))
    assert bisection.finding is Finding.BREAKS
    assert bisection.holds.level <= threshold < bisection.breaks.level
    assert SCALE.is_near(bisection.holds.level, bisection.breaks.level)
    assert all(each.trials == PLAN.least_trials for each in bisection.records.values())
    assert len(bisection.records) <= PLAN.most_levels


def test_both_ends_come_first():
    visited = list(search(step(37)).records)
    assert visited[:3] == [1, 1000, SCALE.between(1, 1000)]


def test_search_goes_down_if_less_is_harsher():
    scale = LevelScale(low=1, high=1000, is_falling=True)
    bisection = search(lambda level: broken(level, level < 37), SearchPlan(scale=scale, boundary=0.5))
    assert next(iter(bisection.records)) == 1000
    assert bisection.breaks.level < 37 <= bisection.holds.level


def test_unbroken_range_is_tested_in_the_middle():
    bisection = search(lambda level: broken(level, 0))
    assert bisection.finding is Finding.HOLDS
    assert list(bisection.records) == [1, 1000, SCALE.between(1, 1000)]


def test_broken_calm_end_ends_the_search():
    bisection = search(broken)
    assert bisection.finding is Finding.BROKEN_WHEN_CALM
    assert list(bisection.records) == [1]


def test_inconclusive_calm_end_ends_the_search():
    bisection = search(lambda level: broken(level, 0.5))
    assert bisection.finding is Finding.UNDECIDED
    assert bisection.trials == 2 * PLAN.patience


def test_inconclusive_levels_widen_the_interval():
    def gradual(level: float) -> Batch:
        return broken(level, 0.5 if 20 < level < 60 else level > 30)

    bisection = search(gradual)
    inconclusive = [level for level, standing in levels(bisection).items() if standing is LevelState.UNDECIDED]
    assert inconclusive
    assert all(20 < level < 60 for level in inconclusive)
    assert bisection.holds.level <= 20
    assert bisection.breaks.level >= 60
    assert all(bisection.records[level].trials == PLAN.patience for level in inconclusive)


def test_harsher_level_that_holds_is_a_contradiction():
    """It breaks between 30 and 100, and holds again above."""
    bisection = search(lambda level: broken(level, 30 < level < 100))
    assert bisection.contradictions[0].level == 1000
    assert bisection.finding is Finding.BREAKS
    assert bisection.holds.level <= 30 < bisection.breaks.level


def test_one_level_above_the_threshold_is_tested():
    bisection = search(step(1.5))
    last = list(bisection.records)[-1]
    assert last > bisection.breaks.level
    assert bisection.contradictions == []


def test_search_continues_at_the_reached_level():
    def reaching(level: float) -> Batch:
        short = Batch(level, exclusion=Exclusion.UNREACHED, reason="it reached 80", achieved=80.0)
        return short if level > 80 else step(37)(level)

    bisection = search(reaching)
    visited = list(bisection.records)
    assert visited[:3] == [1, 1000, 72]
    assert levels(bisection)[1000] is LevelState.UNREACHED
    assert bisection.finding is Finding.BREAKS
    assert bisection.holds.level <= 37 < bisection.breaks.level


def test_level_that_holds_up_to_the_reach_is_no_threshold():
    def reaching(level: float) -> Batch:
        return Batch(level, exclusion=Exclusion.UNREACHED, achieved=80.0) if level > 80 else broken(level, 0)

    bisection = search(reaching)
    assert bisection.finding is Finding.OUT_OF_REACH
    assert bisection.holds.level == 72
    assert bisection.ceiling.level > 80


def test_unknown_reach_is_bisected():
    bisection = search(lambda level: Batch(level, exclusion=Exclusion.UNREACHED) if level > 80 else broken(level, 0))
    assert bisection.finding is Finding.OUT_OF_REACH
    assert SCALE.is_near(bisection.holds.level, bisection.ceiling.level)
    assert bisection.starts < 20


def test_failed_start_is_repeated():
    tries: dict[float, int] = {}

    def failing(level: float) -> Batch:
        tries[level] = tries.get(level, 0) + 1
        is_excluded = tries[level] == 1
        return Batch(level, exclusion=Exclusion.NOT_STARTED, reason="no") if is_excluded else step(37)(level)

    assert search(failing).finding is Finding.BREAKS


def test_level_without_starts_is_bypassed():
    middle = SCALE.between(1, 1000)
    bisection = search(
        lambda level: Batch(level, exclusion=Exclusion.NOT_STARTED) if level == middle else step(middle)(level)
    )
    assert levels(bisection)[middle] is LevelState.NOT_STARTED
    assert len(bisection.records[middle].batches) == 2
    assert bisection.holds.level < middle < bisection.breaks.level


def test_calm_end_without_starts_cannot_be_measured():
    bisection = search(lambda level: Batch(level, exclusion=Exclusion.NOT_STARTED, reason="it did not start"))
    assert bisection.finding is Finding.UNMEASURED
    assert bisection.starts == 2


def test_single_excluded_start_is_tolerated():
    seen: list[float] = []

    def once(level: float) -> Batch:
        seen.append(level)
        return Batch(level, exclusion=Exclusion.UNREACHED) if len(seen) == 2 else step(37)(level)

    assert search(once).finding is Finding.BREAKS


def test_trials_are_not_overspent():
    bisection = search(step(37), SearchPlan(scale=SCALE, boundary=0.5, max_trials=50))
    assert bisection.trials <= 50
    assert bisection.is_spent
    assert bisection.finding is Finding.BREAKS
    assert bisection.holds.level <= 37 < bisection.breaks.level


def test_one_trial_per_start_takes_fewer_trials():
    single = search(
        lambda level: Batch(level, 1, int(level > 37)), SearchPlan(scale=SCALE, boundary=0.5, trials_per_start=1)
    )
    assert single.finding is Finding.BREAKS
    assert single.trials < search(step(37)).trials


def test_higher_confidence_takes_more_trials():
    def trials(confidence: float) -> int:
        plan = SearchPlan(scale=SCALE, boundary=0.5, confidence=confidence, trials_per_start=1, calm_trials=1)
        return search(lambda level: Batch(level, 1, int(level > 37)), plan).trials

    assert trials(0.55) < trials(0.9) < trials(0.999)
