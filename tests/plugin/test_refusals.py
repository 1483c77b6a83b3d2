"""A session that is refused before anything is measured says why once, and leaves nothing."""

from __future__ import annotations

import os

from pytest_ldos.host.lock import measuring_lock
from tests.plugin.conftest import AGAIN, SCENARIO

SWEEP = """
import pytest

@pytest.mark.baseline
@pytest.mark.ldos_sweep("memory_load.size", [64, 256])
def test_swept(ldos_scenario):
    ldos_scenario()
"""


def test_a_busy_machine_is_told_once_and_no_folder_is_left(run, project):
    project.makepyfile(test_scenario=SCENARIO + AGAIN + SWEEP)
    with measuring_lock():
        result = run("--ldos-report=report.json")
    assert result.ret == 11
    result.assert_outcomes(errors=4)
    shown = result.stdout.str()
    assert shown.count(f"another measuring session holds this machine: pid {os.getpid()}") == 1
    assert shown.count("refused for the same reason as test_scenario.py::test_reach") == 3
    result.stdout.fnmatch_lines(["tests refused before anything was measured: 4; see above"])
    assert not (project.path / ".ldos" / "sweeps").exists()
    assert not (project.path / ".ldos" / "runs").exists()
    assert (project.path / "report.json").read_text().count("another measuring session holds this machine") == 1


def test_what_would_spoil_every_measurement_is_told_once(run, project):
    project.makepyfile(test_scenario="import pytest\npytestmark = pytest.mark.flaky\n" + SCENARIO + AGAIN)
    result = run("-o", "markers=flaky: to be run again")
    result.assert_outcomes(errors=2)
    assert result.stdout.str().count("leave out --reruns and flaky marks") == 1
    result.stdout.fnmatch_lines(["refused for the same reason as test_scenario.py::test_reach"])
