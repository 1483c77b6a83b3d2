"""A machine that lacks something: the reason, the remedy, and never a green run."""

from __future__ import annotations

import pytest

from pytest_ldos.base import exit_codes

pytestmark = pytest.mark.starts_nothing

HIDE_PROGRAMS = """
import shutil
which = shutil.which
shutil.which = lambda name, *a, **k: None if name.startswith("lttng") else which(name, *a, **k)
"""

HIDE_MODULE = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a, **k: None if name == "%s" else find_spec(name, *a, **k)
"""


@pytest.mark.parametrize(
    ("conftest", "reason", "remedy"),
    [
        (HIDE_PROGRAMS, "lttng, lttng-sessiond not found", "sudo apt-get install lttng-tools"),
        pytest.param(
            HIDE_MODULE % "cyclonedds",
            "Python package cyclonedds not installed",
            "pip install 'pytest-ldos[embedded]'",
            marks=pytest.mark.acceptance,
        ),
        pytest.param(
            HIDE_MODULE % "pytest_ldos.robot.dds._lttng",
            "pytest-ldos was built without tracepoints, because LTTng-UST was missing",
            "sudo apt-get install liblttng-ust-dev, then build again",
            marks=pytest.mark.acceptance,
        ),
    ],
)
def test_missing_parts_are_named_with_a_remedy(project, conftest, reason, remedy):
    project.write("conftest.py", conftest)
    code, output = project.run("--ldos-trials=1", "--ldos-warmup=0")
    assert code == exit_codes.INVALID, output
    assert f"ldos: cannot measure: {reason} → {remedy}" in output.replace("\n", " ")
    assert "baseline: infra; nothing measured" in output
    assert "Traceback" not in output
