"""Parts of a ROS 2 stack, their availability, and their isolation from other nodes; the router of rmw_zenoh_cpp.

The user's settings of Zenoh, Cyclone DDS and Fast DDS are part of the measured system and recorded, except for the
endpoints of a run's Zenoh nodes and router. Without them, messages from other machines are ignored.

Fast DDS keeps segments, ports and their locks in ``/dev/shm`` under names that begin with ``fastrtps_``
(``sem.fastrtps_`` for semaphores), and frees them only on a regular exit.

Reference: rmw_zenoh's README; Zenoh's default configuration, ``DEFAULT_CONFIG.json5``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import psutil

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.host.availability import (
    Availability,
    chosen_rmw,
    find_distro,
    find_ros_package,
    find_ros_packages,
    remedy_for_packages,
    rmw_installed,
    ros_python_available,
    run_program,
)
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.robot.dds.domain import LOOPBACK, deaf_to_other_devices
from pytest_ldos.robot.stack.protocol import StackInfo, digest_of_data
from pytest_ldos.robot.stack.ros2.state import GAZEBO_PACKAGES, resolve_simulation
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import Simulation, StackKind

ZENOH: Final = "rmw_zenoh_cpp"

_OVERRIDE: Final = "ZENOH_CONFIG_OVERRIDE"

ZENOH_SETTINGS: Final = ("ZENOH_SESSION_CONFIG_URI", "ZENOH_ROUTER_CONFIG_URI", _OVERRIDE)

PROGRAM: Final = "rmw_zenohd"

_READY_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.02

_ALONE: Final = 'listen/endpoints=["tcp/127.0.0.1:0"];scouting/multicast/enabled=false'
"""Overrides that make the router listen on a free local port only."""


@dataclass(frozen=True)
class Isolation:
    """Variables that isolate the processes of a stack, to be added to ours, and the group of Zenoh's router, if any."""

    environment: Mapping[str, str]
    router: ProcessGroup | None = None


@contextmanager
def zenoh_router(environment: Mapping[str, str], *, log_directory: Path) -> Iterator[Isolation]:
    """Runs a router for nodes with this environment; raises as `isolated`."""
    find_ros_packages([ZENOH], environment=environment).demand()
    prefix = find_ros_package(ZENOH, environment)
    assert prefix is not None
    own = _with_settings(environment, _ALONE, "connect/endpoints=[]")
    group = ProcessGroup(log_directory=log_directory, environment={**environment, **own})
    try:
        router = group.start(PROGRAM, [str(prefix / "lib" / ZENOH / PROGRAM)])
        connect = f'connect/endpoints=["tcp/{LOOPBACK}:{_await_port(router)}"]'
        yield Isolation(_with_settings(environment, _ALONE, connect), group)
    finally:
        group.stop()


def _with_settings(environment: Mapping[str, str], *settings: str) -> dict[str, str]:
    """The user's overrides followed by ours, which take precedence."""
    return {_OVERRIDE: ";".join(filter(None, (environment.get(_OVERRIDE, "").strip(" ;"), *settings)))}


def _await_port(router: Child) -> int:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    while router.exit_code is None and time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):
            process: Any = psutil.Process(router.pid)  # psutil 5.9, of Ubuntu 24.04, has `connections`
            for each in (getattr(process, "net_connections", None) or process.connections)(kind="tcp"):
                if each.status == psutil.CONN_LISTEN:
                    return int(each.laddr.port)
        time.sleep(_POLL_S)
    reason = f"{PROGRAM} did not listen within {_READY_TIMEOUT_S:.0f} s"
    raise BringUpFailed(
        f"Zenoh's router did not start: {reason if router.exit_code is None else router.describe_end()}",
        details=router.last_lines(),
        remedy=f"check the settings of Zenoh in the environment: {', '.join(ZENOH_SETTINGS)}",
    )


EVERY_STACK: Final = ("tracetools", "action_msgs")
PANDA: Final = (
    "ldos_bringup",
    "ldos_panda_config",
    "moveit_ros_move_group",
    "moveit_resources_panda_description",
    "controller_manager",
    "joint_trajectory_controller",
    "joint_state_broadcaster",
    "robot_state_publisher",
)
SEEDED_PLANNER: Final = "ldos_planner"  # part of a stack, with a version, if it plans the stack's goals

_VERSIONED: Final = (
    "rclcpp",
    "moveit_ros_move_group",
    "moveit_planners_ompl",
    "controller_manager",
    "joint_trajectory_controller",
    "gz_ros2_control",
    "tracetools",
)
_STATUS: Final = "lib/tracetools/status"
_STATUS_TIMEOUT_S: Final = 10
_DISABLED: Final = 1
"""Exit status of ``status`` without tracepoints; any other failure means that it could not be loaded."""

DDS_SETTINGS: Final = ("CYCLONEDDS_URI", "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
"""Variables of a middleware's settings, which are part of the measured system; see also `ZENOH_SETTINGS`."""


def ros2_available(spec: StackSpec, environment: Mapping[str, str] | None = None) -> Availability:
    """Availability of everything that `spec` needs, sourced and traceable in an environment; ours by default."""
    return next((each for each in _needs(spec, environment) if not each.ok), Availability(True))


def needed_packages(spec: StackSpec) -> tuple[str, ...]:
    controllers = ("controller_manager_msgs",) if spec.ros2.controllers else ()
    interface = spec.driver.interface.partition("/")[0]
    types = (interface,) if interface else ()
    return tuple(dict.fromkeys((*EVERY_STACK, *spec.driver.PACKAGES, *controllers, *types)))


def _needs(stack: StackSpec, environment: Mapping[str, str] | None) -> Iterator[Availability]:
    spec = stack.ros2
    yield ros_python_available(environment, path=module_path(environment))
    yield rmw_installed(rmw_of(spec, environment), environment=environment)
    yield find_ros_packages(needed_packages(stack), environment=environment)
    if spec.is_panda:
        yield find_ros_packages(PANDA, environment=environment)
    if resolve_simulation(spec, environment) is Simulation.GZ and spec.is_panda:
        yield find_ros_packages(GAZEBO_PACKAGES, environment=environment)
    yield tracing_available(environment)


def module_path(environment: Mapping[str, str] | None) -> list[str] | None:
    """Returns the module path of our processes in this environment; ``None`` if it is ours."""
    if environment is None:
        return None
    ours, theirs = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (os.environ, environment))
    return [*filter(None, theirs), *(place for place in sys.path if place not in ours)]


def rmw_of(spec: Ros2Spec, environment: Mapping[str, str] | None = None) -> str:
    return spec.rmw or chosen_rmw(environment)


def tracing_available(environment: Mapping[str, str] | None = None) -> Availability:
    """Availability of LTTng in ROS 2, by tracetools' ``status`` program; cached by program and environment."""
    prefix = find_ros_package("tracetools", environment)
    program = None if prefix is None else prefix / _STATUS
    if program is None or not program.is_file():
        remedy = remedy_for_packages(["tracetools"], environment=environment)
        return Availability(False, "tracetools has no status program", remedy)
    given = os.environ if environment is None else environment
    there = program.stat()
    return _ask_status(program, (there.st_mtime_ns, there.st_size), frozenset(given.items()))


@functools.lru_cache(maxsize=8)
def _ask_status(program: Path, version: tuple[int, int], environment: frozenset[tuple[str, str]]) -> Availability:
    """Runs ``status``; its time and size are part of the cache key, so that a new installation is run again."""
    try:
        done = run_program([str(program)], environment=dict(environment), timeout_s=_STATUS_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(False, f"{program} cannot be run: {error}", "source the ROS environment again")
    if done.returncode == 0:
        return Availability(True)
    if done.returncode != _DISABLED:
        reason = f"{program} cannot be run: {_last_line(done.stderr)}"
        return Availability(False, reason, "source the ROS environment again")
    return Availability(
        False,
        f"this ROS 2 was built without tracepoints (tracetools says: {_last_line(done.stdout)})",
        "install liblttng-ust-dev and build tracetools, rcl, rclcpp and the middleware again, "
        "or use the packages of the distribution, which have them",
    )


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


def ros2_info(spec: StackSpec, environment: Mapping[str, str] | None = None) -> StackInfo:
    ros2 = spec.ros2
    sim = resolve_simulation(ros2, environment)
    rmw = rmw_of(ros2, environment)
    distro = find_distro(environment)
    given = os.environ if environment is None else environment
    planner = [SEEDED_PLANNER] if ros2.is_panda or ros2.seeded_planner else []
    versions = {name: found for name in (*_VERSIONED, *planner, rmw) if (found := version_of(name, environment))}
    launched = "running nodes" if ros2.is_running else f"launch file {ros2.launch_file}"
    parts = ["Panda" if ros2.is_panda else launched]
    parts += [f"sim {sim}"] if sim is not Simulation.AUTO else []
    parts += [f"MoveIt {versions['moveit_ros_move_group']}"] if "moveit_ros_move_group" in versions else []
    parts += [f"ros2_control {versions['controller_manager']}"] if "controller_manager" in versions else []
    # Trials with different bags or problems are not comparable.
    data = {str(spec.driver.KIND): digest_of_data(Path(spec.driver.data))} if spec.driver.data else {}
    return StackInfo(
        name=_name(spec, sim),
        description=f"ros2 {distro.name if distro else ''} ({', '.join([*parts, rmw])})",
        rmw=rmw,
        versions={
            **versions,
            **data,
            **{name: given[name] for name in (*DDS_SETTINGS, *ZENOH_SETTINGS) if name in given},
            "ros_distro": distro.name if distro else "",
            "pytest-ldos": version("pytest-ldos"),
        },
        kind=StackKind.ROS2,
        has_simulated_clock=sim is Simulation.GZ,
        starts_afresh=ros2.is_panda,
    )


def _name(stack: StackSpec, sim: Simulation) -> str:
    """Name of the baselines' folder; each robot, simulator and stimulus has its own."""
    spec = stack.ros2
    launched = [] if spec.is_panda else [Path(spec.launch_file).name.split(".")[0]]  # or "running"
    robot = [spec.group] if launched and stack.moves_arm else []
    stimulus = [] if stack.moves_arm else [str(stack.stimulus)]
    parts = ["ros2", *launched, *robot, *stimulus, *([] if sim is Simulation.AUTO else [sim.value])]
    return "-".join(re.sub(r"[^A-Za-z0-9_]+", "_", part) for part in parts)


def version_of(package: str, environment: Mapping[str, str] | None) -> str:
    """Returns the version in the package's manifest; empty if it is not installed."""
    prefix = find_ros_package(package, environment)
    if prefix is None:
        return ""
    try:
        manifest = ET.parse(prefix / "share" / package / "package.xml")  # noqa: S314 - installed with the library
    except (OSError, ET.ParseError):
        return ""
    return (manifest.findtext("version") or "").strip()


@contextmanager
def isolated(
    spec: Ros2Spec, *, domain: int, log_directory: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Isolation]:
    """Isolates a stack with an environment, ours by default; starts a router if its middleware needs one.

    Raises `Unavailable` if its middleware is not sourced, and `BringUpFailed` if the router does not start.
    """
    variables = isolated_environment(spec, domain=domain, log_directory=log_directory, environment=environment)
    common = {**(environment or {}), **variables}
    if common["RMW_IMPLEMENTATION"] != ZENOH:
        yield Isolation(common)
        return
    with zenoh_router({**os.environ, **common}, log_directory=log_directory) as zenoh:
        yield Isolation({**common, **zenoh.environment}, zenoh.router)


def isolated_environment(
    spec: Ros2Spec, *, domain: int, log_directory: Path, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Returns variables for every process of a stack, to be added to `environment` (ours by default).

    Gazebo has its own discovery, in which two servers in one partition disturb each other.
    """
    given = {**os.environ, **(environment or {})}
    is_users_choice = any(given.get(name) for name in DDS_SETTINGS)
    return {
        **({} if is_users_choice else deaf_to_other_devices(domain, environment)),
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_STATIC_PEERS": "",
        "ROS_LOG_DIR": str(log_directory / "ros"),
        "RMW_IMPLEMENTATION": rmw_of(spec, environment),
        "GZ_PARTITION": f"ldos-{secrets.token_hex(4)}",
        "GZ_IP": "127.0.0.1",
        # A discovery server would admit any node.
        "ROS_DISCOVERY_SERVER": "",
        "ROS_SUPER_CLIENT": "",
        # Standard output is reserved for messages between our own processes.
        "RCUTILS_LOGGING_USE_STDOUT": "0",
        "PYTHONUNBUFFERED": "1",
    }


SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - Linux's standard location

_OURS: Final = re.compile(r"(sem\.)?fast(rtps|dds)_")


class SharedMemory:
    """Records the files present before a stack starts, to recognise those that it leaves behind."""

    def __init__(self, directory: Path = SHARED_MEMORY) -> None:
        self._directory = directory
        self._before = set(self._files())

    def _files(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield from (file.name for file in self._directory.iterdir() if _OURS.match(file.name))

    def remove_left_behind(self) -> None:
        """Removes new files that no visible process maps or holds open."""
        new = set(self._files()) - self._before
        if not new:
            return
        used = set(_used_paths())
        for name in new:
            if f"{self._directory}/{name}" not in used:
                with contextlib.suppress(OSError):
                    (self._directory / name).unlink()


def _used_paths() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text("utf-8", errors="replace").splitlines():
                yield line[line.find("/") :]
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    yield str(descriptor.readlink())
