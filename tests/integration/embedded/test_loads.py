"""Loads beside the running stack, proven while it moves."""

from __future__ import annotations

import pytest

from pytest_ldos.load.stress_ng import stress_ng_available
from tests.integration.project import SCENARIO

FLOOD = """
import pytest

@pytest.mark.msg_load
def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
    with dds_flood(publishers=4, rate_hz=1000, size_bytes=1024) as flood:
        trials = ldos_trials(panda_stack, goals="reach")
    assert flood.proof.rate_hz >= 3960
    ldos_gate.check(trials)
"""

CPU = """
import pytest

@pytest.mark.cpu_load
def test_reach_beside_cpu_load(panda_stack, cpu_load, ldos_trials, ldos_gate):
    with cpu_load(percent=80) as load:
        trials = ldos_trials(panda_stack)
    assert load.proof.used_percent > 50
    ldos_gate.check(trials)
"""

FEW = ("--ldos-trials=2", "--ldos-warmup=0")


def test_a_flood_holds_its_rate_while_the_arm_moves(project, leaves_nothing):
    project.write("test_scenario.py", FLOOD)
    code, output = project.run(*FEW)
    assert code == 0, output
    (proof,) = project.saved("msg_load").loads
    assert proof["rate_hz"] >= 3960
    assert proof["seconds"] > 4
    assert "msg/s received (4 publishers, 1024 bytes)" in output
    assert project.saved("msg_load").discarded_events == 0


@pytest.mark.skipif(not stress_ng_available().ok, reason=stress_ng_available().reason or "available")
def test_cpu_load_is_measured_while_the_arm_moves(project, leaves_nothing):
    project.write("test_scenario.py", CPU)
    code, output = project.run(*FEW, "--ldos-success-rate=0")
    assert code == 0, output
    (proof,) = project.saved("cpu_load").loads
    assert proof["used_percent"] > 50


def test_without_stress_ng_the_scenario_is_infra_and_says_what_to_install(project, leaves_nothing):
    project.write("test_scenario.py", CPU + SCENARIO)
    project.write(
        "conftest.py",
        "import shutil\nwhich = shutil.which\nshutil.which = lambda name, *a, **k: None if name == 'stress-ng' else which(name, *a, **k)\n",
    )
    code, output = project.run("--ldos-trials=1", "--ldos-warmup=0")
    assert code == 11, output
    assert "stress-ng not found" in output
    assert "sudo apt-get install stress-ng" in output
    assert "baseline: no_baseline; 1 of 1" in output
    assert "Traceback" not in output
