"""Runs of the real stack (ROS 2, MoveIt, ros2_control), and what they may not leave behind.

They need the workspace `ros_ws`, built and sourced. The arm is mock hardware, or Gazebo's with `LDOS_SIM=gz`; Gazebo also
has tests of its own where it is installed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator

import psutil
import pytest

from pytest_ldos.host.availability import find_ros_packages
from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.robot.stack.ros2.installed import ZENOH, ros2_available
from pytest_ldos.robot.stack.ros2.state import GAZEBO_PACKAGES
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import Simulation
from tests.builders.needs import lttng_here
from tests.integration.project import Project, left_in_memory, make_project, shared_memory

SIM = os.environ.get("LDOS_SIM", "mock")
MOCK = StackSpec(ros2=Ros2Spec(sim=Simulation.MOCK))
GAZEBO = find_ros_packages(GAZEBO_PACKAGES)
needs_gazebo = pytest.mark.skipif(not GAZEBO.ok, reason=GAZEBO.reason or "Gazebo is installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = [each.reason for each in (ros2_available(MOCK), lttng_here()) if not each.ok]
    for item in items:
        if reasons and "integration/ros2/stack" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


@pytest.fixture
def mark(monkeypatch) -> str:
    """In the environment of everything that a test starts."""
    mark = f"PYTEST_LDOS_TEST={secrets.token_hex(8)}"
    monkeypatch.setenv(*mark.split("="))
    return mark


def survivors(mark: str) -> dict[int, str]:
    """Processes of a test that still run: names by pid."""
    name, value = mark.split("=")
    found = {}
    for pid in set(pids_with({name: value})) - {os.getpid()}:
        with contextlib.suppress(psutil.NoSuchProcess):
            found[pid] = psutil.Process(pid).name()
    return found


@pytest.fixture
def project(tmp_path, mark) -> Project:
    made = make_project(tmp_path)
    made.environment |= {"LDOS_STACK": "ros2", "LDOS_SIM": SIM}
    return made


@pytest.fixture
def leaves_nothing(mark) -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process or shared memory behind."""
    memory = shared_memory()

    def check() -> None:
        assert survivors(mark) == {}
        assert left_in_memory(memory) == set()

    yield check
    check()


@pytest.fixture(params=["rmw_fastrtps_cpp", "rmw_cyclonedds_cpp", ZENOH])
def rmw(request) -> str:
    """Each middleware; the run says which one it had."""
    found = ros2_available(StackSpec(ros2=Ros2Spec(sim=Simulation.MOCK, rmw=request.param)))
    if not found.ok:
        pytest.skip(found.reason)
    return str(request.param)
