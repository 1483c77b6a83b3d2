"""Baselines that machines record: a branch, and a link to open its pull request by hand."""

from __future__ import annotations


def test_no_right_to_open_pull_requests_is_needed(world):
    """GitHub refuses a workflow's pull request, as by default."""
    commit = world.scratch.head("main")
    world.measures(commit)
    run = world.by_hand("baseline.yml", commit, branch="main", sha=commit, trials="12")
    assert run.results["propose"] == ["success"], run.log
    branch = f"baselines/{commit}"
    recorded = world.github.git.files(branch).keys() - {"README.md"}
    assert sorted(path.rpartition("/")[2] for path in recorded) == ["baseline.json"] * 2, "two classes of hosts"
    assert f"https://github.com/arm-makers/arm/compare/main...{branch}?quick_pull=1" in run.log
    assert not any("pulls" in each for each in world.github.asked)
