"""Runs of the real stack (ROS 2, MoveIt, ros2_control, mock hardware), and what they may not leave behind.

They need the workspace `ros_ws`, built and sourced. Gazebo has tests of its own where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pytest_ldos.recording.lttng import lttng_available
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.ros2 import Ros2Spec, Simulation
from pytest_ldos.stack.ros2.installed import ros2_available
from tests.integration.project import Project, make_project

NAMES = ("move_group", "ros2_control_nod", "robot_state_pub", "goal_client", "spawner", "ruby", "lttng-sessiond")
MOCK = StackSpec(ros2=Ros2Spec(sim=Simulation.MOCK))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = [each.reason for each in (ros2_available(MOCK), lttng_available()) if not each.ok]
    for item in items:
        if reasons and "integration/ros2/stack" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


def running() -> set[int]:
    """Pids of everything a run of ours may start, but zombies."""
    return {
        process.pid
        for process in psutil.process_iter(["name", "status"])
        if process.info["name"].startswith(NAMES) and process.info["status"] != psutil.STATUS_ZOMBIE
    }


def shared_memory() -> set[str]:
    return {file.name for file in Path("/dev/shm").iterdir()}


@pytest.fixture
def project(tmp_path) -> Project:
    made = make_project(tmp_path)
    made.environment |= {"LDOS_STACK": "ros2", "LDOS_SIM": "mock"}
    return made


@pytest.fixture
def leaves_nothing() -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process or shared memory behind."""
    before, memory = running(), shared_memory()

    def check() -> None:
        assert running() <= before
        assert shared_memory() <= memory

    yield check
    check()


@pytest.fixture(params=["rmw_fastrtps_cpp", "rmw_cyclonedds_cpp"])
def rmw(request) -> str:
    """Both middlewares; the run says which one it had."""
    found = ros2_available(StackSpec(ros2=Ros2Spec(sim=Simulation.MOCK, rmw=request.param)))
    if not found.ok:
        pytest.skip(found.reason)
    return str(request.param)
