"""The ROS packages of pytest-ldos for other stacks, with the real colcon and fake packages."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.base.files import find_carried
from pytest_ldos.campaign.versions import build as our_packages
from pytest_ldos.campaign.versions.build import build_packages, needed_by
from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StimulusKind
from tests.builders.colcon import add_package, find_colcon
from tests.builders.command_line import run_ldos
from tests.builders.ros import add_packages

ROOT = Path(__file__).parents[4]
COLCON = find_colcon()


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for name in ("COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + COLCON)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(add_packages(tmp_path / "underlay", ["rclcpp", "ldos_topology"])))
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    folder = tmp_path / "ros_ws"
    add_package(folder, "ldos_tracepoints")
    add_package(folder, "ldos_goal_client", depends="ldos_tracepoints")
    add_package(folder, "ldos_topology")
    add_package(folder, "ldos_latency")
    monkeypatch.setattr(our_packages, "find_carried", lambda name: folder)
    return folder


@pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")
def test_missing_packages_are_built_once_with_dependencies(workspace, tmp_path):
    announced: list[str] = []
    script = build_packages(["ldos_goal_client", "ldos_topology"], announce=announced.append)
    assert script is not None
    assert script.is_relative_to(tmp_path / "cache/pytest-ldos")
    installed = {each.name for each in script.parent.iterdir() if each.is_dir() and each.name.startswith("ldos_")}
    assert installed == {"ldos_goal_client", "ldos_tracepoints"}, "neither sourced nor unrequested packages"
    assert any("package 2 of 2, ldos_goal_client" in each for each in announced)
    again = len(announced)
    assert build_packages(["ldos_goal_client"], announce=announced.append) == script
    assert len(announced) == again
    (workspace / "src/ldos_tracepoints/value").write_text("2")
    assert build_packages(["ldos_goal_client"], announce=announced.append) != script, "their sources changed"


@pytest.mark.acceptance
@pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")
def test_command_prints_the_setup_script(workspace):
    done = run_ldos("ros-packages", "ldos_goal_client")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).name == "local_setup.sh"
    assert Path(done.stdout.strip()).is_file()
    assert "building the ROS packages of pytest-ldos" in done.stderr


@pytest.mark.acceptance
@pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")
def test_failed_package_is_named(workspace):
    add_package(workspace, "ldos_goal_client", more='message(FATAL_ERROR "no moveit_msgs")')
    with pytest.raises(PreparationFailed, match="package ldos_goal_client failed") as failed:
        build_packages(["ldos_goal_client"], announce=str)
    assert "no moveit_msgs" in failed.value.details


def test_sourced_packages_are_not_built(workspace):
    assert build_packages(["ldos_topology"], announce=str) is None
    done = run_ldos("ros-packages", "ldos_topology")
    assert (done.returncode, done.stdout) == (0, "")


def test_packages_of_the_projects_workspace_are_built_with_it(workspace, tmp_path, monkeypatch):
    """For example, a checkout of pytest-ldos that is measured by another one."""
    project = tmp_path / "project"
    for name in needed_by(StackSpec()):
        add_package(project, name)
    monkeypatch.chdir(project)
    done = run_ldos("ros-packages")
    assert (done.returncode, done.stdout) == (0, "")


def test_unknown_package_is_refused(workspace):
    with pytest.raises(ConfigurationError, match="unknown ROS package of pytest-ldos 'ldos_topolgy'") as error:
        build_packages(["ldos_topolgy"], announce=str)
    assert "ldos_topology" in error.value.remedy


def test_missing_ros_is_reported(workspace, monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    with pytest.raises(ConfigurationError, match="no ROS 2 is sourced"):
        build_packages(["ldos_topology"], announce=str)


def test_installation_contains_the_packages():
    home = find_carried("ros_ws")
    assert home == ROOT / "ros_ws"
    assert set(needed_by(StackSpec())) <= Workspace(home.parent, (home.name,)).packages()


def test_needed_packages_follow_from_the_settings():
    own = Ros2Spec(launch_file="cell_bringup/cell.launch.py")
    arm = ("ldos_goal_client", "ldos_control_probe")
    assert needed_by(StackSpec(ros2=own)) == arm
    assert needed_by(StackSpec(ros2=dataclasses.replace(own, controllers=()), stimulus=StimulusKind.WINDOW)) == ()
    seeded = needed_by(StackSpec(ros2=dataclasses.replace(own, seeded_planner=True)))
    assert seeded == (*arm, "ldos_planner")
    assert needed_by(StackSpec()) == (*seeded, "ldos_bringup", "ldos_panda_config")
