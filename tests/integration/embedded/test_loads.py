"""Loads on the running stack, with proofs while it moves."""

from __future__ import annotations

import psutil
import pytest

from pytest_ldos.measure.load.traffic_control import traffic_control_available
from tests.builders.needs import needs_stress_ng
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
def test_reach_under_cpu_load(panda_stack, cpu_load, ldos_trials, ldos_gate):
    with cpu_load(percent=40) as load:  # more, and the arm may not come home on a shared machine
        trials = ldos_trials(panda_stack)
    assert load.proof.used_percent + load.proof.waited_percent > 30
    ldos_gate.check(trials)
"""

TOGETHER = """
import pytest


@pytest.mark.baseline
def test_reach_under_three_loads(panda_stack, cpu_load, cpu_limit, memory_load, ldos_trials):
    with cpu_limit(cpus=1), memory_load(workers=1, size_mb=50), cpu_load(workers=1, percent=20, group="own"):
        ldos_trials(panda_stack)
"""

FEW = ("--ldos-trials=2", "--ldos-warmup=0")


@pytest.mark.acceptance
def test_a_flood_holds_its_rate_while_the_arm_moves(project, leaves_nothing):
    project.write("test_scenario.py", FLOOD)
    code, output = project.run(*FEW)
    assert code == 0, output
    (proof,) = project.saved("msg_load").loads
    assert proof["rate_hz"] >= 3960
    assert proof["seconds"] > 4
    assert proof["received_share"] > 0.9
    assert "of 4000 msg/s sent, " in output
    assert project.saved("msg_load").discarded_events == 0


TOO_FAST = """
import pytest

@pytest.mark.msg_load
def test_reach_under_too_much_load(panda_stack, dds_flood, ldos_trials, ldos_gate):
    with dds_flood(publishers=1, rate_hz=1_000_000, size_bytes=16, readers=False):
        trials = ldos_trials(panda_stack)
    ldos_gate.check(trials)
"""


@pytest.mark.acceptance
def test_a_flood_that_does_not_reach_its_rate_is_invalid(project, leaves_nothing):
    project.write("test_scenario.py", TOO_FAST)
    code, output = project.run("--ldos-trials=1", "--ldos-warmup=0", "--ldos-success-rate=0")
    assert code == 11, output
    (proof,) = project.saved("msg_load").loads
    assert 1000 < proof["rate_hz"] < 900_000
    assert f"the flood reached {proof['rate_hz']:.0f} of 1000000 msg/s: its publishers sent no more in time" in output


@pytest.mark.acceptance
def test_a_flood_ends_with_a_run_that_is_killed(project, leaves_nothing):
    project.write("test_scenario.py", FLOOD)
    process = project.start("--ldos-trials=50", "--ldos-warmup=0")
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 1 of 50" in line:
            break
    flooders = [child for child in psutil.Process(process.pid).children(recursive=True) if "flood" in child.name()]
    process.kill()
    process.stdout.close()
    process.wait(timeout=60)
    _, alive = psutil.wait_procs(flooders, timeout=60)
    assert len(flooders) == 5
    assert alive == []


LOSSY = """
[tool.pytest.ini_options]

[tool.ldos.scenarios.lossy]
unavailable = "WHEN"
loads = { network_impairment = { loss_percent = 5 } }
"""

EVERY = """
def test_scenario(ldos_scenario):
    ldos_scenario()
"""


@pytest.mark.skipif(traffic_control_available().ok, reason="this machine can impair its network")
@pytest.mark.starts_nothing
@pytest.mark.parametrize(("when", "expected"), [pytest.param("skip", 0, marks=pytest.mark.acceptance), ("error", 11)])
def test_impossible_impairment_is_reported_before_a_stack_starts(project, when, expected):
    """Real: whatever this machine lacks."""
    project.write("pyproject.toml", LOSSY.replace("WHEN", when))
    project.write("test_scenario.py", EVERY)
    code, output = project.run("-m", "lossy", "-rs")
    assert code == expected, output
    assert traffic_control_available().reason in " ".join(output.split())
    assert "starting the stack" not in output


@pytest.mark.acceptance
@needs_stress_ng
def test_cpu_load_is_measured_while_the_arm_moves(project, leaves_nothing):
    project.write("test_scenario.py", CPU)
    code, output = project.run(*FEW, "--ldos-success-rate=0")
    assert code == 0, output
    (proof,) = project.saved("cpu_load").loads
    assert proof["used_percent"] + proof["waited_percent"] > 30


@pytest.mark.acceptance
@needs_stress_ng
def test_simultaneous_loads_each_have_a_proof(project, leaves_nothing):
    project.write("test_scenario.py", TOGETHER)
    code, output = project.run("--ldos-trials=1", "--ldos-warmup=0", "--ldos-success-rate=0")
    assert code == 0, output
    proofs = {proof["kind"]: proof for proof in project.saved().loads}
    assert set(proofs) == {"cpu_limit", "memory_load", "cpu_load"}
    assert {proof["shortfall"] for proof in proofs.values()} == {""}
    assert proofs["cpu_limit"]["threads"] > 4
    assert proofs["memory_load"]["resident_mb"] >= 47


@pytest.mark.acceptance
def test_without_stress_ng_the_scenario_is_infra_with_an_install_command(project, leaves_nothing):
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
