"""Metrics that the settings name, as the user meets them: in the record, in the gate, in the report, and refused."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.measure.trial.artifacts import read_trials

SETTINGS = """
metrics = ["path:goal:p50", "cpu:planner", "memory:*"]

[gate]
floors = { cpu_planner = 5.0 }
"""
QUICK = ("--ldos-trials=12", "--ldos-warmup=0")


@pytest.fixture
def settings(project):
    return project.path.joinpath("ldos.toml").write_text


def test_declared_metrics_are_in_every_output(run, project, settings):
    settings(SETTINGS)
    run(*QUICK, "--ldos-report=report.json", "--ldos-history=kept").stdout.fnmatch_lines(
        ["*path_goal_p50 *ms*", "*memory_all *MB*"]
    )
    (file,) = project.path.glob(".ldos/runs/*/baseline/trials.json")
    asked = {metric.name: metric.asked_as for metric in read_trials(file).metrics if metric.asked_as}
    assert asked == {"path_goal_p50": "path:goal:p50", "cpu_planner": "cpu:planner", "memory_all": "memory:*"}
    (section,) = json.loads((project.path / "report.json").read_text())["sections"]
    reported = {each["name"]: each for each in section["metrics"]}
    assert reported["cpu_planner"]["title"] == "CPU time of planner"
    assert reported["memory_all"]["head"]["median"] > 10
    kept = HistoryStore(project.path / "kept").read().table
    assert set(asked) <= set(kept["metric"])
    slower = run(*QUICK, stack="noisy(2, settle=4.0)")
    assert slower.ret == exit_codes.REGRESSED
    slower.stdout.fnmatch_lines(["*path_goal_p50 (goal, p50) regressed: +*"])
    slower.stdout.no_fnmatch_line("*cpu_planner*regressed*")


def test_unknown_process_fails_the_test_with_the_existing_ones(run, project, settings):
    settings('metrics = ["cpu:planer"]\n')
    result = run(*QUICK)
    result.stdout.fnmatch_lines(
        [
            "*metric 'cpu:planer': no process of the stack is called 'planer'; it has planner*",
            "*did you mean 'planner'*",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (file,) = project.path.glob(".ldos/runs/*/baseline/trials.json")
    assert read_trials(file).trials == ()


OWN = """
metrics = ["span:arm:solve:arm:solved", "interval:arm:solved:max", "value:arm:solved:cost:p90", "count:arm:solve"]
"""


@pytest.mark.acceptance
def test_planted_slowdown_between_own_tracepoints_is_red(run, project, settings):
    settings(OWN)
    first = run(*QUICK, "--ldos-report=report.json", "--ldos-history=kept", stack="noisy(1, solve_ms=4)")
    assert first.ret == 0
    first.stdout.fnmatch_lines(["*span_arm_solve_arm_solved_p50: 12 begins without an end, 0 ends without a begin*"])
    (file,) = project.path.glob(".ldos/runs/*/baseline/trials.json")
    for trial in read_trials(file).trials:
        found = {name: each.number for name, each in trial.measurements.items() if "arm" in name}
        assert found["interval_arm_solved_max"] == pytest.approx(found["span_arm_solve_arm_solved_p50"] + 1, abs=1e-5)
        assert found["value_arm_solved_cost_p90"] == pytest.approx(13.6)
        assert found["count_arm_solve"] == 6
    (section,) = json.loads((project.path / "report.json").read_text())["sections"]
    reported = {each["name"]: each["title"] for each in section["metrics"]}
    assert reported["span_arm_solve_arm_solved_p50"] == "arm:solve to arm:solved, p50"
    assert set(reported) <= set(HistoryStore(project.path / "kept").read().table["metric"])
    assert run(*QUICK, stack="noisy(2, solve_ms=4)").ret == 0
    slower = run(*QUICK, stack="noisy(3, solve_ms=6)")
    assert slower.ret == exit_codes.REGRESSED
    slower.stdout.fnmatch_lines(["*span_arm_solve_arm_solved_p50 (arm:solve to arm:solved, p50) regressed: +*"])
    slower.stdout.no_fnmatch_line("*T1*regressed*")


def test_unknown_own_event_is_reported_with_the_nearest(run, project, settings):
    settings('metrics = ["count:arm:solev"]\n')
    result = run(*QUICK, stack="noisy(1, solve_ms=4)")  # declares its events when it first emits, in a trial
    result.stdout.fnmatch_lines(["*the trace has no event arm:solev: did you mean 'arm:solve'?*"])


def test_value_that_is_not_a_metric_ends_the_run_before_it_begins(run, settings):
    settings('metrics = ["cpo:planner"]\n')
    result = run(*QUICK)
    result.stderr.fnmatch_lines(["*'cpo:planner' does not begin with a kind of metric*", "*did you mean 'cpu'*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
