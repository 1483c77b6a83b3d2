"""Checks of ROS 2 itself: the distro, the packages that a Panda stack needs, and our workspace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from pytest_ldos.base.distros import DEFAULT, DISTROS
from pytest_ldos.doctor.finding import Finding, Status, error, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.host.ros import (
    ROS_PYTHON,
    chosen_rmw,
    find_distro,
    find_ros_packages,
    rmw_installed,
    ros_python_available,
)
from pytest_ldos.robot.stack.ros2.installed import PANDA, SEEDED_PLANNER, needed_packages, tracing_available
from pytest_ldos.robot.stack.ros2.launch_file import GAZEBO_PACKAGES
from pytest_ldos.scenario.words import Simulation

_OURS: Final = "ldos_"
PROBES: Final = ("ldos_control_probe", "ldos_guard", "ldos_load", "ldos_tracepoints")
"""Packages of our workspace that the Panda stack and its loads need as well."""


def check_distro(machine: Machine) -> Finding:
    distro = find_distro(machine.environment, root=machine.root)
    if distro is not None and distro.is_sourced and distro.name not in DISTROS:
        remedy = f"use ROS 2 {' or '.join(DISTROS)}"
        return warning("ROS 2", f"{distro.name}, sourced: not what this is made for", remedy)
    if distro is not None and distro.is_sourced:
        if not DISTROS[distro.name].was_measured:
            return warning(
                "ROS 2", f"{distro.name}, sourced: nobody has tried an arm there yet", f"use ROS 2 {DEFAULT.name}"
            )
        return ok("ROS 2", f"{distro.name}, sourced")
    if distro is not None:
        setup = f"source /opt/ros/{distro.name}/setup.bash"
        return _missing(machine, "ROS 2", f"{distro.name} is installed, but not sourced", setup)
    remedy = f"make ros2-baseline (Ubuntu {DEFAULT.ubuntu}), or source the setup of your own build"
    if machine.asks_for_ros2:
        return error("ROS 2", "not installed", remedy)
    return ok("ROS 2", "not installed: measurements use the embedded stack")


def check_stack_packages(machine: Machine) -> Finding:
    return _check_packages(machine, "ROS packages", [name for name in _needed(machine) if not name.startswith(_OURS)])


def check_workspace(machine: Machine) -> Finding:
    """Checks our packages; without the seeded planner, which is optional, the Panda plans by MoveIt's own."""
    probes = PROBES if machine.stack.ros2.is_panda else ()
    ours = [name for name in _needed(machine) if name.startswith(_OURS)]
    found = _check_packages(machine, "ros_ws", sorted({*ours, *probes}))
    seeded = find_ros_packages([SEEDED_PLANNER], environment=machine.environment)
    if found.status is not Status.OK or not machine.stack.ros2.is_panda or seeded.ok:
        return found
    text = f"{found.text}, without {SEEDED_PLANNER}: equal versions plan unequal paths"
    return warning("ros_ws", text, f"ldos ros-packages {SEEDED_PLANNER}")


def _needed(machine: Machine) -> Sequence[str]:
    return (*needed_packages(machine.stack), *(PANDA if machine.stack.ros2.is_panda else ()))


def check_gazebo_packages(machine: Machine) -> Finding:
    """Checks Gazebo's packages: without them there is mock hardware, unless Gazebo is requested."""
    title, ros2 = "Gazebo packages", machine.stack.ros2
    answer = find_ros_packages(GAZEBO_PACKAGES, environment=machine.environment)
    if answer.ok:
        return ok(title, f"all {len(GAZEBO_PACKAGES)}")
    if ros2.sim is Simulation.MOCK or not ros2.is_panda:
        return ok(title, "not needed")
    if ros2.sim is Simulation.GZ:
        return _missing(machine, title, answer.reason, answer.remedy)
    return warning(title, f"{answer.reason}: mock hardware takes its place (no T5)", answer.remedy)


def _check_packages(machine: Machine, title: str, names: Sequence[str]) -> Finding:
    answer = find_ros_packages(names, environment=machine.environment)
    return ok(title, f"all {len(names)}") if answer.ok else _missing(machine, title, answer.reason, answer.remedy)


def check_python(machine: Machine) -> Finding:
    """Checks ROS's Python packages: finds them, then imports them in a process of this interpreter."""
    answer = ros_python_available(machine.environment, path=machine.python_path)
    if not answer.ok:
        return _missing(machine, "ROS's Python", answer.reason, answer.remedy)
    done = machine.run([sys.executable, "-c", f"import {', '.join(ROS_PYTHON)}"])
    if done is None or done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done else "it did not return"
        return _missing(machine, "ROS's Python", f"cannot be imported: {reason}", "source ROS 2 again, in a new shell")
    return ok("ROS's Python", f"{', '.join(ROS_PYTHON)} can be imported")


def check_tracetools(machine: Machine) -> Finding:
    answer = tracing_available(machine.environment)
    if answer.ok:
        return ok("ROS tracing", "tracetools has LTTng tracepoints")
    return _missing(machine, "ROS tracing", answer.reason, answer.remedy)


def check_rmw(machine: Machine) -> Finding:
    name = machine.stack.ros2.rmw or chosen_rmw(machine.environment)
    answer = rmw_installed(name, environment=machine.environment)
    if not answer.ok:
        return _missing(machine, "middleware", answer.reason, answer.remedy)
    is_chosen = machine.stack.ros2.rmw or machine.environment.get("RMW_IMPLEMENTATION")
    return ok("middleware", f"{name} ({'chosen' if is_chosen else 'the default'})")


def _missing(machine: Machine, title: str, text: str, remedy: str) -> Finding:
    """An error if ROS 2 was requested by name; otherwise the embedded stack can be used."""
    return Finding(title, Status.ERROR if machine.asks_for_ros2 else Status.WARNING, text, remedy)


CHECKS: Final[Sequence[Callable[[Machine], Finding]]] = (
    check_stack_packages,
    check_gazebo_packages,
    check_workspace,
    check_python,
    check_tracetools,
    check_rmw,
)
