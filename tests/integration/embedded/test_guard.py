"""A guard with a running stack and a flood: it throttles, or its fault is reported."""

from __future__ import annotations

import pytest

GUARDED = """
[tool.pytest.ini_options]

[tool.ldos.scenarios.guarded]
trials = 1
warmup = 0
success_rate = 0

[tool.ldos.scenarios.guarded.loads.dds_flood]
publishers = 2
rate_hz = 200

[tool.ldos.scenarios.guarded.loads.guard]
deadline_ms = 0.001        # nothing is that early: each window is late
"""

EVERY = """
import pytest

@pytest.mark.ldos_scenarios("guarded")
def test_scenario(ldos_scenario):
    ldos_scenario()
"""

KILLED = """
import pytest

@pytest.mark.guarded
def test_a_guard_dies(ldos_stack, dds_flood, guard, ldos_trials, ldos_gate):
    import psutil
    with guard() as guarded, dds_flood():
        (child,) = [each for each in psutil.Process().children(recursive=True) if each.name() == "guard"]
        child.kill()
        trials = ldos_trials(ldos_stack)
    ldos_gate.check(trials)
"""


@pytest.mark.acceptance
def test_a_guarded_flood_is_throttled_and_valid(project, leaves_nothing):
    project.write("pyproject.toml", GUARDED)
    project.write("test_scenario.py", EVERY)
    code, output = project.run("-m", "guarded")
    assert code == 0, output
    proofs = {proof["kind"]: proof for proof in project.saved("guarded").loads}
    guard, flood = proofs["guard"], proofs["dds_flood"]
    assert (guard["shortfall"], flood["shortfall"], guard["missing"], guard["obedient"]) == ("", "", [], 2)
    assert guard["least"] == 0.01
    assert flood["rate_hz"] < 200 < flood["requested_hz"]
    leaves_nothing()


@pytest.mark.acceptance
def test_a_guard_that_is_killed_makes_the_run_invalid(project, leaves_nothing):
    project.write("pyproject.toml", GUARDED)
    project.write("test_scenario.py", KILLED)
    code, output = project.run()
    assert code == 11, output
    assert "guard was killed by SIGKILL" in output
    leaves_nothing()
