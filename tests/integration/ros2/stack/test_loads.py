"""Loads on the real stack: floods on each middleware, a CPU limit, a second stack; they leave nothing behind."""

from __future__ import annotations

import json
import time

import pytest

from pytest_ldos.host.cpu import our_cpus
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


LIMITED = """
import contextlib
import json
import pytest
from pytest_ldos.host.cpu import read_affinities, with_descendants
from pytest_ldos.measure.load.protocol import RepeatedLoad

def every_thread(pids):
    return {thread.describe(): sorted(cpus) for thread, cpus in read_affinities(with_descendants(pids)).items()}

@pytest.fixture
def found(monkeypatch):
    found, applied_to = [], RepeatedLoad.applied_to

    @contextlib.contextmanager
    def looked_at(load, site):
        found.append(every_thread(site.pids()))
        with applied_to(load, site) as running:
            yield running
            found.append(every_thread(site.pids()))
        found.append(every_thread(site.pids()))

    monkeypatch.setattr(RepeatedLoad, "applied_to", looked_at)
    return found

@pytest.mark.cpu_limit
def test_reach_on_one_cpu(panda_stack, cpu_limit, ldos_trials, ldos_gate, found):
    with cpu_limit(cpus=1):
        trials = ldos_trials(panda_stack)
    with open("cpus.json", "w") as file:
        json.dump(found, file)
    ldos_gate.check(trials)
"""


@pytest.mark.skipif(len(our_cpus()) < 2, reason="there is one CPU here, so nothing to take away")
def test_every_thread_runs_on_one_cpu_and_is_restored(project, rmw, leaves_nothing):
    project.write("test_scenario.py", LIMITED)
    code, output = project.run(f"--ldos-rmw={rmw}", "--ldos-trials=2", "--ldos-warmup=0", "--ldos-success-rate=0")
    assert code == 0, output
    (proof,) = project.saved("cpu_limit").loads
    before, limited, after = json.loads((project.path / "cpus.json").read_text())
    assert proof["shortfall"] == ""
    assert set(map(tuple, before.values())) == set(map(tuple, after.values())) == {tuple(sorted(our_cpus()))}
    assert set(map(tuple, limited.values())) == {(min(our_cpus()),)}
    assert any("move_group" in thread for thread in limited)
    assert any("ros2_control" in thread for thread in limited)
    assert abs(proof["threads"] - len(limited)) <= 5
    assert 0 < proof["used_percent"] <= 105
