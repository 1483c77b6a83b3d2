"""The search for what a job left, over files of the kernel as it writes them; `tests/lab` asks it on a booted machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lab.leftovers.search import USERS, end_leftovers, list_leftovers
from tests.builders.lab import LAB

STATUS = "Name:\tsleep\nUid:\t{0}\t{1}\t{1}\t{1}\nGid:\t{2}\t{2}\t{2}\t{2}\n"
SHM = """       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime
         0         12   600                  4096   100   100      0 {0}     0     0     0          0
"""
KEYS = "    0:    15 14/14 8/1000000 170/25000000\n{0:>5}:     1 1/1 1/200 9/20000\n"


@pytest.fixture
def left(machine, monkeypatch):
    """Leftovers on a machine; without waiting for processes that are about to end."""
    monkeypatch.setattr("lab.leftovers.search._PATIENCE_S", 0)
    return lambda: list(list_leftovers(machine.root))


def test_clean_machine_has_no_leftovers(machine, left):
    machine.write("proc/7/status", STATUS.format(0, 0, 0))
    machine.write("proc/sysvipc/shm", SHM.format(399_999))
    machine.write("proc/key-users", KEYS.format(1000))
    machine.write("var/lib/systemd/linger/somebody", "")
    machine.write("run/systemd/users/1000", "")
    assert left() == []


@pytest.mark.parametrize(
    "numbers", [(USERS[0], USERS[0], USERS[0]), (0, USERS[-1], 0), (400_123, 0, 0), (0, 0, 400_123)]
)
def test_process_is_found_by_any_of_its_ids(machine, left, numbers):
    machine.write("proc/7/status", STATUS.format(*numbers))
    machine.write("proc/7/comm", "evil\x1b[2J\n")
    assert left() == ["process 7: evil\\x1b[2J"]


@pytest.mark.parametrize(
    ("place", "text", "found"),
    [
        ("proc/sysvipc/shm", SHM.format(400_123), "System V shm 12 of user 400123"),
        ("proc/key-users", KEYS.format(400_123), "keys of user 400123"),
        ("var/lib/systemd/linger/ldos-job-400123", "", "lingering user ldos-job-400123"),
        ("run/systemd/users/400123", "", "login of user 400123"),
    ],
)
def test_files_of_a_job_are_found(machine, left, place, text, found):
    machine.write(place, text)
    assert left() == [found]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("owner", [(400_123, 0), (0, 499_999)])
def test_a_file_is_found_by_user_and_by_group(machine, left, owner):
    os.chown(machine.write("var/mail/x", ""), *owner)
    os.chown(machine.write("var/mail/y", ""), 399_999, 500_000)
    assert left() == [f"file {machine.root}/var/mail/x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_many_files_are_counted(machine, left):
    for number in range(130):
        os.chown(machine.write(f"tmp/{number}", ""), 400_000, 400_000)
    assert len(left()) == 101
    assert left()[-1] == "30 more files"


def test_search_runs_without_the_checkout(machine):
    program = [sys.executable, "-I", str(LAB / "leftovers/search.py")]
    done = subprocess.run([*program, str(machine.root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (machine.root / "proc/self/mountinfo").unlink()
    done = subprocess.run([*program, str(machine.root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:8]) == (1, "OSError:")


@pytest.fixture
def stranger(machine, tmp_path, monkeypatch):
    """A process of a job's user, which the machine knows by the kernel's own file; its systemctl does nothing."""
    (tmp_path / "systemctl").write_text("#!/bin/sh\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = ["setpriv", "--reuid=400123", "--clear-groups", "--regid=400123", "sh", "-c", "echo; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"  # it is that user's now
        machine.write(f"proc/{process.pid}/status", STATUS.format(400_123, 400_123, 400_123))
        yield process
        process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_running_processes_are_ended(machine, left, stranger):
    end_leftovers(machine.root)
    assert stranger.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")
def test_missing_permission_to_end_is_reported(machine, left, stranger):
    """The service's rights may lack that of becoming another user."""
    search = ["setpriv", "--bounding-set=-setuid", sys.executable, "-I", str(LAB / "leftovers/search.py")]
    done = subprocess.run([*search, "--end", str(machine.root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "OSError: no rights of user 400123 can be had to end its processes\n")
    assert stranger.poll() is None
