"""``--ldos-head``: another commit's stack with the tests and settings of this checkout. Only the stacks are made up."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.judge.baseline.history import HistoryStore
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.plugin.conftest import SETUP

SLOW_ELSEWHERE = "noisy(1), base=noisy(2, planning=1.6)"
"""Stacks of another environment than that of pytest are slower."""

TEN = ("--ldos-trials=10", "--ldos-warmup=0")


def commit(project, repository, settings="", **files) -> str:
    project.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n" + SETUP + settings)
    return repository.commit(**files)


@pytest.fixture
def old(project, repository):
    """A commit before the one that is checked out."""
    found = commit(project, repository, README="old")
    commit(project, repository, README="new")
    return found


def commits(project, pattern="baseline/trials.json"):
    return sorted(read_trials(file).commit for file in project.path.glob(f".ldos/runs/*/{pattern}"))


@pytest.mark.acceptance
def test_stack_and_commit_are_the_revisions(run, project, repository, old):
    assert run(*TEN).ret == 0, "the baseline is of what is checked out"
    result = run(f"--ldos-head={old}", *TEN, "--ldos-report=report.json", stack=SLOW_ELSEWHERE)
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            f"*ldos: stack of head {old}; tests and settings of this checkout*",
            f"*preparing head {old}: the first time takes minutes*",
            "*T1*regressed: +*",
        ]
    )
    new = repository.git("rev-parse", "--short=12", "HEAD")
    assert commits(project) == sorted([new, old])
    (section,) = json.loads((project.path / "report.json").read_text())["sections"]
    assert (section["head"]["commit"], section["base"]["commit"]) == (old, new)
    again = run(f"--ldos-head={old}", "--ldos-trials=1")
    again.stdout.no_fnmatch_line("*preparing*")


@pytest.mark.acceptance
def test_revisions_baseline_is_recorded_without_a_branch(run, project, old):
    result = run(f"--ldos-head={old}", "--ldos-trials=2", "--ldos-update-baseline", "--ldos-history=kept")
    result.stdout.fnmatch_lines(["*recorded as the new baseline*", "*history: 1 set of trials added*"])
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    assert json.loads(file.read_text())["commit"] == old
    kept = HistoryStore(project.path / "kept").read().table
    assert kept.select("commit", "branch").unique().rows() == [(old, "")]


def test_revision_is_interleaved_with_a_base(run, project, old):
    result = run(f"--ldos-head={old}", "--ldos-base=HEAD", "--ldos-trials=2", "--ldos-block=1")
    result.stdout.fnmatch_lines(
        [
            "*ldos: interleaved with base HEAD*",
            "*block 1: starting the stack of base HEAD (*",
            f"*block 2: starting the stack of head {old}*",
            "*interleaved with 2 trials of base HEAD (*",
        ]
    )
    result.stdout.no_fnmatch_line("*A/A*")
    assert commits(project) == [old]
    assert commits(project, "baseline/base/trials.json") != [old]


@pytest.mark.acceptance
def test_same_revision_as_both_is_prepared_once_and_noted(run, old):
    result = run(f"--ldos-head={old}", f"--ldos-base={old}", "--ldos-trials=1")
    result.stdout.fnmatch_lines([f"*preparing base {old}*", "*A/A: head and base are the same version*"])
    result.stdout.no_fnmatch_line("*preparing head*")


def test_checkout_gets_an_environment_if_pytest_runs_in_anothers(run, project, repository, old):
    result = run("--ldos-head=HEAD", "--ldos-trials=1")
    result.stdout.fnmatch_lines(["*preparing head*"])
    assert commits(project) == [repository.git("rev-parse", "--short=12", "HEAD")]


def test_tests_plugin_and_settings_are_not_the_revisions(run, project, repository):
    """A revision that would end green at once, and whose settings ask for a single trial."""
    ours = {"sitecustomize.py": "", "test_scenario.py": (project.path / "test_scenario.py").read_text()}
    for name in ours:
        (project.path / name).write_text("import os\nos._exit(0)\n")
    settings = "[tool.ldos]\ntrials = 1\n[tool.ldos.stack]\nvelocity_scaling = 0.9\n"
    hostile = commit(project, repository, settings)
    for name, text in ours.items():
        (project.path / name).write_text(text)
    commit(project, repository, "[tool.ldos]\ntrials = 3\n")
    result = run(f"--ldos-head={hostile}")
    (trials,) = map(read_trials, project.path.glob(".ldos/runs/*/baseline/trials.json"))
    assert (trials.commit, len(trials.trials)) == (hostile, 3)
    printed = " ".join(result.stdout.str().split())
    assert "settings differ between head and this checkout (stack.velocity_scaling 0.9 → 0.5" in printed
    assert "it was measured with this checkout's, so their effect does not show" in printed


def test_unbuildable_revision_is_infra_with_exit_status_11(run, project, repository):
    settings = SETUP.replace("mkdir", "test ! -e broken && mkdir")
    project.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n" + settings)
    broken = repository.commit(broken="")
    (project.path / "broken").unlink()
    repository.commit()
    result = run(f"--ldos-head={broken}", "--ldos-trials=2")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*scenario 'baseline': infra*", f"*head {broken} cannot be built: *exit code 1*"])


def test_unknown_revision_is_refused(run, project, old):
    result = run("--ldos-head=mian")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*--ldos-head mian: there is no revision of this name*"])
    assert not list(project.path.glob(".ldos/runs/*/*/trials.json"))
