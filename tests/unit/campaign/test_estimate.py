"""Estimated duration of a run, from earlier ones."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.campaign.estimate import (
    GUESS,
    Amount,
    Cost,
    Expected,
    amount_alone,
    amount_interleaved,
    describe_expected,
    duration_files,
    measured_cost,
)
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.rig import DURATIONS_FILE, RunPhase, Spent, write_durations
from pytest_ldos.robot.stack.goals import REACH
from pytest_ldos.robot.stack.problems import count_problems
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.stimuli import PlanSpec, StimuliSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind

SPEC = ScenarioSpec(name="baseline", trials=10, max_trials=30, warmup=1)


def keep(output, number, *, scenario="baseline", stack="embedded", start_s=4.0, trial_s=3.0, warm_up_s=2.0):
    durations = {
        RunPhase.STARTING: Spent(10, 10 * start_s - 5),
        RunPhase.STOPPING: Spent(10, 5.0),
        RunPhase.WARM_UP: Spent(10, 10 * warm_up_s),
        RunPhase.TRIALS: Spent(20, 20 * trial_s - 9),
        RunPhase.HOMING: Spent(20, 5.0),
        RunPhase.READING: Spent(10, 4.0),
    }
    folder = output / f"runs/{number}" / scenario
    folder.mkdir(parents=True)
    write_durations(ScenarioFolder(folder), durations, stack=stack)


@pytest.mark.parametrize(
    ("trials", "size", "amount"),
    [
        (10, None, Amount(3, 3, 10)),
        (30, None, Amount(7, 7, 30)),
        (10, 10, Amount(1, 1, 10)),
        (30, 10, Amount(3, 3, 30)),
    ],
)
def test_a_run_alone_has_a_start_and_a_warm_up_for_each_block(trials, size, amount):
    assert amount_alone(SPEC, trials, size=size) == amount


@pytest.mark.parametrize(
    ("trials", "size", "amount"),
    [
        (10, None, Amount(10, 10, 20)),
        (30, None, Amount(30, 30, 60)),
        (10, 5, Amount(4, 4, 20)),
        (30, 5, Amount(12, 12, 60)),
    ],
)
def test_an_interleaved_run_has_a_start_and_a_warm_up_for_each_block(trials, size, amount):
    assert amount_interleaved(SPEC, trials, size=size) == amount


@pytest.fixture
def suite(tmp_path):
    file = tmp_path / "problems.yaml"
    problem = {"start": {"joint": 0.0}, "goal": {"joints": {"joint": 1.0}}}
    sets = ["easy"] * 4 + ["hard"] * 2
    problems = [{**problem, "name": str(number), "set": each} for number, each in enumerate(sets)]
    file.write_text(json.dumps({"group": "arm", "problems": problems}))
    plan = StimuliSpec(plan=PlanSpec(problems=str(file)))
    stack = StackSpec(kind=StackKind.EMBEDDED, stimulus=StimulusKind.PLAN, stimuli=plan)
    return ScenarioSpec(name="planning", trials=30, goals="all", stack=stack)


def test_problems_are_those_of_the_set(suite):
    assert count_problems(suite, suite.goals) == 6
    assert count_problems(suite, "hard") == 2
    assert count_problems(suite, (REACH,)) == 1
    assert count_problems(SPEC, SPEC.goals) == 1


def test_estimate_counts_the_starts_of_a_suite():
    assert amount_interleaved(SPEC, 60, size=None, problems=6) == Amount(28, 28, 120)
    assert amount_interleaved(SPEC, 60, size=2, problems=6) == Amount(60, 60, 120)
    assert amount_alone(SPEC, 60, size=None, problems=6) == Amount(8, 8, 60)


def test_no_estimate_before_the_first_run(tmp_path):
    assert measured_cost(duration_files(tmp_path), stack="embedded", scenario="baseline") is None


def test_cost_is_that_of_the_scenarios_last_runs(tmp_path):
    keep(tmp_path, 1, start_s=100.0)
    for number in range(2, 7):
        keep(tmp_path, number, start_s=4.0 + number)
    keep(tmp_path, 8, scenario="cpu_load", trial_s=50.0)
    keep(tmp_path, 9, stack="ros2-mock", trial_s=70.0)
    found = measured_cost(duration_files(tmp_path), stack="embedded", scenario="baseline")
    assert found == Cost(start_s=pytest.approx(8.0), warm_up_s=2.0, trial_s=pytest.approx(3.0))
    assert measured_cost(duration_files(tmp_path), stack="ros2", scenario="baseline").trial_s == pytest.approx(70.0)


def test_cost_of_another_scenario_is_the_fallback(tmp_path):
    keep(tmp_path, 1, scenario="cpu_load", trial_s=5.0)
    assert measured_cost(duration_files(tmp_path), stack="embedded", scenario="baseline").trial_s == pytest.approx(5.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stack": "embedded"}', '{"stack": "embedded", "phases": {"?": {}}}'])
def test_damaged_files_are_ignored(tmp_path, text):
    keep(tmp_path, 1)
    keep(tmp_path, 2, trial_s=99.0)
    (tmp_path / "runs/2/baseline" / DURATIONS_FILE).write_text(text)
    assert measured_cost(duration_files(tmp_path), stack="embedded", scenario="baseline").trial_s == pytest.approx(3.0)


def test_run_without_trials_is_ignored(tmp_path):
    folder = tmp_path / "runs/1/baseline"
    folder.mkdir(parents=True)
    write_durations(ScenarioFolder(folder), {RunPhase.STARTING: Spent(1, 60.0)}, stack="embedded")
    assert measured_cost(duration_files(tmp_path), stack="embedded", scenario="baseline") is None


def test_line_sums_all_scenarios_and_has_its_basis():
    cost = Cost(start_s=4.0, warm_up_s=2.0, trial_s=3.0)
    one = Expected(Amount(10, 10, 20), Amount(18, 18, 60), cost)
    assert describe_expected([one]) == (
        "about 2 min, up to 5 min with trials that are added: 10 stack starts of 6 s, 20 trials of 3 s (as measured here)"
    )
    alone = Expected(Amount(1, 2, 10), Amount(1, 2, 10), None)
    assert describe_expected([alone]) == (
        f"about 66 s: 1 stack start of {12 + 2 * 4.5:.0f} s, 10 trials of 4 s (a guess: this was not measured here yet)"
    )
    assert GUESS.of(alone.least) == pytest.approx(66.0)
    assert describe_expected([one, one]).startswith("about 4 min, up to 10 min with trials that are added: 20 stack")
