"""Profiles of a regression, as a user meets them; stacks and profiler are made up."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.command_line import run_ldos

SLOWER = "noisy(1, planning=1.6), base=noisy(2)"
FEW = ("--ldos-trials=10", "--ldos-base=./old")
ANNOUNCED = "*regressed: profiling 2 more starts of each version to find the cause, about * (--ldos-evidence)*"
ENDS = """
from tests.fakes.rig import FakeStack
made_up, trials = FakeStack._trial, []

def trial(self, goal_id, tag, motion):
    trials.append(tag)
    if len(trials) > 22:  # ten of each version, then the second profiled trial
        {end}
    return made_up(self, goal_id, tag, motion)

FakeStack._trial = trial
"""


@pytest.fixture
def regressed(project, forked):
    """Runs two versions; `more` is added to the conftest file."""
    python = project.path / "old/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()

    def run(*arguments: str, stack: str = SLOWER, profiler: str = "", more: str = "") -> pytest.RunResult:
        project.makeconftest(
            "from tests.fakes.rig import install, noisy, Motion\n"
            "from tests.fakes.profiler import install_profiler\n"
            f"install_profiler({profiler})\ninstall({stack})\n{more}"
        )
        return forked.run(project.path, *FEW, *arguments)

    return run


def sections(project, name="report.json"):
    return json.loads((project.path / name).read_text("utf-8"))["sections"]


def test_regression_is_profiled_and_the_function_is_in_every_report(project, regressed, monkeypatch):
    result = regressed(*(f"--ldos-report=report.{kind}" for kind in ("json", "md", "html")))
    assert result.ret == 10
    result.stdout.fnmatch_lines([ANNOUNCED])
    grown = (
        "*CPU time grew in planner: <b>|check_scene|</b>\\x1b[[]31m (arm/planner.py) 0.2 % → 25.0 % of all CPU time*"
    )
    result.stdout.fnmatch_lines(["*T1*regressed*", f"{grown}, called by run → plan"])
    assert "\x1b[31m (" not in result.stdout.str()
    (section,) = sections(project)
    (growth,) = section["evidence"]["grown"]
    assert (growth["process"], growth["file"]) == ("planner", "arm/planner.py")
    assert growth["base"] == pytest.approx(3 / 1203)
    assert growth["head"] == pytest.approx(400 / 1600)
    assert section["evidence"]["starts"] == 4
    assert "CPU time grew in planner: &lt;b&gt;|check_scene|" in (project.path / "report.html").read_text("utf-8")
    assert r"CPU time grew in planner: &lt;b&gt;\|check\_scene\|" in (project.path / "report.md").read_text("utf-8")
    assert list(project.path.glob(".ldos/runs/*/baseline/profile/difference.svg"))


def test_profiled_trials_are_not_kept_and_the_report_is_the_same_later(project, regressed, monkeypatch):
    regressed("--ldos-report=report.json", "--ldos-history=kept")
    (folder,) = project.path.glob(".ldos/runs/*/baseline")
    assert [len(read_trials(each).trials) for each in (folder, folder / "base")] == [10, 10]
    assert sorted(each.parent.name for each in folder.rglob("trials.json")) == ["base", "baseline"]
    assert len(list(folder.glob("profiled/blocks/*"))) == 4
    assert not list(folder.glob("profiled/blocks/*/trace"))
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
    monkeypatch.chdir(project.path)
    assert run_ldos("report", "--output", "again.json").returncode == 0
    assert sections(project, "again.json")[0]["evidence"] == sections(project)[0]["evidence"]


@pytest.mark.parametrize(
    ("arguments", "stack", "status"), [((), "noisy(1), base=noisy(2)", 0), (("--ldos-evidence=0",), SLOWER, 10)]
)
def test_no_profile_without_a_regression_or_when_switched_off(project, regressed, arguments, stack, status):
    result = regressed(*arguments, "--ldos-report=report.json", stack=stack)
    assert result.ret == status
    result.stdout.no_fnmatch_line("*profiling*")
    assert sections(project)[0]["evidence"] is None
    assert not list(project.path.glob(".ldos/runs/*/baseline/profile*"))


@pytest.mark.acceptance
def test_unchanged_functions_are_reported_as_waiting(project, regressed):
    result = regressed("--ldos-evidence=1", profiler="hot=3")
    result.stdout.fnmatch_lines(
        [
            "*regressed: profiling 1 more start of each version*",
            "*CPU time by function shows no difference: waiting, or computing less than *% more (*2 starts)*",
        ]
    )


def test_missing_profiler_is_a_note_with_its_remedy(project, regressed):
    result = regressed(profiler="reason='there is none'")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*no evidence from profiles: there is none → install one*"])
    result.stdout.no_fnmatch_line("*more starts*")


@pytest.mark.parametrize(
    ("end", "status", "why"),
    [
        ("motion = Motion(error_code=None, message='it crashed')", 10, "base ./old: it crashed"),
        pytest.param("raise KeyboardInterrupt", 2, "the run was interrupted", marks=pytest.mark.acceptance),
        pytest.param("raise ValueError('a defect')", 10, "ValueError: a defect", marks=pytest.mark.acceptance),
    ],
)
def test_end_of_the_profiled_stack_changes_no_verdict(project, regressed, end, status, why):
    result = regressed("--ldos-report=report.json", more=ENDS.format(end=end))
    assert result.ret == status
    result.stdout.fnmatch_lines([f"*no evidence from profiles: {why}*"])
    (section,) = sections(project)
    assert (section["verdict"], section["evidence"]) == ("regressed", None)
    (folder,) = project.path.glob(".ldos/runs/*/baseline")
    assert [len(read_trials(each).trials) for each in (folder, folder / "base")] == [10, 10]


@pytest.mark.acceptance
def test_requested_profiles_are_used(project, regressed):
    result = regressed("--ldos-profile", "--ldos-report=report.json")
    result.stdout.no_fnmatch_line("*profiling*")
    (section,) = sections(project)
    assert section["evidence"]["starts"] == 10
    assert [each["process"] for each in section["evidence"]["grown"]] == ["planner"]
