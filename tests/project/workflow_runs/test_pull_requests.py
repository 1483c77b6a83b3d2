"""Pull requests from the event to the status: measured on their own commits, or waiting, and green only when measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Document, Section
from tests.builders.asking import STRANGER, after, comment, labeled, pull_request
from tests.builders.engine import Event
from tests.builders.reports import full_document
from tests.fakes.github_api import FORK, REPOSITORY

BASELINE = "baseline"


def document_of(verdict: Verdict) -> Document:
    """A machine's report of its measurement."""
    return full_document(sections=(Section(scenario=BASELINE, verdict=verdict),))


@pytest.fixture
def opened(world):
    """Opens a pull request of a branch that left main a commit ago; gives it with the commit that it left it at."""

    def open_one(files=None, **kinds):
        base = world.scratch.head("main")
        head = world.scratch.commit("topic", files or {"arm.py": "slow"}, onto="main")
        tip = world.scratch.commit("main", {"other.py": "x"}, onto="main")
        world.github.merge_bases[tip, head] = base
        return world.github.open(7, head, tip, **kinds), base

    return open_one


def shown(world, found) -> dict[str, str]:
    """State of each context of a pull request's commit."""
    return {context: state for context, (state, _) in world.github.shown(found["head"]["sha"]).items()}


def measures(world, found, base: str, *verdicts: Verdict, factor: float = 1.0) -> None:
    documents = [document_of(each) for each in verdicts or (Verdict.PASSED, Verdict.PASSED)]
    world.measures(found["head"]["sha"], *documents, base=base, factor=factor)


GREEN = {"ldos": "success", "ldos (ldos-lab-a)": "success", "ldos (ldos-lab-b)": "success"}
RED = dict.fromkeys(GREEN, "failure")
WORD = {"ldos": "pending"}


def test_a_maintainers_own_branch(world, opened):
    found, base = opened()
    measures(world, found, base)
    run = world.asks("pull_request_target", pull_request("opened", found))
    assert shown(world, found) == GREEN, run.log
    head = found["head"]["sha"]
    states = [each["state"] for each in world.github.statuses[head] if each["context"] == "ldos"]
    assert states == ["pending", "success"]
    assert world.github.shown(head)["ldos"][1] == f"passed; base {base}"
    (posted,) = world.github.comments
    assert posted["body"].startswith("<!-- pytest-ldos report -->")


def test_slower_commit_is_red_regardless_of_the_machines_result(world, opened):
    found, base = opened()
    measures(world, found, base, factor=1.5)
    run = world.asks("pull_request_target", pull_request("synchronize", found))
    assert shown(world, found) == RED, run.log


def test_one_of_two_classes_of_machines_fails(world, opened):
    found, base = opened()
    measures(world, found, base, Verdict.PASSED, Verdict.INFRA)
    world.asks("pull_request_target", pull_request("opened", found))
    states = shown(world, found)
    assert {*states.values()} == {"error"}, "no class is green where the whole is not"
    assert len(states) == 3


def test_machine_that_leaves_no_results(world, opened):
    """As where measured code has ended it well, and taken all away."""
    world.scratch.commit("main", {".ci/measure": "mkdir -p results\n"})
    found, _ = opened()
    run = world.asks("pull_request_target", pull_request("opened", found))
    assert {*shown(world, found).values()} == {"error"}, run.log


@pytest.mark.parametrize("action", ["opened", "synchronize"])
def test_fork_waits_for_permission(world, opened, action):
    found, _ = opened(fork=True, author=STRANGER)
    run = world.asks("pull_request_target", pull_request(action, found, sender=STRANGER))
    assert run.results.get("measure") in (None, ["skipped"]), run.log
    assert shown(world, found) == WORD
    assert world.github.comments == []


EXITS = "#!/bin/sh\nexit 0\n"
FORGED = {
    ".ci/measure": EXITS,
    "pytest_ldos/cli/measure_commit.py": EXITS,
    ".ci/results/judge.py": "raise SystemExit(0)\n",
    ".ci/results/__main__.py": "raise SystemExit(0)\n",
    "action.yml": "name: x\ndescription: x\nruns: {using: composite, steps: []}\n",
    "Makefile": "setup:\n\ttouch owned\n",
    ".github/workflows/request.yml": "name: x\non: pull_request_target\njobs: {}\n",
    "conftest.py": "raise SystemExit(0)\n",
    "pyproject.toml": "[tool.ldos]\nstrict = false\n[tool.ldos.gate.floors]\nT1 = 9.0\n",
}
"""A fork that changes workflows, tools, recipe, plugin and settings."""


def test_fork_that_changes_the_judging_code(world, opened):
    """Measured on a maintainer's word, by what the default branch has."""
    found, base = opened(FORGED, fork=True, author=STRANGER)
    measures(world, found, base, factor=1.5)
    run = world.asks("issue_comment", comment(found, f"/ldos {found['head']['sha']}"))
    assert shown(world, found) == RED, run.log
    assert not [*Path(world.scratch.work).rglob("owned")]


def test_fork_with_a_maintainers_permission(world, opened):
    found, base = opened(fork=True, author=STRANGER)
    measures(world, found, base)
    run = world.asks("issue_comment", comment(found, f"/ldos {found['head']['sha']}\n\nas read"))
    assert shown(world, found) == GREEN, run.log


def test_push_between_review_and_permission(world, opened):
    old, _ = opened(fork=True)
    found, _ = opened({"arm.py": "evil"}, fork=True)
    world.asks("issue_comment", comment(found, f"/ldos {old['head']['sha']}"))
    assert world.github.statuses == {}
    (answer,) = world.github.comments
    assert f"/ldos {found['head']['sha']}" in answer["body"]


def test_permission_without_a_commit(world, opened):
    found, _ = opened(fork=True)
    world.asks("issue_comment", comment(found, "/ldos"))
    assert world.github.statuses == {}
    assert len(world.github.comments) == 1


@pytest.mark.parametrize(("sender", "action"), [(STRANGER, "created"), ("maintainer", "edited")])
def test_comment_of_another_user_or_edited(world, opened, sender, action):
    found, _ = opened(fork=True)
    run = world.asks("issue_comment", comment(found, f"/ldos {found['head']['sha']}", sender=sender, action=action))
    assert (world.github.statuses, world.github.comments) == ({}, []), run.log


@pytest.mark.parametrize("sender", ["maintainer", STRANGER])
@pytest.mark.parametrize("fork", [True, False])
def test_a_label(world, opened, fork, sender):
    found, base = opened(fork=fork, author=STRANGER)
    measures(world, found, base)
    run = world.asks("pull_request_target", labeled(found, sender=sender))
    is_measured = sender == "maintainer" and not fork
    assert shown(world, found) == (GREEN if is_measured else {}), run.log
    assert len(world.github.comments) == (sender == "maintainer")


def test_a_pull_request_that_is_closed(world, opened):
    found, _ = opened()
    found["state"] = "closed"
    world.asks("pull_request_target", pull_request("synchronize", found))
    assert (world.github.statuses, world.github.comments) == ({}, [])


def test_manual_start(world):
    base = world.scratch.head("main")
    commit = world.scratch.commit("topic", {}, onto="main")
    world.measures(commit, document_of(Verdict.PASSED), document_of(Verdict.PASSED))
    world.github.revisions["main"] = base
    run = world.by_hand("request.yml", base, branch="main", sha=commit, base="main", stack="")
    assert {state for state, _ in world.github.shown(commit).values()} == {"success"}, run.log


def test_a_merge_group_and_the_status_on_it(world, opened):
    opened()
    group, tip = world.scratch.commit("group", {"other.py": "x"}, onto="topic"), world.scratch.head("main")
    world.measures(group, document_of(Verdict.PASSED), document_of(Verdict.PASSED))
    run = world.merge_group(group)
    assert {context: state for context, (state, _) in world.github.shown(group).items()} == GREEN, run.log
    assert world.github.shown(group)["ldos"][1] == f"passed; base {tip}"


def test_merge_group_already_measured_as_a_pull_request(world, opened):
    found, _ = opened()
    head, tip = found["head"]["sha"], world.scratch.head("main")
    group = world.scratch.commit("group", {}, onto="topic")
    world.github.trees = {head: "a1" * 20, group: "a1" * 20, tip: "a2" * 20}
    world.github.add_status(head, "success", f"passed; base {tip}")
    run = world.merge_group(group)
    assert world.github.shown(group) == {"ldos": ("success", f"passed; measured on the pull request; base {tip}")}, (
        run.log
    )
    assert run.results.get("measure") in (None, ["skipped"])


@pytest.mark.parametrize(
    ("branch", "event", "of"),
    [
        ("patch-1", "pull_request", FORK),
        ("main", "pull_request", FORK),
        ("main", "push", FORK),
        ("gh-readonly-queue/main/pr-7-" + "1f" * 20, "pull_request", FORK),
        ("gh-readonly-queue/main/pr-7-" + "1f" * 20, "push", REPOSITORY),
        ("topic", "push", REPOSITORY),
        ("topic", "workflow_dispatch", REPOSITORY),
    ],
)
def test_foreign_workflow_named_gate(world, opened, branch, event, of):
    """It ran for a commit of theirs, and left trials and results that it made up."""
    found, base = opened(fork=True)
    commit = found["head"]["sha"]
    measures(world, found, base)
    world.github.artifacts = {"trials-none": b"", "trials-ldos-lab-a": b"made up"}
    for action in ("requested", "completed"):
        payload = after(commit, branch, event, action=action, of=of)
        run = world.by_default("verdict.yml", Event("workflow_run", "refs/heads/main", payload))
        assert {*run.results} <= {"begin", "check", "render", "post", "merge", "keep", "classes", "report", "history"}
        assert "success" not in [each for results in run.results.values() for each in results], run.log
    assert (world.github.statuses, world.github.comments) == ({}, [])
    assert world.github.asked == []


def test_a_merge_group_whose_own_gate_measures_nothing(world):
    """Its workflow is the group's: what says so is the default branch's, and green is only what was measured."""
    text = "name: Gate\non: {merge_group: }\njobs:\n  measure:\n    runs-on: ubuntu-24.04\n    steps: [{run: 'true'}]\n"
    group = world.scratch.commit("topic", {".github/workflows/gate.yml": text}, onto="main")
    run = world.merge_group(group)
    assert {state for state, _ in world.github.shown(group).values()} == {"error"}, run.log
