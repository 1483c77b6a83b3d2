"""Changes of a metric by goal."""

from __future__ import annotations

import pytest

from pytest_ldos.judge.summary import changes_by_case
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report.sentences import describe_cases
from tests.builders.trials import failed_trial, trial, trial_set

T1 = METRICS["T1"].description


def run(**values: float) -> TrialSet:
    """Three trials of each goal, T1 in ms."""
    trials = [trial(index, {"T1": value}, goal=goal) for goal, value in values.items() for index in range(3)]
    return trial_set([*trials, failed_trial(9, goal="near")])


def test_worst_case_comes_first():
    changes = changes_by_case(run(near=10.0, far=20.0), run(near=15.0, far=40.0), T1)
    assert list(changes.items()) == [("far", pytest.approx(1.0)), ("near", pytest.approx(0.5))]


def test_case_of_one_version_is_left_out():
    assert changes_by_case(run(near=10.0, far=20.0, old=1.0), run(near=15.0, far=40.0, new=1.0), T1).keys() == {
        "far",
        "near",
    }


def test_single_case_is_not_broken_down():
    assert changes_by_case(run(near=10.0), run(near=15.0), T1) == {}


def test_only_worst_cases_are_shown():
    changes = {f"problem {number}": 0.1 * number for number in range(8, 0, -1)}
    described = describe_cases("T1", changes)
    assert described.startswith("T1 by goal, the worst 5 of 8: problem 8 +80.0 %, problem 7 +70.0 %")
    assert described.count("%") == 5
