"""`ldos planning` on made-up plans."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import ConfigurationError
from tests.builders.command_line import invoke_ldos, lines_of
from tests.builders.plans import planned_suite

SETTINGS = """
[tool.ldos.stack]
kind = "ros2"
launch_file = "planning.launch.py"
stimulus = "plan"
[tool.ldos.stimulus.plan]
problems = "problems.yaml"
"""
PROBLEMS = """
problems:
  - {name: problem 0, start: {a: 0.0}, goal: {joints: {a: 1.0}}}
  - {name: problem 1, start: {a: 0.0}, goal: {joints: {a: 1.0}}}
"""


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The scenarios that were measured, in a project with two problems."""
    specs = []
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "planning.launch.py").touch()
    (tmp_path / "problems.yaml").write_text(PROBLEMS)
    (tmp_path / "other.yaml").write_text(PROBLEMS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pytest_ldos.cli.starts.refuse_unable", lambda spec: None)

    def measure(spec, site, *, block):
        specs.append((spec, [*site.catalogue]))
        return planned_suite(1, problems=2, plans=spec.trials // 2, failing={0: 1}, session="")

    monkeypatch.setattr("pytest_ldos.cli.starts.measure_start", measure)
    return specs


def test_suite_of_the_settings_is_planned(asked):
    result = invoke_ldos("planning", "--plans", 4)
    ((spec, metrics),) = asked
    assert (spec.trials, spec.goals, spec.max_trials) == (8, "all", 0)
    assert metrics == ["T1", "path_length", "trajectory", "waypoints"]
    assert "solved: 7 of 8; worst: problem 0 3 of 4" in lines_of(result.stdout)
    assert any(line.startswith("problem 1 4 of 4 ") for line in lines_of(result.stdout))
    assert result.exit_code == 0


def test_other_file_and_planner(asked):
    invoke_ldos("planning", "other.yaml", "--planner", "PRM")
    plan = asked[0][0].stack.stimuli.plan
    assert (plan.problems, plan.planner) == ("other.yaml", "PRM")


def test_logs_of_ompl(asked, tmp_path):
    result = invoke_ldos("planning", "--ompl-log", "logs")
    assert lines_of(result.stdout)[-1] == "logs: logs"
    assert {each.name for each in tmp_path.glob("logs/*")} == {"problem 0.log", "problem 1.log"}


def test_unknown_set_is_refused(asked):
    with pytest.raises(ConfigurationError, match="shelf"):
        invoke_ldos("planning", "shelf")


def test_planner_that_dies_is_named(asked, monkeypatch):
    """After the first problem; the others have no plan."""

    def measure(spec, site, *, block):
        made = planned_suite(1, problems=2, plans=spec.trials // 2, session="")
        return dataclasses.replace(made, trials=made.trials[:1], incomplete="move_group was killed by SIGKILL")

    monkeypatch.setattr("pytest_ldos.cli.starts.measure_start", measure)
    result = invoke_ldos("planning", "--plans", 4)
    assert "move_group was killed by SIGKILL" in result.stdout
    assert result.exit_code == 11
