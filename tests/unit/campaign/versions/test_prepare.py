"""Environments of revisions: creation, reuse, locking and failures."""

from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path

import psutil
import pytest

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.find import prepare
from pytest_ldos.campaign.versions.version import Revision, resolve_head
from pytest_ldos.scenario.scenario_table import BaseSpec
from tests.builders.repository import Repository

MAKE = "mkdir -p .venv/bin && cp code.py .venv/bin/python && echo made >> ../../made"


class Preparing:
    """A repository, and the announcements."""

    def __init__(self, path) -> None:
        self.repository = Repository.create(path / "project")
        self.store = path / "bases"
        self.announced: list[str] = []

    def find(self, revision="HEAD") -> Revision:
        return resolve_head(revision, folder=self.repository.path, root=self.repository.path)

    def __call__(self, revision="HEAD", *, role=Role.BASE, setup=MAKE, **changes):
        spec = BaseSpec(setup=("sh", "-c", setup) if isinstance(setup, str) else setup, **changes)
        return prepare(self.find(revision), role, spec, store=self.store, announce=self.announced.append)

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
    assert preparing.announced == [
        f"preparing base {old}: the first time takes minutes; log: {preparing.folder(old)}/setup.log"
    ]
    assert "made.json" in {file.name for file in preparing.folder(old).iterdir()}


def test_commit_has_one_abbreviation(preparing):
    commit = preparing.repository.commit(code_py="old")
    whole = preparing.repository.git("rev-parse", commit).strip()
    preparing.repository.git("branch", f"{commit}-like")
    assert len(whole) > len(commit)
    assert preparing(whole).name == preparing(commit[:7]).name == f"base {commit}"
    assert preparing(f"{commit}-like").name == f"base {commit}-like ({commit})"


def test_environment_is_reused_silently(preparing):
    preparing.repository.commit(code_py="old")
    preparing.repository.git("branch", "release")
    first = preparing("release")
    announced = len(preparing.announced)
    assert preparing("release") == first
    assert first.name == f"base release ({first.commit})"
    assert (preparing.times_made, len(preparing.announced)) == (1, announced)


@pytest.mark.parametrize("change", ["unfinished", "without python"])
def test_damaged_environment_is_recreated_with_a_note(preparing, change):
    commit = preparing.repository.commit(code_py="old")
    python = preparing().installation.python
    if change == "unfinished":
        (preparing.folder(commit) / "made.json").unlink()
    elif change == "without python":
        (preparing.folder(commit) / "checkout/.venv/bin/python").unlink()
    assert preparing().installation.python == python
    assert preparing.times_made == 2
    assert f", made for base {commit}: it is unfinished or damaged" in preparing.announced[1]


def test_head_and_base_share_an_environment(preparing):
    commit = preparing.repository.commit(code_py="old")
    preparing.repository.commit(code_py="new")
    head = preparing(commit, role=Role.HEAD)
    assert (head.role, head.name, head.commit) == (Role.HEAD, f"head {commit}", commit)
    assert preparing.announced[0].startswith(f"preparing head {commit}: ")
    assert preparing(commit).installation == head.installation
    assert preparing.times_made == 1


def test_other_recipe_has_a_separate_environment(preparing):
    """Another run may be using the first one."""
    preparing.repository.commit(code_py="old")
    first = Path(preparing().installation.python)
    made = first.stat()
    second = Path(preparing(setup=MAKE + " && true").installation.python)
    assert second != first
    assert second.read_text() == first.read_text() == "old"
    assert first.stat().st_ino == made.st_ino
    assert not any("removing" in each for each in preparing.announced)
    assert Path(preparing().installation.python) == first
    assert preparing.times_made == 2


def test_failed_setup_is_reported_with_the_end_of_its_log(preparing):
    commit = preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed) as caught:
        preparing(setup="echo no compiler here >&2; exit 3")
    text = str(caught.value)
    assert text.startswith(f"base {commit} cannot be built: `sh -c")
    assert "ended with exit code 3" in text
    assert "no compiler here" in text
    assert f"see {preparing.folder(commit)}/setup.log" in text
    assert "[tool.ldos.base] setup" in text


def test_setup_without_interpreter_is_an_error(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match=r"setup made no \.venv/bin/python"):
        preparing(setup="true")


def test_missing_setup_program_is_an_error(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match="`no-such-program` ended with exit code 127"):
        preparing(setup=("no-such-program",))


def test_uninstallable_project_is_an_error(preparing):
    preparing.repository.commit(code_py="old")
    with pytest.raises(PreparationFailed, match=r"names neither a project nor pytest-ldos"):
        preparing(setup=())


def test_invalid_project_file_is_an_error(preparing):
    commit = preparing.repository.commit(pyproject_toml="[project\n")
    with pytest.raises(
        PreparationFailed, match=rf"its pyproject.toml cannot be used: .*line 1(.|\n)*worktree add(.|\n)*{commit}"
    ):
        preparing(setup=())


def test_other_path_of_the_interpreter(preparing):
    preparing.repository.commit(code_py="old")
    version = preparing(setup="mkdir bin && touch bin/python3", python="bin/python3")
    assert version.installation.python.endswith("checkout/bin/python3")


def test_hooks_and_pythonpath_are_not_used(preparing, monkeypatch):
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
def test_interrupted_setup_is_restarted(preparing, monkeypatch, tmp_path):
    """Children of setup end, too; progress is announced meanwhile."""
    commit = preparing.repository.commit(code_py="old")
    monkeypatch.setattr("pytest_ldos.campaign.versions.find._WORD_EVERY_S", 0.1)
    pid = tmp_path / "pid"

    def interrupt(text):
        preparing.announced.append(text)
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    spec = BaseSpec(setup=("sh", "-c", f"sleep 1000 & echo $! > {pid}; wait"))
    with pytest.raises(KeyboardInterrupt):
        prepare(preparing.find(), Role.BASE, spec, store=preparing.store, announce=interrupt)
    assert not is_running(int(pid.read_text()))
    assert f"preparing base {commit}: 0 s" in preparing.announced
    assert preparing().commit == commit
    assert preparing.times_made == 1


def test_a_second_run_waits_for_the_first(preparing):
    commit = preparing.repository.commit(code_py="old")
    preparing()
    place = preparing.folder(commit)
    (place / "made.json").unlink()
    preparing.announced.clear()
    waits = threading.Event()

    def announce(text):
        preparing.announced.append(text)
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
        assert preparing.announced == ["waiting: another run prepares the same version"]
        assert preparing.times_made == 1
    other.join(60)
    assert preparing.times_made == 2


@pytest.mark.acceptance
def test_most_recently_used_environments_are_kept(preparing):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(7)]
    for commit in (*commits[:5], commits[0], *commits[5:]):
        preparing(commit)
    assert {each.name.partition("-")[0] for each in preparing.store.iterdir() if each.is_dir()} == {
        commits[0],
        *commits[3:],
    }
    removed = [announced for announced in preparing.announced if announced.startswith("removing")]
    assert [announced.partition(":")[0].split()[-1].partition("-")[0] for announced in removed] == commits[1:3]
    known = preparing.repository.git("worktree", "list", "--porcelain")
    assert f"{commits[3]}-" in known
    assert not any(f"{commit}-" in known for commit in commits[1:3])


def test_locked_environment_is_not_removed(preparing):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(6)]
    preparing(commits[0])
    with (preparing.store / f"{preparing.folder(commits[0]).name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for commit in commits[1:]:
            preparing(commit)
    assert len([each for each in preparing.store.iterdir() if each.is_dir()]) == 6


@pytest.mark.acceptance
def test_unremovable_environment_is_ignored(preparing, monkeypatch):
    commits = [preparing.repository.commit(code_py=f"{number}") for number in range(6)]
    for commit in commits[:5]:
        preparing(commit)

    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refuse)
    assert preparing(commits[5]).commit == commits[5]
    assert preparing.announced[-1].startswith(f"{preparing.folder(commits[0])} cannot be removed: ")


@pytest.mark.parametrize("what", ["store", "folder"])
def test_unwritable_store_is_an_error(preparing, what):
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


def test_repository_of_a_git_hook_is_not_used(preparing, monkeypatch, tmp_path):
    """Git passes the path of its repository to hooks."""
    other = Repository.create(tmp_path / "other")
    other.commit(code_py="other")
    commit = preparing.repository.commit(code_py="old")
    for name, place in (("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", ".git/index")):
        monkeypatch.setenv(name, str((other.path / place).resolve()))
    version = preparing(setup=f'test -z "$GIT_DIR$GIT_WORK_TREE$GIT_INDEX_FILE" && {MAKE}')
    assert version.commit == commit
    assert Path(version.installation.python).read_text() == "old"
