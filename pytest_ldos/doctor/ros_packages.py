"""ROS 2 itself: the distro, what a Panda stack needs of it, and our workspace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from pytest_ldos.doctor.finding import Finding, Status, error, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.ros import (
    DEFAULT_DISTRO,
    ROS_PYTHON,
    chosen_rmw,
    find_distro,
    find_ros_package,
    find_ros_packages,
    remedy_for_packages,
    rmw_installed,
    ros_python_available,
)

STACK: Final = (
    "controller_manager",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "moveit_resources_panda_description",
    "moveit_ros_move_group",
    "moveit_planners_ompl",
    "robot_state_publisher",
    "tracetools",
    "tracetools_launch",
    "launch_pytest",
    "launch_testing",
)
"""What ``stack.launch.py`` needs with either simulator."""

GAZEBO: Final = ("gz_ros2_control", "ros_gz_bridge", "ros_gz_sim")
"""What it needs besides for ``sim:=gz``."""

WORKSPACE: Final = (
    "ldos_bringup",
    "ldos_control_probe",
    "ldos_goal_client",
    "ldos_load",
    "ldos_panda_config",
    "ldos_tracepoints",
)


def check_distro(machine: Machine) -> Finding:
    distro = find_distro(machine.environment, root=machine.root)
    if distro is not None and distro.is_sourced and distro.name != DEFAULT_DISTRO:
        return warning("ROS 2", f"{distro.name}, sourced: not what this is made for", f"use ROS 2 {DEFAULT_DISTRO}")
    if distro is not None and distro.is_sourced:
        return ok("ROS 2", f"{distro.name}, sourced")
    if distro is not None:
        setup = f"source /opt/ros/{distro.name}/setup.bash"
        return _missing(machine, "ROS 2", f"{distro.name} is installed, but not sourced", setup)
    remedy = "make ros2-baseline (Ubuntu 24.04), or source the setup of your own build"
    if machine.stack == "ros2":
        return error("ROS 2", "not installed", remedy)
    return ok("ROS 2", "not installed: measurements use the embedded stack")


def check_stack_packages(machine: Machine) -> Finding:
    return _check_packages(machine, "ROS packages", STACK)


def check_gazebo_packages(machine: Machine) -> Finding:
    """Only a warning: without them there is ``sim:=mock``."""
    answer = find_ros_packages(GAZEBO, environment=machine.environment)
    if answer.ok:
        return ok("Gazebo packages", f"all {len(GAZEBO)}")
    return warning("Gazebo packages", f"{answer.reason}: sim:=gz cannot run, sim:=mock can", answer.remedy)


def check_workspace(machine: Machine) -> Finding:
    return _check_packages(machine, "our ROS packages", WORKSPACE)


def _check_packages(machine: Machine, title: str, names: Sequence[str]) -> Finding:
    answer = find_ros_packages(names, environment=machine.environment)
    return ok(title, f"all {len(names)}") if answer.ok else _missing(machine, title, answer.reason, answer.remedy)


def check_python(machine: Machine) -> Finding:
    """Finds ROS's Python packages, then has a process of this interpreter import them."""
    answer = ros_python_available(machine.environment, path=machine.python_path)
    if not answer.ok:
        return _missing(machine, "ROS's Python", answer.reason, answer.remedy)
    done = machine.run([sys.executable, "-c", f"import {', '.join(ROS_PYTHON)}"])
    if done is None or done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done else "it did not return"
        return _missing(machine, "ROS's Python", f"cannot be imported: {reason}", "source ROS 2 again, in a new shell")
    return ok("ROS's Python", f"{', '.join(ROS_PYTHON)} can be imported")


def check_tracetools(machine: Machine) -> Finding:
    """Asks tracetools' own ``status`` program, where it is installed; else what the library is linked to."""
    prefix = find_ros_package("tracetools", machine.environment)
    if prefix is None:
        remedy = remedy_for_packages(["tracetools"], environment=machine.environment)
        return _missing(machine, "ROS tracing", "tracetools is not installed", remedy)
    done = machine.run([str(prefix / "lib/tracetools/status")])
    if done is not None:
        has_tracepoints = done.returncode == 0
    else:
        library = prefix / "lib/libtracetools.so"
        has_tracepoints = library.is_file() and b"liblttng-ust.so" in library.read_bytes()
    if has_tracepoints:
        return ok("ROS tracing", "tracetools has LTTng tracepoints")
    text = "tracetools was built without tracepoints: a trace would be empty"
    return _missing(machine, "ROS tracing", text, "build it again beside liblttng-ust-dev, without TRACETOOLS_DISABLED")


def check_rmw(machine: Machine) -> Finding:
    name = chosen_rmw(machine.environment)
    answer: Availability = rmw_installed(name, environment=machine.environment)
    how = "RMW_IMPLEMENTATION" if machine.environment.get("RMW_IMPLEMENTATION") else "the default"
    return (
        ok("middleware", f"{name} ({how})")
        if answer.ok
        else _missing(machine, "middleware", answer.reason, answer.remedy)
    )


def _missing(machine: Machine, title: str, text: str, remedy: str) -> Finding:
    """An error where ROS 2 was asked for by name; else the embedded stack can be used."""
    return Finding(title, Status.ERROR if machine.stack == "ros2" else Status.WARNING, text, remedy)


CHECKS: Final[Sequence[Callable[[Machine], Finding]]] = (
    check_stack_packages,
    check_gazebo_packages,
    check_workspace,
    check_python,
    check_tracetools,
    check_rmw,
)
