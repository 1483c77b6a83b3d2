"""Permissions of a job's user, tested as that user: another UID, no capabilities, no way to regain them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.builders.lab import LabMachine
from tests.builders.machine import add_program

USER = 400_000
JOB = f"var/lib/ldos-runner/{USER}"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to another user"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv comes with util-linux"),
]


@pytest.fixture
def prepared(installed_once):
    """A machine whose job is about to begin, where others than root can look: not below pytest's own folder."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(installed_once.root.parent, folder, symlinks=True, dirs_exist_ok=True)
        Path(folder).chmod(0o755)
        machine = LabMachine(Path(folder) / "root", Path(folder) / "fakes")
        add_program(machine.fakes / "bin", "chown", 'exec /bin/chown "$@"')
        done = machine.run(machine.root / "usr/local/lib/ldos-lab/runner-prepare")
        assert done.returncode == 0, done.stderr
        yield machine


def may(machine, command, place):
    """True if a command succeeds as a job's user; ``$1`` in it is the place."""
    sh = ["sh", "-c", command, "sh", str(machine.root / place)]
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    return subprocess.run([*user, *sh], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("place", "is_readable"),
    [
        ("etc/ldos-lab/runner-token", False),
        (f"{JOB}/runner/.runner", True),
        (f"{JOB}/runner/.credentials", True),
        ("run/ldos-runner/number", False),
        ("var/log/ldos-lab/bootstrap.log", False),
        ("etc/ldos-lab/runner.toml", True),
    ],
)
def test_runner_can_read_its_files(prepared, place, is_readable):
    assert (prepared.root / place).exists()
    assert may(prepared, 'cat "$1"', place) is is_readable


@pytest.mark.parametrize(
    "place",
    [
        "etc/ldos-lab/runner-token",
        "etc/ldos-lab/runner.toml",
        "etc/ldos-lab/lab.conf",
        "run/ldos-runner/number",
        "var/lib/ldos-lab/last-job",
        f"{JOB}/runner/.runner",
        f"{JOB}/runner/bin",
        f"{JOB}/runner/externals",
        "usr/local/lib/ldos-lab/job-started.sh",
        "usr/local/lib/ldos-lab/job-started.pyz",
        "usr/local/lib/ldos-lab/runner-prepare",
        "usr/local/lib/ldos-lab/leftovers.py",
        "opt/ldos-runner/current/bin/Runner.Listener",
    ],
)
def test_runner_cannot_change_what_decides_and_runs_jobs(prepared, place):
    assert (prepared.root / place).exists()
    assert not may(prepared, ': >>"$1"', place)
    assert not may(prepared, 'mv "$1" "$1.old"', place)
    assert not may(prepared, 'rm -f "$1"', place)
    assert not may(prepared, ': >"${1%/*}/new"', place)


@pytest.mark.parametrize("place", ["home", "runner/_work", "runner/_diag"])
def test_runners_folders_are_private_and_removed_with_it(prepared, place):
    folder = prepared.root / JOB / place
    assert may(prepared, 'cd "$1" && : >.profile && mkdir x && chmod 0 x', folder)
    assert may(prepared, f'ln -s "{prepared.root}/etc" "$1/etc"', folder)
    assert not may(prepared, ': >"${1%/*}/kept"', folder)
    assert prepared.run(prepared.root / "usr/local/lib/ldos-lab/runner-clear").returncode == 0
    assert list((prepared.root / "var/lib/ldos-runner").iterdir()) == []
    assert (prepared.root / "etc/ldos-lab/runner.toml").exists()
