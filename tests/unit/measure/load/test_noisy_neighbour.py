"""A second stack alongside the first: the real embedded stack, and its failures."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import psutil
import pytest

from pytest_ldos.base.errors import LoadFailed, Unavailable
from pytest_ldos.base.files import PlainReader
from pytest_ldos.host.cpu import is_grouped_by_session, read_scheduling_group
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.load import noisy_neighbour
from pytest_ldos.measure.load.noisy_neighbour import RunningNeighbour, run_neighbour, stack_of_neighbour
from pytest_ldos.measure.load.protocol import load_available, proof_to_dict
from pytest_ldos.scenario.loads import NeighbourStack, NoisyNeighbourSpec, SchedulerGroup
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, StackSpec
from pytest_ldos.scenario.words import Simulation, StackKind
from tests.builders.needs import needs
from tests.builders.stressors import is_gone, running, wait_until

needs_embedded = needs(lambda: load_available(NoisyNeighbourSpec(), StackSpec()))


@pytest.mark.acceptance
@needs_embedded
@pytest.mark.alone
def test_second_stack_is_separate_and_its_death_is_a_shortfall(site):
    with run_neighbour(NoisyNeighbourSpec(group=SchedulerGroup.OWN), site) as load:
        processes = psutil.Process(load._driver.pid).children(recursive=True)
        assert {"simulator", "move_group", "goal_client"} <= {each.name() for each in processes}
        wait_until(lambda: load.proof.completed >= 1, timeout_s=60)
        proof = load.proof
        assert proof.shortfall == ""
        assert proof.domain != site.domain
        assert proof.cpu_seconds > 0
        if is_grouped_by_session():
            assert {os.getsid(each.pid) for each in processes} == {load._driver.pid}
            assert proof.group_found.startswith("/autogroup-")
            assert proof.group_found.endswith(f"the stack in {read_scheduling_group(os.getpid()).describe()}")
        next(each for each in processes if each.name() == "simulator").kill()
        wait_until(lambda: load.proof.shortfall, timeout_s=60)
        assert "the neighbour died" in load.proof.shortfall
        assert "simulator was killed by SIGKILL" in load.proof.shortfall
    assert all(is_gone(each.pid) for each in processes)
    assert f"domain {proof.domain}): {proof.completed} goals reached" in proof.describe()
    assert proof_to_dict(proof)["stack"] == "embedded"


@needs_embedded
def test_failed_start_has_a_reason(site, monkeypatch, tmp_path):
    broken = StackSpec(kind=StackKind.EMBEDDED, goals=str(tmp_path / "none.yaml"))
    monkeypatch.setattr(noisy_neighbour, "stack_of_neighbour", lambda spec, stack: broken)
    with (
        pytest.raises(
            LoadFailed, match=r"did not start to move \(neighbour ended with exit code 1\)\n(.|\n)*none.yaml"
        ),
        run_neighbour(NoisyNeighbourSpec(), site),
    ):
        pass
    assert running("simulator") == []


def test_missing_stack_is_reported_before_the_start(site):
    spec = NoisyNeighbourSpec(stack=NeighbourStack.ROS2)
    elsewhere = StackSpec(ros2=Ros2Spec(launch_file="there_is_no_such_package/stack.launch.py"))
    assert not load_available(spec, elsewhere).ok
    with pytest.raises(Unavailable), run_neighbour(spec, replace(site, stack=elsewhere)):
        pass


def test_copied_stack_has_no_faults_and_cpus_and_reaches_the_driver_unchanged():
    stack = StackSpec(
        cpus="2-3",
        faults=FaultSpec(planning_delay_ms=5),
        ros2=Ros2Spec(launch_file="arm/arm.launch.py", sim=Simulation.MOCK, controllers=("one",)),
    )
    found = stack_of_neighbour(NoisyNeighbourSpec(stack=NeighbourStack.ROS2), stack)
    assert found.kind is StackKind.ROS2
    assert found.faults == FaultSpec()
    assert found.cpus == ""
    command = noisy_neighbour._command(found, "/tmp")
    assert PlainReader().read(StackSpec, json.loads(command[-1])["stack"], "the stack") == found


@pytest.fixture
def say(site, tmp_path):
    """A driver that prints some lines and then stops; returns when all are read."""
    group = ProcessGroup(log_directory=tmp_path)

    def start(*lines: str) -> RunningNeighbour:
        code = "import sys, time; print(*sys.argv[1:], sep='\\n', flush=True); time.sleep(60)"
        driver = group.start("neighbour", [sys.executable, "-c", code, *lines], talk=True)
        return RunningNeighbour(NoisyNeighbourSpec(), driver, site)

    yield start
    group.stop()


def ended(completed: int, failed: int) -> str:
    return json.dumps({"domain": 3, "completed": completed, "failed": failed})


def test_mostly_failing_neighbour_is_a_shortfall(say):
    load = say(ended(3, 1))
    wait_until(lambda: load.proof.failed)
    assert load.proof.shortfall == ""
    load = say(ended(1, 2))
    wait_until(lambda: load.proof.failed)
    assert load.proof.shortfall == "the neighbour failed in 2 of 3 goals"


def test_stalled_neighbour_is_a_shortfall(say, monkeypatch):
    monkeypatch.setattr(noisy_neighbour, "IDLE_S", 0.2)
    load = say(ended(5, 0))
    wait_until(lambda: load.proof.completed)
    wait_until(lambda: load.proof.shortfall)
    assert "none of the neighbour's goals ended in 0 s" in load.proof.shortfall


def test_invalid_line_is_a_shortfall_and_reading_continues(say):
    load = say(ended(1, 0), "\x1b[2Jmoving", '{"domain": "?"}', ended(2, 0))
    wait_until(lambda: load.proof.completed == 2)
    assert load.proof.shortfall == r"the neighbour printed '\\x1b[2Jmoving'"
