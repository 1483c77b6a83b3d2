"""The branch that a checkout is on."""

from __future__ import annotations

import pytest

from pytest_ldos.judge.baseline.history import branch_of
from tests.builders.repository import Repository


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Repository:
    for name in ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"):
        monkeypatch.delenv(name, raising=False)
    made = Repository.create(tmp_path / "project")
    made.commit(code_py="old")
    return made


def test_a_branch(repository, monkeypatch):
    monkeypatch.setenv("GITHUB_REF_NAME", "of-ci")
    assert branch_of(repository.path) == "main"


def test_commit_checked_out_by_ci(repository, monkeypatch):
    repository.git("checkout", "--quiet", "--detach")
    assert not branch_of(repository.path)
    monkeypatch.setenv("GITHUB_REF_NAME", "of-ci")
    assert branch_of(repository.path) == "of-ci"


def test_no_checkout(tmp_path):
    assert not branch_of(tmp_path)


def test_checkout_of_a_git_hook_is_ignored(repository, monkeypatch, tmp_path):
    other = Repository.create(tmp_path / "other")
    other.commit(code_py="other")
    other.git("checkout", "--quiet", "-b", "theirs")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    assert branch_of(repository.path) == "main"
