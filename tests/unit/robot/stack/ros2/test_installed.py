"""Availability of a ROS 2 stack, by installed packages."""

from __future__ import annotations

import sys

import pytest

from pytest_ldos.base.ros2 import DEFAULT
from pytest_ldos.host.availability import Availability
from pytest_ldos.robot.stack import choose
from pytest_ldos.robot.stack.ros2 import installed
from pytest_ldos.robot.stack.ros2.installed import SEEDED_PLANNER, ros2_available, ros2_info
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import Simulation, StackKind
from tests.builders.ros import add_packages

OWN = StackSpec(ros2=Ros2Spec(launch_file="my_robot/stack.launch.py", group="arm"))


@pytest.fixture
def complete(workspace, monkeypatch):
    """Every package, and a tracetools that reports tracing."""
    monkeypatch.setattr(installed, "ros_python_available", lambda *_, **__: Availability(True))
    for package in (*installed.needed_packages(StackSpec()), *installed.PANDA, DEFAULT.rmw, "rmw_cyclonedds_cpp"):
        workspace.add(package, version="4.2.0")
    status(workspace, "#!/bin/sh\necho Tracing enabled\n")
    return workspace


def status(workspace, script: str) -> None:
    program = workspace.prefix / "lib/tracetools/status"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(script)
    program.chmod(0o755)


def test_everything_is_there(complete):
    assert ros2_available(StackSpec()).ok


def test_missing_packages_have_install_commands(complete):
    (complete.prefix / "share/ament_index/resource_index/packages/moveit_ros_move_group").unlink()
    found = ros2_available(StackSpec())
    assert (found.reason, found.remedy) == (
        "ROS package moveit_ros_move_group not found",
        "sudo apt-get install ros-jazzy-moveit-ros-move-group",
    )
    assert ros2_available(OWN).ok, "a robot of one's own brings its own planner"


def test_own_planner_is_part_of_stacks_that_use_it(workspace):
    seeded = StackSpec(ros2=Ros2Spec(launch_file=OWN.ros2.launch_file, seeded_planner=True))
    assert SEEDED_PLANNER not in ros2_info(StackSpec()).versions
    workspace.add(SEEDED_PLANNER)
    has_it = [SEEDED_PLANNER in ros2_info(spec).versions for spec in (StackSpec(), seeded, OWN)]
    assert has_it == [True, True, False]


def test_a_middleware_that_is_not_installed(complete):
    found = ros2_available(StackSpec(ros2=Ros2Spec(rmw="rmw_zenoh_cpp")))
    assert "rmw_zenoh_cpp is not installed" in found.reason


def test_gazebo_is_required_if_requested(complete):
    found = ros2_available(StackSpec(ros2=Ros2Spec(sim=Simulation.GZ)))
    assert "ros_gz_sim" in found.reason


def test_a_ros_without_tracepoints(complete):
    status(complete, "#!/bin/sh\necho Tracing disabled\nexit 1\n")
    found = ros2_available(StackSpec())
    assert "built without tracepoints (tracetools says: Tracing disabled)" in found.reason
    assert "liblttng-ust-dev" in found.remedy


def test_a_status_program_that_cannot_run(complete):
    status(complete, "#!/no/such/interpreter\n")
    assert "cannot be run" in ros2_available(StackSpec()).reason


def test_a_status_program_that_is_missing(complete):
    (complete.prefix / "lib/tracetools/status").unlink()
    found = ros2_available(StackSpec())
    assert (found.reason, found.remedy) == (
        "tracetools has no status program",
        "sudo apt-get install ros-jazzy-tracetools",
    )


def test_last_line_of_the_status_program_is_reported(complete):
    status(complete, "#!/bin/sh\nprintf 'first\\nlibx.so: \\377 not found\\n' >&2\nexit 127\n")
    assert ros2_available(StackSpec()).reason.endswith("status cannot be run: libx.so: \ufffd not found")


def test_status_program_runs_once(complete, tmp_path, monkeypatch):
    runs = tmp_path / "runs"
    runs.touch()
    status(complete, f"#!/bin/sh\necho run >> {runs}\n")
    assert choose.stack_available(StackSpec()).ok
    assert choose.describe_stack(StackSpec()).name == "ros2-mock"
    assert choose.why_not_ros2(StackSpec()) == ""
    assert runs.read_text() == "run\n"
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert ros2_available(StackSpec()).ok
    assert runs.read_text() == "run\nrun\n", "another environment may have another answer"


def test_nothing_is_sourced(monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    assert not ros2_available(StackSpec()).ok
    assert choose.resolve_kind(StackSpec()) is StackKind.EMBEDDED
    assert choose.resolve_kind(OWN) is StackKind.ROS2, "a launch file is no wish for another stack"
    assert choose.why_not_ros2(StackSpec()) == ""


def test_auto_chooses_ros_if_it_is_complete(complete):
    assert choose.resolve_kind(StackSpec()) is StackKind.ROS2
    assert choose.resolve_kind(StackSpec(kind=StackKind.EMBEDDED)) is StackKind.EMBEDDED
    status(complete, "#!/bin/sh\nexit 1\n")
    assert choose.resolve_kind(StackSpec()) is StackKind.EMBEDDED
    assert "ROS 2 jazzy is sourced but not used: this ROS 2 was built without" in choose.why_not_ros2(StackSpec())


def test_stack_is_described_by_its_parts(complete, monkeypatch):
    monkeypatch.setenv("CYCLONEDDS_URI", "file:///tuned.xml")
    info = ros2_info(StackSpec(ros2=Ros2Spec(rmw="rmw_cyclonedds_cpp")))
    assert (info.name, info.kind, info.has_simulated_clock) == ("ros2-mock", StackKind.ROS2, False)
    assert info.description == "ros2 jazzy (Panda, sim mock, MoveIt 4.2.0, ros2_control 4.2.0, rmw_cyclonedds_cpp)"
    assert info.rmw == "rmw_cyclonedds_cpp"
    assert info.versions["rmw_cyclonedds_cpp"] == "4.2.0"
    assert info.versions["CYCLONEDDS_URI"] == "file:///tuned.xml"


def test_each_robot_has_its_own_baselines(complete):
    assert ros2_info(OWN).name == "ros2-stack-arm"
    simulated = ros2_info(StackSpec(ros2=Ros2Spec(sim=Simulation.GZ)))
    assert (simulated.name, simulated.has_simulated_clock) == ("ros2-gz", True)
    climbing = StackSpec(ros2=Ros2Spec(launch_file="my_robot/stack.launch.py", group="../../left/arm*"))
    assert ros2_info(climbing).name == "ros2-stack-_left_arm_"


def test_other_environment_is_inspected_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", "/head/lib:/mine")
    monkeypatch.setattr(sys, "path", ["/head/lib", "/mine", *sys.path])
    places = installed.module_path({"PYTHONPATH": "/base/lib:/mine"})
    assert places[:2] == ["/base/lib", "/mine"]
    assert "/head/lib" not in places
    assert installed.module_path(None) is None
    prefix = add_packages(tmp_path / "base", ["rclcpp"])
    environment = {"AMENT_PREFIX_PATH": str(prefix), "ROS_DISTRO": "jazzy", "RMW_IMPLEMENTATION": "rmw_base_cpp"}
    info = ros2_info(StackSpec(ros2=Ros2Spec(sim=Simulation.MOCK)), environment)
    assert info.rmw == "rmw_base_cpp"
    assert info.versions["ros_distro"] == "jazzy"
