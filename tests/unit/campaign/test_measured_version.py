"""Identity of a project's state, including uncommitted changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ldos.campaign.starts import version_here
from pytest_ldos.scenario.model import StackSpec
from tests.builders.repository import Repository


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of code and a baseline."""
    made = Repository.create(tmp_path / "project")
    made.commit(code_py="one", base_json="{}")
    return made


def version(repository, baselines="base.json", folder=""):
    return version_here(repository.path / folder, StackSpec(), baselines=Path(baselines))


def change(repository, text, file="code.py"):
    (repository.path / file).write_text(text)


@pytest.mark.parametrize("baselines", ["base.json", "/elsewhere/baselines"], ids=["inside", "outside of the checkout"])
def test_uncommitted_changes_are_distinguished(repository, baselines):
    seen = [version(repository, baselines)]
    for text in ("two", "three"):
        change(repository, text)
        seen.append(version(repository, baselines))
    change(repository, "one")
    assert version(repository, baselines) == seen[0]
    assert len({each["changes"] for each in seen}) == 3
    assert len({each["commit"] for each in seen}) == 1


def test_recorded_baseline_is_no_change(repository):
    before = version(repository)
    change(repository, '{"T1": 1}', "base.json")
    assert version(repository) == before


def test_changes_outside_the_projects_folder_count(repository):
    (repository.path / "tests").mkdir()
    before = version(repository, folder="tests")
    change(repository, "two")
    assert version(repository, folder="tests")["changes"] != before["changes"]


def test_other_commits_and_machines_are_distinguished(repository):
    before = version(repository)
    repository.commit(code_py="two")
    after = version(repository)
    assert {name for name in before if before[name] != after[name]} == {"commit"}
    assert version_here(repository.path.parent, StackSpec(), baselines=Path("x"))["commit"] == ""
