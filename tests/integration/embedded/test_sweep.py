"""A sweep of the embedded stack: real floods, killed in the middle, gone on with, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_ldos.campaign.sweep import CellState, all_sweeps
from tests.integration.project import Project

OVER = ("--over", "dds_flood.rate=100,1000", "--trials", "3", "--name", "floods", "--format", "json")


def start(project: Project) -> subprocess.Popen:
    command = [str(Path(sys.executable).with_name("ldos")), "sweep", *OVER]
    environment = {**project.environment, "LDOS_WARMUP": "0"}
    return subprocess.Popen(
        command, cwd=project.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def await_first_cell(project: Project, sweep: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not list(project.path.glob(".ldos/sweeps/floods/*/cells/*.json")):
        assert sweep.poll() is None, sweep.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.acceptance
def test_sweep_killed_after_a_cell_resumes(project, leaves_nothing):
    killed = start(project)
    await_first_cell(project, killed)
    killed.kill()
    killed.communicate()
    resumed = start(project)
    output, reported = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, reported
    assert "1 of 2 starts are complete" in reported
    (folder,) = all_sweeps(project.path / ".ldos")
    found = folder.records().values()
    assert [record.state for record in found] == [CellState.MEASURED] * 2
    calm, flooded = json.loads(output)["cells"]
    assert (calm["trials"], flooded["trials"]) == (3, 3)
    assert "of 400 msg/s sent" in calm["loads"][0]
    assert "of 4000 msg/s sent" in flooded["loads"][0]
    assert flooded["metrics"]["T1"]["ratio"] > 0
