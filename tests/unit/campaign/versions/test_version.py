"""Versions named by --ldos-base and --ldos-head, and ambiguous names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import Revision, Version, find_version, head_version
from pytest_ldos.robot.stack.protocol import OURS, Installation
from tests.builders.repository import Repository


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository.create(tmp_path / "project")


def find(text, repository, root=None, role=Role.BASE):
    return find_version(role, text, folder=repository.path, root=root or repository.path)


def add_environment(folder: Path, place=".venv/bin/python") -> Path:
    python = folder / place
    python.parent.mkdir(parents=True)
    python.touch()
    return python


@pytest.mark.parametrize("text", ["main", "HEAD", "v1", "HEAD~0"])
def test_a_revision_is_its_commit(repository, text):
    commit = repository.commit(code_py="")
    repository.git("tag", "v1")
    assert find(text, repository) == Revision(text, commit, repository.path, Path())


def test_project_below_the_top_of_its_repository(repository):
    (repository.path / "arm").mkdir()
    repository.commit(code_py="")
    assert find("HEAD", repository, root=repository.path / "arm").project == Path("arm")


def test_an_unknown_name(repository):
    repository.commit(code_py="")
    with pytest.raises(ConfigurationError, match=r"mian: there is neither a folder nor a revision(.|\n)*git rev-parse"):
        find("mian", repository)


def test_name_that_looks_like_an_option(repository):
    repository.commit(code_py="")
    with pytest.raises(ConfigurationError, match="neither a folder nor a revision"):
        find("--upload-pack=x", repository)


@pytest.mark.parametrize("role", Role)
def test_revision_without_repository_is_refused(tmp_path, monkeypatch, role):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigurationError, match=f"--ldos-{role} main: .*knows no revision in .*: not a git"):
        find_version(role, "main", folder=tmp_path, root=tmp_path)


def test_a_revision_as_head(repository):
    old = repository.commit(code_py="old")
    repository.commit(code_py="new")
    assert find("HEAD~1", repository, role=Role.HEAD) == Revision("HEAD~1", old, repository.path, Path())


def test_checked_out_commit_uses_the_checkouts_environment(repository, monkeypatch):
    commit = repository.commit(code_py="")
    assert isinstance(find("main", repository, role=Role.HEAD), Revision), "this process runs in another one"
    monkeypatch.setattr(sys, "prefix", str(repository.path / ".venv"))
    here = Version(role=Role.HEAD, name=f"head main ({commit})", commit=commit, installation=OURS)
    assert find("main", repository, role=Role.HEAD) == here
    assert find(commit, repository, role=Role.HEAD).name == f"head {commit}"
    (repository.path / "code.py").write_text("changed")
    assert isinstance(find("main", repository, role=Role.HEAD), Revision), "it has changes"


@pytest.mark.parametrize("text", ["mian", "--upload-pack=x"])
def test_an_unknown_name_of_head(repository, text):
    repository.commit(code_py="")
    with pytest.raises(ConfigurationError, match=rf"--ldos-head {text}: there is no revision(.|\n)*git rev-parse"):
        find(text, repository, role=Role.HEAD)


def test_folder_as_head_is_refused(repository):
    repository.commit(code_py="")
    add_environment(repository.path / "old")
    with pytest.raises(ConfigurationError, match=r"--ldos-head \./old is a folder(.|\n)*run pytest in it"):
        find("./old", repository, role=Role.HEAD)
    repository.git("branch", "old", "HEAD")
    assert isinstance(find("old", repository, role=Role.HEAD), Revision)


@pytest.mark.parametrize("place", [".venv/bin/python", "bin/python"])
def test_a_folder_with_an_environment(repository, tmp_path, place):
    repository.commit(code_py="")
    python = add_environment(tmp_path / "old", place)
    found = find("../old", repository)
    assert found == Version(role=Role.BASE, name="base ../old", commit="", installation=Installation(str(python)))


def test_a_checkout_with_an_environment_has_a_commit(repository, tmp_path):
    other = Repository.create(tmp_path / "old")
    commit = other.commit(code_py="", _gitignore=".venv\n")
    (other.path / ".gitignore").write_text(".venv\n")
    add_environment(other.path)
    assert find(str(other.path), repository).commit == commit


def test_environment_inside_another_checkout_has_no_commit(repository):
    repository.commit(code_py="")
    add_environment(repository.path / "environments/old")
    assert find("environments/old", repository).commit == ""


def test_a_folder_without_an_environment(repository, tmp_path):
    (tmp_path / "old").mkdir()
    with pytest.raises(ConfigurationError, match=r"\.\./old: the folder has no environment \(\.venv/bin/python or"):
        find("../old", repository)


def test_ambiguous_name_is_refused(repository):
    repository.commit(code_py="")
    add_environment(repository.path / "old")
    repository.git("branch", "old")
    with pytest.raises(ConfigurationError, match=r"a folder and a revision(.|\n)*write \./old"):
        find("old", repository)
    assert isinstance(find("./old", repository), Version)


def version(role, commit, python="/other/python"):
    return Version(role=role, name="", commit=commit, installation=Installation(python))


def test_version_compared_with_itself(repository):
    commit = repository.commit(code_py="")
    head = head_version(repository.path)
    assert (head.commit, head.installation) == (commit, OURS)
    assert head.is_same(version(Role.BASE, commit))
    assert not head.is_same(version(Role.BASE, "another"))
    (repository.path / "code.py").write_text("changed")
    assert not head_version(repository.path).is_same(version(Role.BASE, commit)), "changes are another version"
    assert version(Role.HEAD, "").is_same(version(Role.BASE, "")), "one environment"
    assert not version(Role.HEAD, "").is_same(version(Role.BASE, "", "/third/python"))


def test_current_environment_as_base(repository):
    place = Path(sys.executable).parents[1]
    assert find(os.fspath(place), repository).installation == OURS
