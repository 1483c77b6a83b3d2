"""A planted regression of the real embedded stack: the report names its function without being asked."""

from __future__ import annotations

import json
import os
import sys

import pytest

from pytest_ldos.record.py_spy import py_spy_available
from tests.integration.project import Project, make_other_version

AVAILABLE = py_spy_available()
pytestmark = pytest.mark.skipif(not AVAILABLE.ok, reason=AVAILABLE.reason or "py-spy can sample")

TARGET = "    def _target(self, goal: Goal, start: Joints, seed: int, kinematics: Kinematics) -> Joints:\n"
QUADRATIC = f"""    def _find_duplicates(self, count: int) -> int:
        found = 0
        for one in range(count):
            for other in range(count):
                found += one == other
        return found

{TARGET}        self._find_duplicates(1500)
"""


@pytest.mark.acceptance
def test_quadratic_loop_is_named(project: Project, leaves_nothing):
    project.python = make_other_version(project.path / "head", "move_group.py", {TARGET: QUADRATIC})
    project.environment["PATH"] = f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"
    options = ("--ldos-trials=10", "--ldos-max-trials=20", "--ldos-report=report.json")
    code, output = project.run(f"--ldos-base={sys.prefix}", *options, timeout_s=1200)
    assert code == 10, output
    assert "regressed: profiling 2 more starts of each version to find the cause, about " in output
    (section,) = json.loads((project.path / "report.json").read_text("utf-8"))["sections"]
    first = section["evidence"]["grown"][0]
    assert (first["process"], first["function"]) == ("move_group", "Planner._find_duplicates"), output
    assert first["file"] == "pytest_ldos/robot/stack/embedded/move_group.py"
    assert first["base"] == 0
    assert first["callers"][-1] == "Planner._target"
    assert len(project.saved().trials) in range(10, 21)
