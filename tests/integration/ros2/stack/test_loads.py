"""Loads beside the real stack: the workspace's flood on each middleware, and nothing left of it."""

from __future__ import annotations

import time

import pytest

from tests.integration.ros2.stack.conftest import survivors

FLOOD = """
import pytest

@pytest.mark.msg_load
def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
    with dds_flood(SETTINGS) as flood:
        ldos_gate.check(ldos_trials(panda_stack))
"""


@pytest.mark.parametrize("settings", ["", "publishers=3, participants=2, burst=10, reliability='reliable', depth=50"])
def test_the_workspace_floods_the_stack(project, rmw, leaves_nothing, settings):
    project.write("test_scenario.py", FLOOD.replace("SETTINGS", settings))
    code, output = project.run(f"--ldos-rmw={rmw}", "--ldos-trials=2", "--ldos-warmup=0")
    assert code == 0, output
    (proof,) = project.saved("msg_load").loads
    assert proof["shortfall"] == ""
    assert proof["rate_hz"] >= 0.99 * proof["requested_hz"]
    assert proof["received_share"] > 0.9
    assert proof["seconds"] > 4


def test_a_flood_ends_with_a_run_that_is_killed(project, rmw, mark, leaves_nothing):
    project.write("test_scenario.py", FLOOD.replace("SETTINGS", ""))
    process = project.start(f"--ldos-rmw={rmw}", "--ldos-trials=50", "--ldos-warmup=0")
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 1 of 50" in line:
            break
    assert sum("flood" in name for name in survivors(mark).values()) == 5
    process.kill()
    process.stdout.close()
    process.wait(timeout=60)
    deadline = time.monotonic() + 30
    while survivors(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
