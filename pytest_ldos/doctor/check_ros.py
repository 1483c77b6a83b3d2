"""Checks of ROS 2: its packages, discovery, socket buffers, shared memory.

Reference: ROS 2 Jazzy, "Improved Dynamic Discovery" (the variables), "Using Fast DDS Discovery Server"
and "The ROS_DOMAIN_ID" (0–101 are safe on every system; 232 is the last with valid ports).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.ros2 import DEFAULT, DISTROS
from pytest_ldos.doctor.changes import Finding, Machine, Status, error, ok, remove_stale, set_values, warning
from pytest_ldos.host import availability
from pytest_ldos.robot.stack.ros2.installed import PANDA, SEEDED_PLANNER, needed_packages, tracing_available
from pytest_ldos.robot.stack.ros2.state import GAZEBO_PACKAGES
from pytest_ldos.scenario.words import Simulation

_OURS: Final = "ldos_"
PROBES: Final = ("ldos_control_probe", "ldos_tracepoints")
"""Packages of the workspace that the Panda stack also needs."""


def check_distro(machine: Machine) -> Finding:
    distro = availability.find_distro(machine.environment, root=machine.root)
    if distro is not None and distro.is_sourced and distro.name not in DISTROS:
        remedy = f"use ROS 2 {' or '.join(DISTROS)}"
        return warning("ROS 2", f"{distro.name}, sourced: not what this is made for", remedy)
    if distro is not None and distro.is_sourced:
        if not DISTROS[distro.name].was_measured:
            return warning("ROS 2", f"{distro.name}, sourced: no arm was tested there yet", f"use ROS 2 {DEFAULT.name}")
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
    """Checks the workspace's packages; without the optional seeded planner, the Panda uses MoveIt's own."""
    probes = PROBES if machine.stack.ros2.is_panda else ()
    ours = [name for name in _needed(machine) if name.startswith(_OURS)]
    found = _check_packages(machine, "ros_ws", sorted({*ours, *probes}))
    seeded = availability.find_ros_packages([SEEDED_PLANNER], environment=machine.environment)
    if found.status is not Status.OK or not machine.stack.ros2.is_panda or seeded.ok:
        return found
    text = f"{found.text}, without {SEEDED_PLANNER}: equal versions plan unequal paths"
    return warning("ros_ws", text, f"ldos ros-packages {SEEDED_PLANNER}")


def _needed(machine: Machine) -> Sequence[str]:
    return (*needed_packages(machine.stack), *(PANDA if machine.stack.ros2.is_panda else ()))


def check_gazebo_packages(machine: Machine) -> Finding:
    """Checks Gazebo's packages; without them mock hardware is used, unless Gazebo is requested."""
    title, ros2 = "Gazebo packages", machine.stack.ros2
    answer = availability.find_ros_packages(GAZEBO_PACKAGES, environment=machine.environment)
    if answer.ok:
        return ok(title, f"all {len(GAZEBO_PACKAGES)}")
    if ros2.sim is Simulation.MOCK or not ros2.is_panda:
        return ok(title, "not needed")
    if ros2.sim is Simulation.GZ:
        return _missing(machine, title, answer.reason, answer.remedy)
    return warning(title, f"{answer.reason}: mock hardware takes its place (no T5)", answer.remedy)


def _check_packages(machine: Machine, title: str, names: Sequence[str]) -> Finding:
    return _judge(
        machine, title, availability.find_ros_packages(names, environment=machine.environment), f"all {len(names)}"
    )


def _judge(machine: Machine, title: str, answer: availability.Availability, text: str) -> Finding:
    return ok(title, text) if answer.ok else _missing(machine, title, answer.reason, answer.remedy)


def check_python(machine: Machine) -> Finding:
    """Checks ROS's Python packages: finds them, then imports them in a child process."""
    answer = availability.ros_python_available(machine.environment, path=machine.python_path)
    if not answer.ok:
        return _missing(machine, "ROS's Python", answer.reason, answer.remedy)
    done = machine.run([sys.executable, "-c", f"import {', '.join(availability.ROS_PYTHON)}"])
    if done is None or done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done else "it did not return"
        return _missing(machine, "ROS's Python", f"cannot be imported: {reason}", "source ROS 2 again, in a new shell")
    return ok("ROS's Python", f"{', '.join(availability.ROS_PYTHON)} can be imported")


def check_tracetools(machine: Machine) -> Finding:
    return _judge(machine, "ROS tracing", tracing_available(machine.environment), "tracetools has LTTng tracepoints")


def check_rmw(machine: Machine) -> Finding:
    name = machine.stack.ros2.rmw or availability.chosen_rmw(machine.environment)
    answer = availability.rmw_installed(name, environment=machine.environment)
    is_chosen = machine.stack.ros2.rmw or machine.environment.get("RMW_IMPLEMENTATION")
    return _judge(machine, "middleware", answer, f"{name} ({'chosen' if is_chosen else 'the default'})")


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


LAST_DOMAIN: Final = 232
SAFE_DOMAIN: Final = 101
_RANGE: Final = "ROS_AUTOMATIC_DISCOVERY_RANGE"
_PEERS: Final = "ROS_STATIC_PEERS"
_SERVER: Final = "ROS_DISCOVERY_SERVER"
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def check_domain(machine: Machine) -> Finding:
    value = machine.environment.get("ROS_DOMAIN_ID", "")
    title, remedy = "ROS_DOMAIN_ID", f"export ROS_DOMAIN_ID=0 … {SAFE_DOMAIN}"
    if value and not (value.isascii() and value.isdigit() and int(value) <= LAST_DOMAIN):
        return warning(title, f"{value!r} is no domain: no node of your own would start", remedy)
    if value and int(value) > SAFE_DOMAIN:
        return warning(title, f"{value}: its ports may be given to other programs", remedy)
    return ok(title, f"{value or 'not set (0)'}; a measured stack claims one of its own")


def check_discovery(machine: Machine) -> Finding:
    """Checks that discovery is limited to this machine; for a measured stack it always is."""
    reach = machine.environment.get(_RANGE, "")
    peers = [peer for peer in machine.environment.get(_PEERS, "").split(";") if peer]
    title, remedy = "discovery", f"export {_RANGE}=LOCALHOST"
    remote = [peer for peer in peers if peer not in _LOCAL]
    if server := machine.environment.get(_SERVER, ""):
        return warning(title, f"{_SERVER}={server}: Fast DDS meets whom that server knows", f"unset {_SERVER}")
    if machine.environment.get("ROS_LOCALHOST_ONLY") == "1":
        return ok(title, f"this machine only (ROS_LOCALHOST_ONLY, deprecated: {remedy})")
    if reach == "OFF":
        return warning(title, f"{_RANGE}=OFF: nodes of your own cannot find each other", remedy)
    if remote:
        return warning(title, f"{_PEERS} names other machines: {', '.join(remote)}", f"unset {_PEERS}")
    if reach == "LOCALHOST":
        return ok(title, "this machine only")
    named = f"{_RANGE}={reach}" if reach else f"{_RANGE} is not set"
    return warning(title, f"{named}: other machines can join nodes of your own", f"{remedy}, after sourcing ROS 2")


RECEIVE: Final = 2_147_483_647
"""``net.core.rmem_max`` for Cyclone DDS in ROS 2's guide "DDS tuning information"."""

ENOUGH_TO_RECEIVE: Final = 10_000_000
"""Minimum that Cyclone DDS requests with the guide's settings (``SocketReceiveBufferSize min="10MB"``)."""

SEND: Final = 12_582_912
"""Value of both limits in Fast DDS's manual, for large data rates."""


def check_receive_buffer(machine: Machine) -> Finding:
    return _check(machine, "rmem_max", enough=ENOUGH_TO_RECEIVE, recommended=RECEIVE, source="ROS 2's DDS tuning guide")


def check_send_buffer(machine: Machine) -> Finding:
    return _check(machine, "wmem_max", enough=SEND, recommended=SEND, source="Fast DDS's manual")


def _check(machine: Machine, name: str, *, enough: int, recommended: int, source: str) -> Finding:
    place, title = f"proc/sys/net/core/{name}", f"UDP {'receive' if name.startswith('r') else 'send'} buffer"
    value = machine.read(place)
    remedy = f"sudo sysctl -w net.core.{name}={recommended}"
    if not value.isdigit():
        return warning(title, f"net.core.{name} is not to be seen in this network namespace", f"on the host: {remedy}")
    if int(value) >= enough:
        return ok(title, f"at most {_size(int(value))}")
    fix = set_values(f"set net.core.{name} from {value} to {recommended}", {place: str(recommended)})
    return warning(title, f"at most {_size(int(value))}; {source} asks for {_size(enough)}", remedy, fix)


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.1f} GB"


ENOUGH_BYTES: Final = 128 << 20
"""Space for a MoveIt stack: about twenty participants, each with ports and a segment of half a megabyte, and floods. A
container has 64 MiB by default."""

_PLACE: Final = "dev/shm"


def check_shared_memory(machine: Machine, *, enough: int = ENOUGH_BYTES) -> Finding:
    path = machine.path(_PLACE)
    if not path.is_dir():
        return warning("shared memory", f"{path} is missing: Fast DDS falls back to UDP", f"mount a tmpfs on {path}")
    usage = shutil.disk_usage(path)
    text = f"{usage.free >> 20} of {usage.total >> 20} MiB free"
    if usage.free >= enough:
        return ok("shared memory", text)
    remedy = "remove what is stale, or sudo mount -o remount,size=1G /dev/shm (a container: --shm-size=1g)"
    return warning("shared memory", f"{text}: too little for Fast DDS", remedy)


def check_stale_segments(machine: Machine) -> Finding:
    if not (stale := find_stale_segments(machine)):
        return ok("Fast DDS leftovers", "none")
    size = sum(path.stat().st_size for path in stale if path.exists()) / 1e6
    text = f"{len(stale)} files of processes that are gone ({size:.1f} MB in {machine.path(_PLACE)})"
    fix = remove_stale(f"remove {len(stale)} unused files of Fast DDS", stale, find_stale_segments)
    return warning("Fast DDS leftovers", text, "fastdds shm clean", fix)


def find_stale_segments(machine: Machine) -> Sequence[Path]:
    """Unused files of Fast DDS: this user's, or all users' for root."""
    return availability.find_stale(machine.path(_PLACE))
