"""A second stack beside the first: the real embedded one, and what can become of it."""

from __future__ import annotations

import os
from dataclasses import replace

import psutil
import pytest

from pytest_ldos.errors import LoadFailed, Unavailable
from pytest_ldos.host.autogroup import is_grouped_by_session
from pytest_ldos.load import neighbour
from pytest_ldos.load.choose import load_available
from pytest_ldos.load.neighbour import RunningNeighbour, run_neighbour, stack_of_neighbour
from pytest_ldos.load.neighbour_driver import parse_stack
from pytest_ldos.load.protocol import proof_to_dict
from pytest_ldos.scenario.loads import NeighbourStack, NoisyNeighbourSpec, SchedulerGroup
from pytest_ldos.scenario.model import FaultSpec, StackKind, StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec, Simulation
from tests.builders.stressors import is_gone, running, wait_until

available = load_available(NoisyNeighbourSpec(), StackSpec())
needs_embedded = pytest.mark.skipif(not available.ok, reason=available.reason or "available")


@needs_embedded
def test_a_second_stack_moves_apart_from_the_first_and_its_death_is_a_shortfall(site):
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
            assert "the stack in /autogroup" in proof.group_found
        next(each for each in processes if each.name() == "simulator").kill()
        wait_until(lambda: load.proof.shortfall, timeout_s=60)
        assert "the neighbour died" in load.proof.shortfall
        assert "simulator was killed by SIGKILL" in load.proof.shortfall
    assert all(is_gone(each.pid) for each in processes)
    assert f"domain {proof.domain}): {proof.completed} goals reached" in proof.describe()
    assert proof_to_dict(proof)["stack"] == "embedded"


@needs_embedded
def test_one_that_does_not_start_says_why(site, monkeypatch, tmp_path):
    broken = StackSpec(kind=StackKind.EMBEDDED, goals=str(tmp_path / "none.yaml"))
    monkeypatch.setattr(neighbour, "stack_of_neighbour", lambda spec, stack: broken)
    with (
        pytest.raises(
            LoadFailed, match=r"did not start to move \(neighbour ended with exit code 1\)\n(.|\n)*none.yaml"
        ),
        run_neighbour(NoisyNeighbourSpec(), site),
    ):
        pass
    assert running("simulator") == []


def test_a_stack_that_is_not_installed_is_said_before(site):
    spec = NoisyNeighbourSpec(stack=NeighbourStack.ROS2)
    elsewhere = StackSpec(ros2=Ros2Spec(launch_file="there_is_no_such_package/stack.launch.py"))
    assert not load_available(spec, elsewhere).ok
    with pytest.raises(Unavailable), run_neighbour(spec, replace(site, stack=elsewhere)):
        pass


def test_the_same_stack_once_more_is_without_faults_and_reaches_the_driver_whole():
    stack = StackSpec(
        faults=FaultSpec(planning_delay_ms=5),
        ros2=Ros2Spec(launch_file="arm/arm.launch.py", sim=Simulation.MOCK, controllers=("one",)),
    )
    found = stack_of_neighbour(NoisyNeighbourSpec(stack=NeighbourStack.ROS2), stack)
    assert found.kind is StackKind.ROS2
    assert found.faults == FaultSpec()
    command = neighbour._command(found, "/tmp")
    assert parse_stack(neighbour.json.loads(command[-1])["stack"]) == found


def test_one_that_hardly_moves_is_a_shortfall(monkeypatch):
    load = RunningNeighbour.__new__(RunningNeighbour)
    load._time = type("Time", (), {"elapsed_s": 40.0})()
    assert load._idleness(3, 1) == ""
    assert load._idleness(1, 2) == "the neighbour failed in 2 of 3 goals"
    assert load._idleness(0, 0) == "the neighbour reached no goal in 40 s"
