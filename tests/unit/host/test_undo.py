"""Registered changes are undone, however their owner ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.host import temporary
from pytest_ldos.host.temporary import RemoveCgroup, RemoveTree, RunCommand, Undo, WriteSetting, undone_at_end
from tests.builders.stressors import is_gone, wait_until

OWNER = """
import os, signal, sys, time
from pathlib import Path
from pytest_ldos.host.temporary import RunCommand, Undo
signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests run in the background of a shell
undo = Undo(Path(sys.argv[1], "undo.log"))
undo.register(RunCommand(("touch", os.path.join(sys.argv[1], "undone"))))
forked = os.fork() if "fork" in sys.argv else None
if forked != 0:
    print(undo.pid, forked, flush=True)
time.sleep(60)
"""

CGROUPS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


@pytest.fixture
def start_owner(tmp_path):
    owners = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], list[str]]:
        command = [sys.executable, "-c", OWNER, str(tmp_path), *arguments]
        owners.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0))
        return owners[0], owners[0].stdout.readline().split()

    yield start
    for owner in owners:
        owner.kill()
        owner.wait()
        owner.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_changes_of_a_killed_owner_are_undone(start_owner, tmp_path, number):
    owner, (undoer, _) = start_owner()
    assert not (tmp_path / "undone").exists()
    owner.send_signal(number)
    wait_until((tmp_path / "undone").exists)
    wait_until(lambda: is_gone(int(undoer)))


def test_forked_child_with_the_pipe_does_not_delay_undoing(start_owner, tmp_path):
    owner, (_, child) = start_owner("fork")
    try:
        owner.kill()
        wait_until((tmp_path / "undone").exists)
        assert not is_gone(int(child))
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_signals_to_the_owners_group_are_ignored(start_owner, tmp_path):
    owner, (undoer, _) = start_owner()
    assert os.getsid(int(undoer)) == int(undoer)
    os.kill(int(undoer), signal.SIGINT)
    os.killpg(owner.pid, signal.SIGKILL)
    wait_until((tmp_path / "undone").exists)


def test_changes_are_undone_in_reverse_order(tmp_path):
    order = tmp_path / "order"
    with undone_at_end(tmp_path / "undo.log") as undo:
        for word in ("first", "second"):
            undo.register(RunCommand(("sh", "-c", 'echo "$0" >> "$1"', word, str(order))))
        assert not order.exists()
        pid = undo.pid
    assert order.read_text() == "second\nfirst\n"
    assert is_gone(pid)


def test_failed_action_is_reported_and_others_are_undone(tmp_path):
    undo = Undo(tmp_path / "undo.log")
    undo.register(RunCommand(("touch", str(tmp_path / "undone"))))
    undo.register(RunCommand(("sh", "-c", "echo no such device >&2; exit 2")))
    undo.register(RunCommand(("there-is-no-such-program",)))
    with pytest.raises(MendFailed, match=r"there-is-no-such-program.*exit code 2: no such device"):
        undo.undo()
    assert (tmp_path / "undone").exists()
    assert (tmp_path / "undo.log").read_text().count("could not be undone") == 2
    undo.undo()


def test_owner_undoes_changes_of_a_killed_process(tmp_path):
    undo = Undo(tmp_path / "undo.log")
    undo.register(RunCommand(("touch", str(tmp_path / "undone"))))
    os.kill(undo.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(undo.pid))
    with pytest.raises(MendFailed, match=r"has ended\n.*nothing was changed"):
        undo.register(RunCommand(("true",)))
    undo.undo()
    assert (tmp_path / "undone").exists()


def test_folders_and_settings_are_undone(tmp_path):
    setting, folder = tmp_path / "setting", tmp_path / "folder"
    setting.write_text("1")
    folder.mkdir()
    with undone_at_end(tmp_path / "undo.log") as undo:
        undo.register(WriteSetting(str(setting), "0"))
        undo.register(RemoveTree(str(folder)))
        undo.register(RemoveTree(str(tmp_path / "never made")))
        (folder / "file").touch()
    assert setting.read_text() == "0"
    assert not folder.exists()
    with pytest.raises(FileNotFoundError):
        WriteSetting(str(tmp_path / "none"), "0").undo()


def test_folder_in_use_is_removed(tmp_path, monkeypatch):
    """A process creates a file right before the folder is removed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    rmdir, late = os.rmdir, iter(["first", "second"])

    def rmdir_too_late(path: object, **place: object) -> None:
        for name in late:
            (folder / name).touch()
            break
        rmdir(path, **place)

    monkeypatch.setattr(os, "rmdir", rmdir_too_late)
    RemoveTree(str(folder)).undo()
    assert not folder.exists()
    assert list(late) == []


def test_unremovable_folder_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary, "TREE_LIMIT_S", 0.0)
    (tmp_path / "no folder").touch()
    with pytest.raises(NotADirectoryError):
        RemoveTree(str(tmp_path / "no folder")).undo()


def test_interrupted_registration_is_effective(tmp_path, monkeypatch):
    undo = Undo(tmp_path / "undo.log")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(undo, "_hear", interrupt)
        with pytest.raises(KeyboardInterrupt):
            undo.register(RunCommand(("touch", str(tmp_path / "undone"))))
    undo.undo()
    assert (tmp_path / "undone").exists()


def interrupt() -> str:
    raise KeyboardInterrupt


@pytest.fixture
def cgroup():
    """A real control group, if permitted."""
    root = next((each for each in CGROUPS if (each / "cgroup.procs").is_file() and os.access(each, os.W_OK)), None)
    if root is None:
        pytest.skip("no control groups may be made here")
    path = root / f"pytest-ldos-test-{os.getpid()}"
    path.mkdir()
    yield path
    if path.exists():
        path.rmdir()


@pytest.mark.parametrize("refuge", [False, True])
def test_control_group_is_removed_with_its_processes(cgroup, refuge):
    member = subprocess.Popen(["sleep", "60"])
    try:
        (cgroup / "cgroup.procs").write_text(str(member.pid))
        RemoveCgroup(str(cgroup), str(cgroup.parent) if refuge else "").undo()
        assert not cgroup.exists()
        assert (member.poll() is None) == refuge
        RemoveCgroup(str(cgroup)).undo()
    finally:
        member.kill()
        member.wait()
