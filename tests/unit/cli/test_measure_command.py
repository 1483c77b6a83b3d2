"""``ldos measure``: the script that it runs gets its options and its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.command_line import run_ldos
from tests.builders.git import git

LDOS = Path(sys.executable).parent / "ldos"


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "first")
    return tmp_path


def measure(checkout: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], **settings}
    return subprocess.run(
        [LDOS, "measure", *arguments], cwd=checkout, env=own, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_commit_that_is_checked_out_is_measured_in_this_environment(checkout):
    """Up to pytest, which finds no test here."""
    done = measure(checkout, "--stack=embedded", GATE_TRIALS="1")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "measure: the stack is embedded" in done.stderr
    assert (checkout / "results/junit.xml").is_file()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        pytest.param(
            ("--stack=gazebo",), "the stack is neither ros2 nor embedded nor both", marks=pytest.mark.acceptance
        ),
        pytest.param(("--base=nowhere",), "GATE_BASE is no revision here", marks=pytest.mark.acceptance),
        (("--commit", "1f" * 20), "GATE_COMMIT is no commit here"),
        (("everything",), "usage: ldos measure [pack]"),
    ],
)
def test_refused_settings_are_not_measured(checkout, arguments, reason):
    done = measure(checkout, *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert not (checkout / "results").exists()


def test_settings_of_a_job_are_variables(checkout):
    assert "GATE_TRIALS is no number" in measure(checkout, GATE_TRIALS="ten").stderr


def test_missing_checkout_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    done = run_ldos("measure")
    assert done.returncode == 2
    assert "no commit is checked out here" in done.stderr
