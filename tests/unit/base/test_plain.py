"""Files that git replaced by other content, and dataclasses from objects with some of their fields."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pytest_ldos.base.files import copied, left_by_git
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


@dataclass(frozen=True)
class Copy:
    name: str
    size: int
    colour: str = "grey"


def test_fields_are_those_of_the_first_source_that_has_them():
    one, other = SimpleNamespace(name="one", weight=3.0), SimpleNamespace(name="other", size=2)
    assert copied(Copy, one, other) == Copy("one", 2)
    assert copied(Copy, one, other, name="own", colour="red") == Copy("own", 2, "red")
    with pytest.raises(TypeError, match="size"):
        copied(Copy, one)
