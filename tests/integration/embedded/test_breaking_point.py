"""`ldos find-breaking` on the real stack: its first starts, flooded as asked, one after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.campaign.find_breaking import BreakingStore
from tests.integration.project import Project

LDOS = Path(sys.executable).with_name("ldos")


@pytest.fixture
def find_breaking(project: Project):
    """Begins or goes on with a search in the project, for as long as one start takes."""
    project.write("pyproject.toml", "[tool.ldos]\nwarmup = 0\n")

    def run() -> subprocess.CompletedProcess:
        environment = {**project.environment, "LDOS_STACK": "embedded"}
        range_of_rates = ("--lo", "150", "--hi", "20000", "--until", "T1>3x")
        little = ("--trials-per-start", "1", "--time-limit", "0.001s", "--format", "json")
        command = [str(LDOS), "find-breaking", "dds_flood.rate", *range_of_rates, *little]
        return subprocess.run(
            command, cwd=project.path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.mark.acceptance
def test_each_start_is_kept_and_the_search_resumes(find_breaking, project, leaves_nothing):
    for count in (1, 2):
        done = find_breaking()
        assert done.returncode == 11, done.stderr
        document = json.loads(done.stdout)
        (calm,) = document["levels"]
        assert (calm["level"], calm["trials"], calm["standing"]) == (150, count, "open")
        assert calm["median"] > 0
        assert "the same command goes on from here" in document["remarks"][0]
        assert f"start {count} at 150; {count - 1} trials" in done.stderr
    (folder,) = {file.parent for file in (project.path / ".ldos/breaking").rglob("start-*.json")}
    first, second = (trials for stored in BreakingStore(folder).documents().values() for trials in stored.sets.values())
    for start in (first, second):
        (trial,) = start.trials
        (proof,) = start.loads
        assert proof["requested_hz"] == 4 * 150
        assert proof["shortfall"] == ""
        assert {"T1", "T3p99", "T5p99"} <= {
            name for name, each in trial.measurements.items() if each.number is not None
        }
        kinds = {segment.partition(":")[0] for segment in trial.segments_ns["state feedback"]}
        assert {"transport", "executor wait"} <= kinds
    assert second.trials[0].block == 1
    leaves_nothing()
