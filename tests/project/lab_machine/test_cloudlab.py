"""``lab/cloudlab``: the bootstrap of the repository and version that were asked for."""

from __future__ import annotations

import subprocess

import pytest

from tests.builders.lab import LAB
from tests.builders.machine import add_program

URL = "https://example.org/fork/ldos"


@pytest.fixture
def fork(machine):
    """A repository behind `URL`, whose bootstrap says its version; CloudLab's own clone of it is there."""
    origin = machine.fakes / "origin"
    add_program(origin / "lab", "bootstrap", 'echo "v1 $0"')
    git(origin, "init", "--quiet", "--initial-branch=main")
    git(origin, "add", ".")
    commit(origin, "one")
    git(origin, "tag", "v1")
    add_program(origin / "lab", "bootstrap", 'echo "v2 $0"')
    commit(origin, "two")
    (machine.root / "local").mkdir()
    git(machine.root, "clone", "--quiet", str(origin), "local/repository")
    return machine


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def commit(folder, message):
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--all", "--message", message)


def start(machine, *arguments):
    found = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{machine.fakes / 'origin'}.insteadOf",
        "GIT_CONFIG_VALUE_0": URL,
    }
    return machine.run(LAB / "cloudlab", *arguments, **found)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "v2 {root}/local/repository/lab/bootstrap\n"),
        (["", ""], "v2 {root}/local/repository/lab/bootstrap\n"),
        (["", "v1"], "v1 {root}/local/repository/lab/bootstrap\n"),
        ([URL], "v2 {root}/local/ldos/lab/bootstrap\n"),
        ([URL, "v1"], "v1 {root}/local/ldos/lab/bootstrap\n"),
    ],
)
def test_requested_version_is_set_up_at_every_start(fork, arguments, printed):
    for _ in range(2):
        done = start(fork, *arguments)
        assert (done.returncode, done.stdout) == (0, printed.format(root=fork.root)), done.stderr


@pytest.mark.parametrize("arguments", [["file:///etc"], ["--upload-pack=x"], ["", "--output=x"], ["ext::sh -c id"]])
def test_invalid_repository_or_ref_is_refused(fork, arguments):
    done = start(fork, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""


def test_missing_version_is_not_set_up(fork):
    done = start(fork, "", "v9")
    assert done.returncode != 0
    assert done.stdout == ""
