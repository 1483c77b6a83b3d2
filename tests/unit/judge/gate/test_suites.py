"""A suite of planning problems: times, paths and failures are judged apart, and each problem has equal weight."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ldos.judge.baseline import key as keys
from pytest_ldos.judge.baseline.store import Found, NotComparable, compare_with
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import Policy, find_failures
from pytest_ldos.judge.gate.verdict import Comparison, Verdict
from pytest_ldos.judge.judging import Grounds, Judged, judge
from tests.builders.plans import planned_suite
from tests.builders.trials import measured

BASE = planned_suite(1, is_head=False)
FILE = Path("baseline.json")


def judged(base=BASE, **changes) -> Judged:
    return judge(planned_suite(2, **changes), Grounds(policy=Policy(), base=Found(base, FILE), label="base"))


def found(result: Judged, metric: str) -> Comparison:
    comparison = result.result.comparison(metric)
    assert comparison is not None
    return comparison


def ratio(result: Judged, metric: str) -> float:
    comparison = found(result, metric)
    assert comparison.low < comparison.ratio < comparison.high
    return comparison.ratio


def test_faster_and_longer_is_reported_as_both():
    result = judged(time=0.8, path=1.2, slow={7: 3.0})
    assert result.result.verdict is Verdict.REGRESSED
    assert found(result, "T1").verdict is Verdict.IMPROVED
    assert found(result, "path_length").verdict is Verdict.REGRESSED
    assert ratio(result, "path_length") == pytest.approx(1.2, rel=0.05)
    assert ratio(result, "T1") == pytest.approx(0.8 * 3 ** (1 / 30), rel=0.05)


def test_large_change_of_two_problems_in_thirty_is_a_regression():
    """As if inverse kinematics became slower, which few problems need: their typical problem hardly changes."""
    base = planned_suite(1, is_head=False, scatter=0.1)
    head = planned_suite(2, slow={3: 4.8, 9: 1.9}, scatter=0.1)
    result = judge(head, Grounds(policy=Policy(), base=Found(base, FILE)))
    assert found(result, "T1").verdict is Verdict.REGRESSED
    assert ratio(result, "T1") == pytest.approx((4.8 * 1.9) ** (1 / 30), rel=0.03)
    assert [each.case for each in result.by_case["T1"][:2]] == ["problem 3", "problem 9"]


def test_few_extreme_plans_hardly_move_the_mean():
    """Ten plans of 300 that waited for something else."""
    trials = planned_suite(2, scatter=0.1)
    waited = [
        dataclasses.replace(each, measurements={**each.measurements, "T1": measured("T1", 5e4)})
        if each.index % 31 == 7
        else each
        for each in trials.trials
    ]
    base = planned_suite(1, is_head=False, scatter=0.1)
    result = judge(dataclasses.replace(trials, trials=tuple(waited)), Grounds(policy=Policy(), base=Found(base, FILE)))
    assert found(result, "T1").location is Verdict.PASSED


def test_slowest_problem_is_named_first():
    first, second, *_ = judged(time=0.8, path=1.2, slow={7: 3.0}).by_case["T1"]
    assert first.case == "problem 7"
    assert first.shift is not None
    assert first.shift.low > 0
    assert second.shift is not None
    assert second.shift.estimate < first.shift.estimate / 2


def test_equal_versions_pass():
    result = judged()
    assert result.result.verdict is Verdict.PASSED
    assert ratio(result, "T1") == pytest.approx(1.0, abs=0.06)


def test_failing_at_once_is_a_regression_and_no_speed():
    result = judged(time=0.8, failing={3: 9})
    (rise,) = (each for each in result.result.reasons if isinstance(each, why.FailuresRose))
    assert result.result.verdict is Verdict.REGRESSED
    assert (rise.base_failures, rise.head_failures) == (0, 9)
    assert found(result, "T1").verdict is Verdict.PASSED  # 20 % faster elsewhere
    assert result.by_case["T1"][0].case == "problem 3"


def test_problem_that_fails_is_left_out_of_the_mean_instead_of_lowering_it():
    slower = judged(slow={3: 2.0}, base=planned_suite(1, is_head=False, failing={3: 9}))
    assert ratio(slower, "T1") == pytest.approx(1.0, abs=0.06)


def test_problem_that_reaches_its_time_limit_in_half_of_its_plans_is_no_change():
    failing = {3: 5}
    result = judged(failing=failing, base=planned_suite(1, is_head=False, failing=failing))
    assert result.result.verdict is Verdict.PASSED
    assert ratio(result, "T1") == pytest.approx(1.0, abs=0.06)
    assert ratio(result, "path_length") == pytest.approx(1.0, abs=0.06)


def test_problem_that_begins_to_reach_its_time_limit_in_half_of_its_plans_comes_first():
    """So few failures of 300 plans are no verdict; the other problems' times are not touched."""
    result = judged(failing={3: 5})
    assert result.result.verdict is Verdict.PASSED
    assert result.by_case["T1"][0].case == "problem 3"
    assert ratio(result, "T1") == pytest.approx(1.0, abs=0.06)


def test_problems_have_equal_weight_however_many_of_their_plans_fail():
    """Half of the problems have longer paths, and lose most of their plans."""
    half = range(15)
    failing = dict.fromkeys(half, 4)
    result = judged(
        long=dict.fromkeys(half, 1.5), failing=failing, base=planned_suite(1, is_head=False, failing=failing)
    )
    assert ratio(result, "path_length") == pytest.approx(1.5**0.5, rel=0.04)


def with_names(changes, **more):
    plain = planned_suite(1, is_head=False, session="", **more)
    trials = tuple(dataclasses.replace(each, **changes.get(each.goal, {})) for each in plain.trials)
    return dataclasses.replace(plain, trials=trials)


def test_changed_suite_is_not_comparable_with_its_baseline():
    baseline = with_names({})
    head = with_names({"problem 2": {"content": "moved"}, "problem 4": {"goal": "new"}})
    result = compare_with(head, baseline, FILE)
    assert result == NotComparable(
        keys.OtherProblems(FILE, ("problem 2 changed", "new is new", "problem 4 is gone")), is_ours=True
    )
    verdict = judge(head, Grounds(policy=Policy(), base=result)).result
    assert verdict.verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize(("problems", "plans"), [(30, 1), (30, 10)])
def test_equal_suite_is_comparable_with_its_baseline(problems, plans):
    found = compare_with(with_names({}, problems=problems, plans=plans), with_names({}), FILE)
    assert isinstance(found, Found)


def test_shorter_run_of_a_suite_is_no_other_suite():
    short = with_names({}, plans=1)
    short = dataclasses.replace(short, trials=short.trials[:8])
    assert isinstance(compare_with(short, with_names({}), FILE), Found)


def test_failures_of_many_problems_are_one_reason():
    few, many = (find_failures(planned_suite(1, failing=dict.fromkeys(range(count), 1))) for count in (5, 6))
    assert [(each.goal, each.numbers) for each in few] == [(f"problem {number}", (number + 1,)) for number in range(5)]
    assert [(each.goal, each.numbers) for each in many] == [("", (1, 2, 3, 4, 5, 6))]
