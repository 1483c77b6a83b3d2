"""Changes for the worse that a maintainer accepts on a pull request, from the comment to the status after the merge."""

from __future__ import annotations

import pytest

from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.asking import MAINTAINER, STRANGER, comment, pull_request
from tests.builders.git import git
from tests.project.workflow_runs.test_pull_requests import GREEN, RED, document_of, measures, opened, shown

__all__ = ["opened"]


@pytest.fixture
def red(world, opened):
    """A pull request that was measured, and is red; gives it with its base."""
    found, base = opened()
    measures(world, found, base, Verdict.REGRESSED, Verdict.REGRESSED, factor=1.5)
    run = world.asks("pull_request_target", pull_request("opened", found))
    assert shown(world, found) == RED, run.log
    world.keep_artifacts()
    return found, base


def accept(world, found, body: str, *, sender: str = MAINTAINER, edited: bool = False) -> str:
    """Somebody writes a comment; gives the log."""
    number = world.github.add(body, sender)
    event = comment(found, body, sender=sender, action="edited" if edited else "created")
    if edited:
        world.github.comments[-1]["updated_at"] = "2026-03-01T00:00:00Z"
    event["comment"]["id"] = number
    return world.asks("issue_comment", event).log


def word(found, metrics: str = "T1") -> str:
    return f'/ldos accept {found["head"]["sha"]} {metrics} "checks collisions twice"'


def text_of(world, found) -> str:
    return world.github.shown(found["head"]["sha"])["ldos"][1]


def test_accepted_by_a_maintainer(world, red):
    found, base = red
    log = accept(world, found, word(found))
    assert shown(world, found) == GREEN, log
    assert text_of(world, found).startswith("accepted: T1 up to +")
    assert text_of(world, found).endswith(f"; base {base}")
    (kept,) = [each["body"] for each in world.github.comments if "pytest-ldos accepted" in each["body"]]
    assert f"{MAINTAINER}: checks collisions twice" in kept


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"sender": STRANGER}, ""),
        ({"edited": True}, ""),
        ({"metrics": "T3"}, "not accepted: T3"),
        ({"old": True}, "is not what it is at now"),
    ],
    ids=["stranger", "edited", "other metric", "old commit"],
)
def test_not_accepted(world, red, change, answer):
    found, base = red
    body = word(found, change.get("metrics", "T1"))
    if "old" in change:
        body = body.replace(found["head"]["sha"], base)
    said = {name: value for name, value in change.items() if name in ("sender", "edited")}
    before = len(world.github.comments) + 1
    log = accept(world, found, body, **said)
    assert shown(world, found) == RED, log
    answers = [each["body"] for each in world.github.comments[before:]]
    assert any(answer in each for each in answers) if answer else answers == [], log


def merged(world, found, more) -> str:
    """One commit with the pull request's lines upon the main branch as it is now."""
    git(world.scratch.work, "checkout", "--quiet", "--detach", world.scratch.head("main"))
    squashed = world.scratch.commit("squashed", {"arm.py": "slow", **more}, onto="main")
    world.github.pulls.append({**found, "head": {**found["head"], "sha": squashed}})
    return squashed


@pytest.mark.parametrize("event", ["merge_group", "push"])
@pytest.mark.parametrize(
    ("factor", "files", "state"),
    [(1.5, {}, "success"), (3.0, {}, "failure"), (1.5, {"more.py": "slower"}, "failure")],
    ids=["equal", "larger change", "more lines"],
)
def test_commit_that_the_merge_makes(world, red, event, factor, files, state):
    found, base = red
    accept(world, found, word(found))
    tip = world.scratch.head("main")
    commit = merged(world, found, files)
    four = (found["head"]["sha"], base, tip, commit)
    world.github.trees = {each: f"{number:040x}" for number, each in enumerate(four)}
    documents = [document_of(Verdict.REGRESSED)] * 2
    world.measures(commit, *documents, base=tip, factor=factor)
    run = world.merge_group(commit) if event == "merge_group" else world.push(commit, before=tip)
    assert world.github.shown(commit).get("ldos", ("", ""))[0] == state, run.log
    proposed = [name for name in world.github.git.branches if name.startswith("accepted/")]
    assert proposed == ([f"accepted/{commit}"] if (event, state) == ("push", "success") else []), run.log
