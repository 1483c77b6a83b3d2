"""A measured commit that replaces our tools: no job that may write runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.scratch import ROOT

TOOLS = sorted((ROOT / ".ci" / "results").glob("*.py"))
OWNED = """
import json, os, sys, urllib.request

if "GITHUB_TOKEN" in os.environ:
    request = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + "/repos/arm-makers/arm/issues/7/comments",
        data=json.dumps({"body": "owned: " + " ".join(sys.argv)}).encode(),
        headers={"Authorization": "Bearer " + os.environ["GITHUB_TOKEN"]},
    )
    urllib.request.urlopen(request).close()
"""
FUTURE = "from __future__ import annotations\n"


def hostile_tools() -> dict[str, str]:
    """Our tools, each of which first writes to the pull request where it has a token."""
    return {f".ci/results/{file.name}": _poison(file) for file in TOOLS}


def _poison(file: Path) -> str:
    return file.read_text("utf-8").replace(FUTURE, FUTURE + OWNED, 1)


@pytest.fixture
def hostile(world) -> str:
    """A commit that replaces our tools, with what two machines measure of it."""
    commit = world.scratch.commit("topic", hostile_tools(), onto="main")
    world.measures(commit)
    return commit


def owned(world) -> list[str]:
    return [each["body"] for each in world.github.comments if each["body"].startswith("owned")]


def test_hostile_code_on_the_default_branch_runs(world, hostile):
    """On the default branch itself, which they must not reach: so that the tests below are about something."""
    world.scratch.commit("main", {}, onto="topic")
    world.merge_group(hostile)
    assert any("comment received/comment.md" in each for each in owned(world))


def test_in_a_merge_group(world, hostile):
    run = world.merge_group(hostile)
    assert run.results["post"] == ["success"], run.log
    assert owned(world) == []
    (comment,) = world.github.comments
    assert comment["body"].startswith("<!-- pytest-ldos report -->\n")


def test_in_an_outdated_push(world, hostile):
    run = world.push(hostile, before=world.scratch.head("main"))
    assert (run.results["post"], run.results["keep"]) == (["success"], ["success"]), run.log
    assert owned(world) == []
    assert "ldos-history" in world.github.git.branches


def test_in_a_manual_start_of_another_branchs_workflow(world, hostile):
    world.github.git.start("topic", {"README.md": b"read me"})
    run = world.by_hand("baseline.yml", hostile, branch="topic", sha=hostile, trials="12")
    assert run.results["propose"] == ["success"], run.log
    assert owned(world) == []


def test_in_a_manually_started_night(world, hostile):
    run = world.by_hand("nightly.yml", hostile, branch="topic", job="lab")
    assert run.results["lab"] == ["success"], run.log
    assert owned(world) == []


def test_in_a_scheduled_night(world):
    """Its event names no repository; it is of the default branch."""
    commit = world.scratch.head("main")
    run = world.by_the_clock("nightly.yml", commit, job="lab")
    assert run.results["lab"] == ["success"], run.log
    assert world.github.started == [("explore.yml", {"ref": "main", "inputs": {"sha": commit}})]


def test_an_event_that_names_no_default_branch_is_refused(world, hostile):
    """It could be any commit otherwise."""
    run = world.merge_group(hostile, repository={"full_name": "arm-makers/arm"})
    assert run.results["reuse"] == ["failure"]
    assert run.results.get("measure") in (None, ["skipped"])
    assert world.github.shown(hostile)["ldos"][0] == "error"
