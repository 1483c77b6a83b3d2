"""Files that git replaced by other content."""

from __future__ import annotations

import subprocess

import pytest

from pytest_ldos.base.files import left_by_git
from tests.builders.repository import Repository


@pytest.fixture
def conflict(tmp_path) -> str:
    """A file with a merge conflict, as git leaves it."""
    repository = Repository.create(tmp_path)
    repository.commit(a_json='{\n "schema": 5\n}\n')
    repository.git("checkout", "--quiet", "-b", "topic")
    repository.commit(a_json='{\n "schema": 6\n}\n')
    repository.git("checkout", "--quiet", "main")
    repository.commit(a_json='{\n "schema": 7\n}\n')
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "topic")
    return (tmp_path / "a.json").read_text()


def test_unresolved_merge_is_recognised(conflict):
    assert left_by_git(conflict) == (
        "has an unresolved merge conflict (line 2)",
        "take one side: git checkout --ours or --theirs FILE",
    )


def test_ordinary_file_is_accepted():
    assert left_by_git('{\n "message": "<<<<<<< HEAD"\n}\n') is None
    assert left_by_git("") is None
