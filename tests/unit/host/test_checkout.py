"""Git's reasons for unknown commits and revisions, from real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.commit_rounds import list_commits
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import find_version
from pytest_ldos.host.checkout import commit_of, read_changes, why_no_commit, why_unknown
from tests.builders.repository import Repository

DUBIOUS = "detected dubious ownership"


@pytest.fixture
def repository(tmp_path) -> Repository:
    made = Repository.create(tmp_path / "project")
    made.commit(a_txt="1")
    return made


@pytest.fixture
def of_another(repository, monkeypatch) -> Path:
    """A repository that git attributes to another user, as in a container."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    return repository.path


def corrupt(repository: Repository) -> None:
    commit = repository.git("rev-parse", "HEAD")
    file = repository.path / ".git/objects" / commit[:2] / commit[2:]
    file.chmod(0o600)
    file.write_bytes(b"")


def damage_index(repository: Repository) -> None:
    (repository.path / ".git/index").write_text("x")


def test_known_commit_has_no_reason(repository):
    commit = repository.git("rev-parse", "--short=12", "HEAD")
    assert commit_of(repository.path) == (commit, "")
    assert why_no_commit(repository.path) is None


def test_untrusted_owner_is_reported_with_a_fix(of_another):
    commit, unknown = commit_of(of_another)
    assert commit == ""
    assert unknown.startswith(f"{DUBIOUS} in repository at '{of_another}'")
    assert unknown.endswith(f"git config --global --add safe.directory {of_another}")


@pytest.mark.parametrize(
    ("damage", "reason"), [(corrupt, "is corrupt"), (damage_index, "index file smaller than expected")]
)
def test_damaged_repository_is_reported(repository, damage, reason):
    damage(repository)
    commit, unknown = commit_of(repository.path)
    assert commit == ""
    assert reason in unknown


def test_a_repository_without_commits(tmp_path):
    Repository.create(tmp_path)
    assert commit_of(tmp_path) == ("", "your current branch 'main' does not have any commits yet")
    assert why_unknown("main", tmp_path).reason == "your current branch 'main' does not have any commits yet"


def test_missing_git(repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert commit_of(repository.path) == ("", "git is not installed → install git")


def test_messages_are_independent_of_the_locale(of_another, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    assert commit_of(of_another)[1].startswith(DUBIOUS)


@pytest.mark.parametrize("role", Role)
def test_invalid_revision_name(of_another, role):
    with pytest.raises(ConfigurationError, match=f"--ldos-{role} main: .*{DUBIOUS}") as caught:
        find_version(role, "main", folder=of_another, root=of_another)
    assert caught.value.remedy.endswith(f"git config --global --add safe.directory {of_another}")


def test_failed_list_of_commits(of_another):
    with pytest.raises(ConfigurationError, match=DUBIOUS) as caught:
        list_commits("main", "main", of_another)
    assert "safe.directory" in caught.value.remedy


def test_base_missing_from_a_shallow_clone(repository, tmp_path):
    old = repository.git("rev-parse", "HEAD")
    repository.commit(a_txt="2")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=1", f"file://{repository.path}", str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    for revision in (old, "HEAD~1"):
        with pytest.raises(ConfigurationError, match="this clone is shallow, and has no older commits") as caught:
            find_version(Role.BASE, revision, folder=clone, root=clone)
        assert "git fetch --unshallow" in caught.value.remedy


def test_commits_unconnected_in_a_shallow_clone(repository, tmp_path):
    repository.git("branch", "old")
    repository.commit(a_txt="2")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{repository.path}", str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ConfigurationError, match="is no ancestor of BAD") as caught:
        list_commits("origin/old", "main", clone)
    assert "this clone is shallow" in caught.value.remedy


def test_changed_lines_by_file(repository):
    base = repository.commit(a_txt="1\n2\n", b_txt="1\n")
    (repository.path / "line\nend.bin").write_bytes(b"\0")
    head = repository.commit(a_txt="1\n3\n4\n")
    found = {"a.txt": "+2 -1", "line\nend.bin": "binary"}
    assert read_changes(repository.path, base, head) == found
    (repository.path / "b.txt").write_text("")
    assert read_changes(repository.path, base, f"{head}+") == found | {"b.txt": "+0 -1"}


@pytest.mark.parametrize(("base", "head"), [("", "HEAD"), ("HEAD", ""), ("HEAD+", "HEAD"), ("0123456789ab", "HEAD")])
def test_changes_from_an_unknown_version_are_unknown(repository, base, head):
    repository.commit(a_txt="1\n")
    assert read_changes(repository.path, base, head) == {}
