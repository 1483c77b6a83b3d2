"""Environments of revisions: made once, kept, locked, and told of when they cannot be made."""

from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.checkouts import prepare
from pytest_ldos.campaign.versions.version import Revision, resolve_head
from pytest_ldos.scenario.base import BaseSpec
from tests.builders.repository import Repository

MAKE = "mkdir -p .venv/bin && cp code.py .venv/bin/python && echo made >> ../../made"


class Preparing:
    """A repository and what was announced."""

    def __init__(self, path) -> None:
        self.repository = Repository.create(path / "project")
        self.store = path / "bases"
        self.said: list[str] = []

    def find(self, revision="HEAD") -> Revision:
        return resolve_head(revision, folder=self.repository.path, root=self.repository.path)

    def __call__(self, revision="HEAD", *, role=Role.BASE, setup=MAKE, **changes):
        spec = BaseSpec(setup=("sh", "-c", setup) if isinstance(setup, str) else setup, **changes)
        return prepare(self.find(revision), role, spec, store=self.store, announce=self.said.append)

    def folder(self, commit) -> Path:
        (found,) = self.store.glob(f"{commit}-????????")
        return found

    @property
    def times_made(self) -> int:
        return (self.store / "made").read_text().count("made")


@pytest.fixture
def preparing(tmp_path) -> Preparing:
    return Preparing(tmp_path)


def test_a_revision_gets_its_own_sources_and_environment(preparing):
    old = preparing.repository.commit(code_py="old")
    preparing.repository.commit(code_py="new")
    version = preparing(old)
    assert version.commit == old
    assert version.name == f"base {old}"
    assert Path(version.installation.python).read_text() == "old"
    assert version.installation.interpreter[1:] == ("-I",)
    assert preparing.said == [
        f"preparing base {old}: the first time takes minutes; log: {preparing.folder(old)}/setup.log"
    ]
    assert "made.json" in {file.name for file in preparing.folder(old).iterdir()}


def test_a_commit_has_one_short_name_however_long_it_was_written(preparing):
    commit = preparing.repository.commit(code_py="old")
    whole = preparing.repository.git("rev-parse", commit).strip()
    preparing.repository.git("branch", f"{commit}-like")
    assert len(whole) > len(commit)
    assert preparing(whole).name == preparing(commit[:7]).name == f"base {commit}"
    assert preparing(f"{commit}-like").name == f"base {commit}-like ({commit})"


def test_it_is_used_again_without_a_word(preparing):
    preparing.repository.commit(code_py="old")
    preparing.repository.git("branch", "release")
    first = preparing("release")
    said = len(preparing.said)
    assert preparing("release") == first
    assert first.name == f"base release ({first.commit})"
    assert (preparing.times_made, len(preparing.said)) == (1, said)


@pytest.mark.parametrize("change", ["unfinished", "without python"])
def test_one_that_is_not_as_it_should_be_is_made_anew_and_that_is_told(preparing, change):
    commit = preparing.repository.commit(code_py="old")
    python = preparing().installation.python
    if change == "unfinished":
        (preparing.folder(commit) / "made.json").unlink()
    elif change == "without python":
        (preparing.folder(commit) / "checkout/.venv/bin/python").unlink()
    assert preparing().installation.python == python
    assert preparing.times_made == 2
    assert f", made for base {commit}: it is unfinished or damaged" in preparing.said[1]


def test_head_of_a_revision_has_the_environment_that_it_has_as_a_base(preparing):
    commit = preparing.repository.commit(code_py="old")
    preparing.repository.commit(code_py="new")
    head = preparing(commit, role=Role.HEAD)
    assert (head.role, head.name, head.commit) == (Role.HEAD, f"head {commit}", commit)
    assert preparing.said[0].startswith(f"preparing head {commit}: ")
    assert preparing(commit).installation == head.installation
    assert preparing.times_made == 1


def test_one_made_by_another_recipe_lies_beside_it(preparing):
    """Another run may be measuring with the first."""
    preparing.repository.commit(code_py="old")
    first = Path(preparing().installation.python)
    made = first.stat()
    second = Path(preparing(setup=MAKE + " && true").installation.python)
    assert second != first
    assert second.read_text() == first.read_text() == "old"
    assert first.stat().st_ino == made.st_ino
    assert not any("removing" in each for each in preparing.said)
    assert Path(preparing().installation.python) == first
    assert preparing.times_made == 2


def test_a_setup_that_fails_is_told_with_the_end_of_its_log(preparing):
    commit = preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed) as caught:
        preparing(setup="echo no compiler here >&2; exit 3")
    text = str(caught.value)
    assert text.startswith(f"base {commit} cannot be built: `sh -c")
    assert "ended with exit code 3" in text
    assert "no compiler here" in text
    assert f"see {preparing.folder(commit)}/setup.log" in text
    assert "[tool.ldos.base] setup" in text


def test_a_setup_that_makes_no_interpreter(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match=r"setup made no \.venv/bin/python"):
        preparing(setup="true")


def test_a_setup_that_is_no_program(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match="`no-such-program` ended with exit code 127"):
        preparing(setup=("no-such-program",))


def test_a_project_of_which_nothing_can_be_installed(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match=r"names neither a project nor pytest-ldos"):
        preparing(setup=())


def test_a_project_file_that_cannot_be_used(preparing):
    commit = preparing.repository.commit(pyproject_toml="[project\n")
    with pytest.raises(
        PreparationFailed, match=rf"its pyproject.toml cannot be used: .*line 1(.|\n)*worktree add(.|\n)*{commit}"
    ):
        preparing(setup=())


def test_another_place_of_the_interpreter(preparing):
    preparing.repository.commit(code_py="old")
    version = preparing(setup="mkdir bin && touch bin/python3", python="bin/python3")
    assert version.installation.python.endswith("checkout/bin/python3")


def test_the_users_hooks_and_python_path_stay_out(preparing, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    hook = preparing.repository.path / ".git/hooks/post-checkout"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    commit = preparing.repository.commit(code_py="old")
    preparing(setup=f'test -z "$PYTHONPATH" && {MAKE}')
    assert not (preparing.folder(commit) / "checkout/hooked").exists()


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.acceptance
def test_an_interruption_ends_setup_and_the_next_time_begins_anew(preparing, monkeypatch, tmp_path):
    """Also what setup started ends; that it takes long is told meanwhile."""
    commit = preparing.repository.commit(code_py="old")
    monkeypatch.setattr("pytest_ldos.campaign.versions.checkouts._WORD_EVERY_S", 0.1)
    pid = tmp_path / "pid"

    def interrupt(text):
        preparing.said.append(text)
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    spec = BaseSpec(setup=("sh", "-c", f"sleep 1000 & echo $! > {pid}; wait"))
    with pytest.raises(KeyboardInterrupt):
        prepare(preparing.find(), Role.BASE, spec, store=preparing.store, announce=interrupt)
    assert not is_running(int(pid.read_text()))
    assert f"preparing base {commit}: 0 s" in preparing.said
    assert preparing().commit == commit
    assert preparing.times_made == 1


def test_a_second_run_waits_for_the_first(preparing):
    commit = preparing.repository.commit(code_py="old")
    preparing()
    place = preparing.folder(commit)
    (place / "made.json").unlink()
    preparing.said.clear()
    waits = threading.Event()

    def announce(text):
        preparing.said.append(text)
        waits.set()

    spec = BaseSpec(setup=("sh", "-c", MAKE))
    with (preparing.store / f"{place.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(
            target=prepare,
            args=(preparing.find(), Role.BASE, spec),
            kwargs={"store": preparing.store, "announce": announce},
        )
        other.start()
        assert waits.wait(60)
        assert preparing.said == ["waiting: another run prepares the same version"]
        assert preparing.times_made == 1
    other.join(60)
    assert preparing.times_made == 2


def test_the_environments_that_were_used_last_are_kept(preparing):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(7)]
    for commit in (*commits[:5], commits[0], *commits[5:]):
        preparing(commit)
    assert {each.name.partition("-")[0] for each in preparing.store.iterdir() if each.is_dir()} == {
        commits[0],
        *commits[3:],
    }
    told = [said for said in preparing.said if said.startswith("removing")]
    assert [said.partition(":")[0].split()[-1].partition("-")[0] for said in told] == commits[1:3]
    known = preparing.repository.git("worktree", "list", "--porcelain")
    assert f"{commits[3]}-" in known
    assert not any(f"{commit}-" in known for commit in commits[1:3])


def test_what_another_run_holds_is_not_removed(preparing):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(6)]
    preparing(commits[0])
    with (preparing.store / f"{preparing.folder(commits[0]).name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for commit in commits[1:]:
            preparing(commit)
    assert len([each for each in preparing.store.iterdir() if each.is_dir()]) == 6


def test_an_old_one_that_cannot_be_removed_stands_in_no_ones_way(preparing, monkeypatch):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(6)]
    for commit in commits[:5]:
        preparing(commit)

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refuse)
    assert preparing(commits[5]).commit == commits[5]
    assert preparing.said[-1].startswith(f"{preparing.folder(commits[0])} cannot be removed: ")


@pytest.mark.parametrize("what", ["store", "folder"])
def test_a_store_that_cannot_be_written(preparing, what):
    commit = preparing.repository.commit(code_py="old")
    if what == "store":
        preparing.store.write_text("")
    else:
        preparing()
        place = preparing.folder(commit)
        shutil.rmtree(place)
        place.write_text("")
    with pytest.raises(PreparationFailed, match=rf"base {commit} cannot be built: (.|\n)*let files be written .*bases"):
        preparing()


def test_the_checkout_of_a_git_hook_stays_out(preparing, monkeypatch, tmp_path):
    """Git tells its hooks where the repository is that it is at work in."""
    other = Repository.create(tmp_path / "other")
    other.commit(code_py="other")
    commit = preparing.repository.commit(code_py="old")
    for name, place in (("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", ".git/index")):
        monkeypatch.setenv(name, str((other.path / place).resolve()))
    version = preparing(setup=f'test -z "$GIT_DIR$GIT_WORK_TREE$GIT_INDEX_FILE" && {MAKE}')
    assert version.commit == commit
    assert Path(version.installation.python).read_text() == "old"
