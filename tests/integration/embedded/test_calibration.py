"""`ldos calibrate` and `ldos selftest` on the real stack, as short as they can be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.project import Project

LDOS = Path(sys.executable).with_name("ldos")


@pytest.fixture
def ldos(project: Project):
    """Runs a command in the project, with the embedded stack."""
    project.write("pyproject.toml", "[tool.ldos]\nwarmup = 0\n")

    def run(*arguments: str) -> subprocess.CompletedProcess:
        environment = {**project.environment, "LDOS_STACK": "embedded"}
        command = [str(LDOS), *arguments, "--format", "json"]
        return subprocess.run(
            command, cwd=project.path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.mark.acceptance
def test_a_host_is_calibrated(ldos, project, leaves_nothing):
    done = ldos("calibrate", "--blocks", "2", "--trials", "2", "--draws", "2")
    assert done.returncode == 0, done.stderr
    (scenario,) = json.loads(done.stdout)["scenarios"]
    assert scenario["calibration"]["starts"] == 2
    assert scenario["calibration"]["trials"] == 4
    assert scenario["calibration"]["metrics"]["T1"]["trial_sd"] > 0
    assert (project.path / scenario["file"]).is_file()
    assert list((project.path / ".ldos/calibration").rglob("run-001.json"))
    leaves_nothing()


@pytest.mark.acceptance
def test_a_fault_is_planted_and_judged(ldos, leaves_nothing):
    """Two trials decide nothing, and nothing is promised of them; what is found, unit tests show."""
    done = ldos("selftest", "--trials", "2", "--draws", "2", "--faults", "planning_delay", "--sizes", "9")
    assert done.returncode == 0, done.stderr
    equal, slow = json.loads(done.stdout)["points"]
    assert (equal["fault"], equal["found"]) == ("none", False)
    assert (slow["fault"], slow["size"], slow["trials"]) == ("planning_delay", 9, 2)
    assert slow["promise"] == {"what": "T1", "effect": 9, "mde": None}
    leaves_nothing()
