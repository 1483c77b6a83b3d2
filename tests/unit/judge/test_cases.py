"""Changes of a metric by goal."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.judge.summary import CaseNumbers, numbers_by_case, slowest_stages
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import TrialSet, to_series
from tests.builders.trials import failed_trial, trial, trial_set

T1 = METRICS["T1"].description


def run(failed: str = "", /, **values: float) -> TrialSet:
    """Three trials of each goal, T1 in ms, and three failed ones of one goal."""
    trials = [trial(index, {"T1": value}, goal=goal) for goal, value in values.items() for index in range(3)]
    return trial_set([*trials, *(failed_trial(9 + number, goal=failed) for number in range(3 if failed else 0))])


def cases(base: TrialSet | None, head: TrialSet) -> tuple[CaseNumbers, ...]:
    return numbers_by_case(to_series(head, T1), None if base is None else to_series(base, T1))


def ratios(found: tuple[CaseNumbers, ...]) -> dict[str, float]:
    return {each.case: math.exp(each.shift.estimate) for each in found if each.shift is not None}


def test_worst_case_comes_first():
    found = ratios(cases(run(near=10.0, far=20.0), run(near=15.0, far=40.0)))
    assert list(found.items()) == [("far", pytest.approx(2.0)), ("near", pytest.approx(1.5))]


def test_case_of_one_version_is_left_out():
    found = ratios(cases(run(near=10.0, far=20.0, old=1.0), run(near=15.0, far=40.0, new=1.0)))
    assert found.keys() == {"far", "near"}


def test_failing_is_the_worst_change():
    found = cases(run(near=10.0, far=20.0), run("near", near=1.0, far=10.0))
    assert [each.case for each in found] == ["near", "far"]
    assert ratios(found)["near"] == math.inf


def test_cases_of_one_version_alone_are_the_slowest_first():
    assert [each.case for each in cases(None, run("near", near=10.0, far=20.0, there=15.0))] == ["near", "far", "there"]


def test_slowest_stage_of_each_case():
    trials = [
        trial(0, {}, goal="near", segments_ns={"planning": {"latency": 9, "search": 5, "goals": 4}}),
        trial(1, {}, goal="near", segments_ns={"planning": {"latency": 9, "goals": 9}}),
        trial(2, {}, goal="far", segments_ns={"planning": {"latency": 9, "search": 9}}),
        failed_trial(3, goal="far", segments_ns={"planning": {"latency": 99, "goals": 99}}),
    ]
    assert slowest_stages(trial_set(trials), "planning") == {"near": "goals", "far": "search"}
