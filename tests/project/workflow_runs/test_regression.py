"""The issue about a regression of the main branch, from a push to the issue."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.asking import REPOSITORY_OF_EVENTS
from tests.builders.engine import Event
from tests.builders.git import git
from tests.project.workflow_runs.conftest import LABELS
from tests.project.workflow_runs.test_pull_requests import document_of


@pytest.fixture
def asked(world):
    """A repository that wants the issue."""
    variables = {"LDOS_REGRESSION_ISSUE": "true"}
    return dataclasses.replace(world, engine=dataclasses.replace(world.engine, variables=variables))


def push(world, name: str, *, base: str, factor: float = 1.0) -> tuple[str, str]:
    """Pushes a commit to the main branch, whose machines compare it with a base; returns it, and all that was logged."""
    before = world.scratch.head("main")
    commit = world.scratch.commit("main", {name: "x"})
    log = git(world.scratch.work, "log", "--format=%H %P", "main").split("\n")
    world.github.parents = {line.split()[0]: tuple(line.split()[1:]) for line in log if line}
    world.github.revisions[base[:12]] = base
    world.measures(commit, document_of(Verdict.PASSED), document_of(Verdict.PASSED), base=base, factor=factor)
    return commit, world.push(commit, before=before).log


def measured_against(world) -> set[str]:
    """Bases that the machines were given."""
    words = world.scratch.measurements.split()
    return {each.partition("=")[2] for each in words if each.startswith("--ldos-base=")}


def test_regression_from_its_beginning_to_its_end(asked):
    good = asked.scratch.head("main")
    bad, log = push(asked, "slow.py", base=good, factor=1.5)
    assert asked.github.shown(bad)["ldos"][0] == "failure", log
    assert measured_against(asked) == {good}
    run = asked.notify()
    assert run.results == {"notify": ["success"]}, run.log
    (issue,) = asked.github.issues
    assert f"<!-- range {good}..{bad} -->" in issue["body"]
    assert f"--ldos-base {good}" in issue["body"]

    later, log = push(asked, "other.py", base=good, factor=1.5)
    assert measured_against(asked) == {good}, "not with the commit before, which is as slow"
    assert asked.github.shown(later)["ldos"][0] == "failure", log
    asked.notify()
    assert len(asked.github.issues) == 1
    assert f"git checkout {later}" in issue["body"]
    assert issue["state"] == "open"

    healed, log = push(asked, "fast.py", base=good)
    assert measured_against(asked) == {good}
    assert asked.github.shown(healed)["ldos"] == ("success", f"passed; base {good}"), log
    for _ in range(2):
        asked.notify()
    assert (issue["state"], len(asked.github.issues)) == ("closed", 1)
    assert [each["body"] for each in asked.github.comments if healed in each["body"]] == [
        f"main is as fast as before again: {healed} passed, compared with {good}."
    ]


def test_nothing_is_opened_by_default(world):
    """Neither is an issue looked for before a push is measured."""
    good = world.scratch.head("main")
    bad = world.scratch.commit("main", {"slow.py": "x"})
    world.github.parents = {bad: (good,), good: ()}
    world.github.add_status(bad, "failure", f"regressed: baseline; base {good}")
    run = world.notify()
    assert run.results.get("notify") in (None, ["skipped"]), run.log
    payload = {"ref": "refs/heads/main", "before": good, "after": bad, "repository": REPOSITORY_OF_EVENTS}
    event = Event("push", "refs/heads/main", payload)
    run = world.engine.run("gate.yml", world.scratch.work, event, labels=LABELS, job="reuse")
    assert run.results["reuse"] == ["success"], run.log
    assert world.github.issues == []
    assert not any("/issues" in each for each in world.github.asked)
