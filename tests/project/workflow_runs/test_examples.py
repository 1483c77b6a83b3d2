"""Workflows that others are to copy: a project of somebody else's, which calls ours."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.asking import pull_request
from tests.builders.engine import Event, head_of
from tests.builders.git import git
from tests.builders.scratch import ROOT, UNKNOWN_KEY, make_scratch
from tests.project.workflow_runs.test_pull_requests import document_of

EXAMPLES = ROOT / "examples" / "ci" / "github"


@pytest.fixture
def project(world, tmp_path):
    """A project without anything of ours but workflows that call ours, and a checkout of ours elsewhere.

    What a called workflow calls in its own repository act looks for in the project's (nektos/act#1875): it is put there.
    """
    ours = make_scratch(tmp_path / "ours").work
    git(world.scratch.work, "rm", "--quiet", "-r", ".")
    files = {"pyproject.toml": "[tool.ldos]\n"}
    for file in EXAMPLES.glob("*.yml"):
        text = file.read_text("utf-8").replace(f"  {UNKNOWN_KEY}\n", "")
        files[f".github/workflows/{file.name}"] = text.replace("0" * 40, head_of(ours))
    for name in ("classes", "measure", "report", "history"):
        file = ours / ".github" / "workflows" / f"{name}.yml"
        files[f".github/workflows/{file.name}"] = file.read_text("utf-8")
    world.scratch.commit("main", files)
    return dataclasses.replace(world, engine=dataclasses.replace(world.engine, tools=(ours,)))


def test_a_pull_request(project):
    base = project.scratch.head("main")
    head = project.scratch.commit("topic", {"arm.py": ""}, onto="main")
    found = project.github.open(7, head, base)
    project.measures(head, document_of(Verdict.PASSED), document_of(Verdict.PASSED), base=base)
    run = project.asks("pull_request_target", pull_request("opened", found))
    assert {state for state, _ in project.github.shown(head).values()} == {"success"}, run.log


def test_own_runner(project):
    before = project.scratch.head("main")
    commit = project.scratch.commit("main", {"arm.py": ""})
    project.measures(commit, document_of(Verdict.PASSED), document_of(Verdict.PASSED), base=before)
    event = Event("push", "refs/heads/main", {"ref": "refs/heads/main", "before": before, "after": commit})
    run = project.by_default("own_runner.yml", event)
    assert run.results == {"measure": ["success"]}, run.log
    assert {"result-ldos-lab", "trials-ldos-lab"} <= project.artifacts.artifacts.keys()


def test_issue_about_a_regression(project):
    engine = dataclasses.replace(project.engine, variables={"LDOS_REGRESSION_ISSUE": "true"})
    good = project.scratch.head("main")
    bad = project.scratch.commit("main", {"arm.py": "slow"})
    project.github.parents = {bad: (good,), good: ()}
    project.github.add_status(bad, "failure", f"regressed: baseline; base {good}")
    run = dataclasses.replace(project, engine=engine).notify()
    (issue,) = project.github.issues
    assert f"<!-- range {good}..{bad} -->" in issue["body"], run.log
