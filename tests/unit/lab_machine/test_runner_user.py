"""What a job's user may, asked as that user: another number, no rights, no way back to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.builders.lab import LabMachine
from tests.builders.machine import add_program

USER = 54321
CHOWN = (
    f"""words=$(printf '%s ' "$@" | sed 's/:ldos-runner/:{USER}/; s/ldos-runner:/{USER}:/'); exec /bin/chown $words"""
)

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv comes with util-linux"),
]


@pytest.fixture
def prepared(installed_once):
    """A machine whose job is about to begin, where others than root can look: not below pytest's own folder."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(installed_once.root.parent, folder, symlinks=True, dirs_exist_ok=True)
        Path(folder).chmod(0o755)
        machine = LabMachine(Path(folder) / "root", Path(folder) / "fakes")
        add_program(machine.fakes / "bin", "chown", CHOWN)
        done = machine.run(machine.root / "usr/local/lib/ldos-lab/runner-prepare")
        assert done.returncode == 0, done.stderr
        yield machine


def may(machine, command, place):
    """Whether a job's user may do that with a place; ``$1`` in the command."""
    sh = ["sh", "-c", command, "sh", str(machine.root / place)]
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
    return subprocess.run([*user, *sh], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("place", "is_readable"),
    [
        ("etc/ldos-lab/runner-token", False),
        ("run/ldos-runner/jitconfig", True),
        ("var/log/ldos-lab/bootstrap.log", False),
        ("etc/ldos-lab/runner.toml", True),
    ],
)
def test_what_it_reads(prepared, place, is_readable):
    assert (prepared.root / place).exists()
    assert may(prepared, 'cat "$1"', place) is is_readable


@pytest.mark.parametrize(
    "place",
    [
        "etc/ldos-lab/runner-token",
        "etc/ldos-lab/runner.toml",
        "etc/ldos-lab/lab.conf",
        "run/ldos-runner/jitconfig",
        "usr/local/lib/ldos-lab/job-started.sh",
        "usr/local/lib/ldos-lab/job-started.pyz",
        "usr/local/lib/ldos-lab/runner-prepare",
        "opt/ldos-runner/current/run.sh",
    ],
)
def test_what_decides_over_the_next_job_it_cannot_change(prepared, place):
    assert (prepared.root / place).exists()
    assert not may(prepared, ': >>"$1"', place)
    assert not may(prepared, 'mv "$1" "$1.old"', place)
    assert not may(prepared, 'rm -f "$1"', place)
    assert not may(prepared, ': >"${1%/*}/new"', place)


def test_its_own_folder_is_its_own_and_ends_with_it(prepared):
    job = prepared.root / "var/lib/ldos-runner/job"
    assert may(prepared, 'cd "$1/runner" && : >.credentials && : >../home/.profile && mkdir ../x && chmod 0 ../x', job)
    assert may(prepared, f'ln -s "{prepared.root}/etc" "$1/home/etc"', job)
    assert not may(prepared, ': >"${1%/*}/kept"', job)
    assert prepared.run(prepared.root / "usr/local/lib/ldos-lab/runner-clear").returncode == 0
    assert list(job.parent.iterdir()) == []
    assert (prepared.root / "etc/ldos-lab/runner.toml").exists()
