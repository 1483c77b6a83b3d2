"""Tests that run under coverage measure a stack that does not."""

from __future__ import annotations

import json

import pytest

from tests.integration.project import Project

SEEN = """
import contextlib, json
from pathlib import Path
from pytest_ldos.measure.trial import rig

opened = rig.open_rig

@contextlib.contextmanager
def noted(*arguments, **settings):
    with opened(*arguments, **settings) as made:
        pids = made.stack.pids()
        maps = {pid: Path(f"/proc/{pid}/maps").read_text() for pid in pids}
        environments = [Path(f"/proc/{pid}/environ").read_text().split(chr(0)) for pid in pids]
        Path("seen.json").write_text(json.dumps({
            "processes": len(pids),
            "under coverage": [pid for pid, text in maps.items() if "/coverage/" in text],
            "variables": sorted({each for found in environments for each in found if each.startswith("COV")}),
        }))
        yield made

rig.open_rig = noted
"""


@pytest.mark.acceptance  # of any child of ours, `tests/unit/host/test_inherited` shows it
def test_no_process_of_the_stack_runs_under_coverage(project: Project, leaves_nothing):
    pytest.importorskip("pytest_cov")
    project.write("conftest.py", SEEN)
    project.write(".coveragerc", "[run]\npatch = subprocess\nparallel = true\n")
    code, output = project.run("--cov=pytest_ldos", "--cov-report=", "--ldos-trials=1", "--ldos-warmup=0")
    assert code == 0, output
    seen = json.loads((project.path / "seen.json").read_text())
    assert seen["processes"] >= 4
    assert seen["under coverage"] == []
    assert seen["variables"] == []
    assert any(each.startswith("COV") for each in project.saved().withheld)
