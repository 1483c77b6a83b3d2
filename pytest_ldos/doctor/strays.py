"""Checks for other processes of ROS 2, Gazebo and our loads, which would disturb a measurement."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from pytest_ldos.doctor.ending import EndProcess
from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine, ProcessFacts
from pytest_ldos.host.owner import OWNER_VARIABLE, living_owner
from pytest_ldos.host.process_names import name_of_command

_TITLE: Final = "stray processes"
_MEASUREMENTS: Final = "measurements"
_COMMAND_WIDTH: Final = 60

_EARLIER: Final = "process of an earlier measurement"
_PROGRAMS: Final = frozenset(
    {
        "component_container",
        "component_container_mt",
        "controller_manager",
        "gzserver",
        "move_group",
        "parameter_bridge",
        "robot_state_publisher",
        "ros2_control_node",
        "rviz2",
        "spawner",
        "static_transform_publisher",
        "stress-ng",
    }
)
"""Programs of a stack, for processes that only their name identifies."""

_COMMANDS: Final = {
    re.compile(r"(^|/)gz(-sim\S*)? sim\b|(^|/)gz-sim-(server|main)"): "Gazebo",
    re.compile(r"\bros2-daemon\b|(^|/)_ros2_daemon\b"): "ros2 daemon",
    re.compile(r"(^|/)ros2 launch\b"): "ros2 launch",
    re.compile(r"(^|\s)--ros-args(\s|$)"): "ROS node",
    re.compile(r"\bpytest_ldos\.(robot\.stack|measure\.load)\."): _EARLIER,
}


def check_measurements(machine: Machine) -> Iterator[Finding]:
    """Running measurements under any lock: they would disturb another one, and end by themselves."""
    everything = machine.processes()
    owners = find_owners(machine, everything) - _ancestors(everything, os.getpid())
    running = [process for process in everything if process.pid in owners]
    if not running:
        yield ok(_MEASUREMENTS, "none goes on")
    for process in running:
        text = f"process {process.pid} measures: {_shorten(' '.join(process.command))}"
        yield warning(_MEASUREMENTS, text, "wait until it ends: two at once disturb each other")


def check_strays(machine: Machine) -> Iterator[Finding]:
    """One finding per process, so that each can be decided on its own."""
    strays = find_strays(machine)
    if not strays:
        yield ok(_TITLE, "none of ROS 2, Gazebo or a load")
    for process, role in strays:
        orphan = ", left behind by its parent" if process.parent == 1 else ""
        text = f"{role} {process.pid}{orphan}: {_shorten(' '.join(process.command))}"
        fix = EndProcess(f"end process {process.pid} ({role})", process)
        yield warning(f"stray process {process.pid}", text, f"kill {process.pid}", fix)


def find_strays(machine: Machine) -> Sequence[tuple[ProcessFacts, str]]:
    """Stray processes of this user and their roles, without those of a running measurement."""
    everything = machine.processes()
    spared = _ancestors(everything, os.getpid()) | _descendants(everything, find_owners(machine, everything))
    candidates = [process for process in everything if process.uid == machine.uid and process.pid not in spared]
    ours = [process for process in candidates if living_owner(process.environment) is None]
    return [(process, role) for process in ours for role in [role_of(process)] if role]


def find_owners(machine: Machine, processes: Sequence[ProcessFacts]) -> set[int]:
    """Processes that measure now: the lock's holder, and owners of running processes under any lock."""
    owners = {machine.measuring(), *(living_owner(process.environment) for process in processes)}
    return {pid for pid in owners if pid is not None}


def role_of(process: ProcessFacts) -> str:
    """Role of a process in a stack; empty if it belongs to none."""
    words = [PurePath(process.command[0]).name, *process.command[1:]] if process.command else [process.name]
    names = (words[0], *(PurePath(word).name for word in words[1:2]), name_of_command(process.command))
    if named := next((name for name in names if name in _PROGRAMS), ""):
        return named
    if OWNER_VARIABLE in process.environment:
        return _EARLIER
    line = " ".join(words)
    return next((role for pattern, role in _COMMANDS.items() if pattern.search(line)), "")


def _ancestors(processes: Sequence[ProcessFacts], pid: int) -> set[int]:
    """Pids of a process and its ancestors."""
    parents = {process.pid: process.parent for process in processes}
    found: set[int] = set()
    while pid and pid not in found:
        found.add(pid)
        pid = parents.get(pid, 0)
    return found


def _descendants(processes: Sequence[ProcessFacts], pids: Collection[int]) -> set[int]:
    """Pids of processes and all their descendants."""
    found = set(pids)
    size = -1
    while size != len(found):
        size = len(found)
        found |= {process.pid for process in processes if process.parent in found}
    return found


def _shorten(text: str) -> str:
    return text if len(text) <= _COMMAND_WIDTH else f"{text[: _COMMAND_WIDTH - 1]}…"
