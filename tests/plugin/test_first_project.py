"""The project that ``ldos init`` makes, on a fake stack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/first_project"


@pytest.fixture
def first(project):
    (project.path / "test_scenario.py").unlink()
    for name in ("pyproject.toml", "test_arm.py"):
        shutil.copy(EXAMPLE / name, project.path / name)
    return project


def test_first_run_is_the_baseline_of_the_second(run, first):
    assert run("-m", "baseline", "-p", "no:cacheprovider").ret == 0
    second = run("-m", "baseline", "-p", "no:cacheprovider", stack="noisy(2)")
    second.stdout.fnmatch_lines(["baseline: passed; 10 of 10 trials succeeded*"])


def test_scenario_declared_in_settings_has_a_test(run, first):
    result = run("-m", "busy_cell", "--collect-only", "-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["test_arm.py::test_reach_in_a_busy_cell"])
