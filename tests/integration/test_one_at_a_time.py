"""The project's own scenario tests hold the machine, as everybody's do; so do whole jobs."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.json_text import read_document
from tests.builders.git import git

PROJECT = Path(__file__).parents[2]
BUSY = "another measuring session holds this machine"


@pytest.mark.acceptance
def test_a_second_measurement_of_this_project_is_refused(tmp_path):
    """Holding the lock that the other run inherits the name of: nothing is started."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "baseline", f"--ldos-output={tmp_path}"]
    with measuring_lock():
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert BUSY in done.stdout
    assert done.returncode == exit_codes.INVALID


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a job of a CI in a clone of its own: `.ci/measure` on the embedded stack, in this environment."""
    monkeypatch.setenv("LDOS_LOCK", f"ldos-test-{secrets.token_hex(8)}")
    started: list[subprocess.Popen[str]] = []

    def run(name: str, *, trials: int) -> subprocess.Popen[str]:
        clone = tmp_path / name
        git(tmp_path, "clone", "--quiet", "--no-local", "--depth=1", PROJECT.as_uri(), name)
        settings = {
            "GATE_COMMIT": git(clone, "rev-parse", "HEAD").strip(),
            "GATE_STACK": "embedded",
            "GATE_SCENARIOS": "baseline",
            "GATE_TRIALS": f"{trials}",
            "GATE_MAX_TRIALS": f"{trials}",
            "GATE_BIN": str(Path(sys.executable).parent),
            "LDOS_STRICT": "0",
        }
        job = subprocess.Popen(
            ["sh", ".ci/measure"],
            cwd=clone,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(job)
        return job

    yield run
    for job in started:
        job.terminate()
        job.communicate(timeout=60)


def require_refused(job: subprocess.Popen[str], clone: Path, *, holder: str) -> None:
    """Ended with 11, and the report that others read names who measures."""
    output, _ = job.communicate(timeout=300)
    assert job.returncode == exit_codes.INVALID, output
    (section,) = read_document(clone / "results/result.json").sections
    assert (section.verdict, section.head) == (Verdict.INFRA, None)
    assert BUSY in " ".join(section.reasons)
    assert holder in output, output


def test_job_on_a_busy_machine_is_infra_and_names_the_holder(start, tmp_path):
    with measuring_lock():
        require_refused(start("second", trials=1), tmp_path / "second", holder=f"{os.getpid()}")


@pytest.mark.acceptance
def test_one_of_two_simultaneous_jobs_measures_and_the_other_names_it(start, tmp_path):
    first = start("first", trials=2)
    assert first.stdout is not None
    seen = []
    for line in first.stdout:
        seen.append(line)
        if "trial 1 of 2" in line:
            break
    require_refused(start("second", trials=2), tmp_path / "second", holder=str(tmp_path / "first"))
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, "".join(seen) + output
    (section,) = read_document(tmp_path / "first/results/result.json").sections
    assert section.head is not None
    assert section.head.successes == 2
