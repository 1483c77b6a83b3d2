"""Finds the stack's launch file, and tracks the stack's state by the launcher's events."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.processes import describe_end, quoted
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.scenario.model import Ros2Spec
from pytest_ldos.scenario.words import Simulation


@dataclass(frozen=True)
class ProcessBegan:
    """A launched process has started."""

    name: str
    pid: int


@dataclass(frozen=True)
class ProcessEnded:
    """A launched process has ended; `code` is its exit code, or minus the signal that killed it."""

    name: str
    pid: int
    code: int

    def describe(self) -> str:
        return describe_end(self.name, self.code)


@dataclass(frozen=True)
class LaunchFailed:
    """The launch file failed."""

    reason: str


_NUMBER: Final = re.compile(r"-\d+$")

LaunchEvent = ProcessBegan | ProcessEnded | LaunchFailed

_KINDS: dict[str, Callable[..., LaunchEvent]] = {
    kind.__name__: kind for kind in (ProcessBegan, ProcessEnded, LaunchFailed)
}


def to_line(event: LaunchEvent) -> str:
    return json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n"


def parse_event(line: str) -> LaunchEvent:
    """Parses an event of the launcher.

    Raises:
        ValueError: the line is not an event.
    """
    values: dict[str, Any] = json.loads(line)
    kind = _KINDS.get(values.pop("event", ""))
    if kind is None:
        raise ValueError(f"unknown event: {line.strip()}")
    return kind(**values)


class LaunchWatch:
    """The state of a launch; may be queried from another thread while it follows events.

    Attributes:
        started: all processes started so far.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.started: list[ProcessBegan] = []
        self._ended: list[ProcessEnded] = []
        self._failures: list[str] = []
        self._is_over = False

    def follow(self, lines: Iterable[str]) -> None:
        """Processes events until the launcher's output ends."""
        for line in lines:
            try:
                event = parse_event(line)
            except (ValueError, TypeError):
                event = LaunchFailed(f"the launcher printed a line that is not an event: {quoted(line)}")
            self.take(event)
        with self._lock:
            self._is_over = True

    def take(self, event: LaunchEvent) -> None:
        with self._lock:
            match event:
                case ProcessBegan():
                    self.started.append(event)
                case ProcessEnded():
                    self._ended.append(event)
                case LaunchFailed():
                    self._failures.append(event.reason)

    def what_failed(self) -> str:
        """Returns why the stack can no longer become complete; empty if it still can.

        A process that ends with exit code 0 has done its work, such as a spawner. The first of several failed processes
        is the reason, because a launch file may end all others after it.
        """
        with self._lock:
            reasons = [*self._failures, *(each.describe() for each in self._ended if each.code != 0)]
            if self._is_over:
                reasons.append("the launch file ended, and with it its processes")
            return next(iter(reasons), "")

    def pids(self) -> set[int]:
        with self._lock:
            return {each.pid for each in self.started}

    def named(self) -> dict[int, str]:
        """Names of all processes by pid, without the number appended by launch."""
        with self._lock:
            return {each.pid: _NUMBER.sub("", each.name) for each in self.started}

    def running(self) -> dict[int, str]:
        """Names of the running processes, by pid."""
        with self._lock:
            ended = {each.pid for each in self._ended}
        return {pid: name for pid, name in self.named().items() if pid not in ended}


GAZEBO_PACKAGES: Final = ("ros_gz_sim", "ros_gz_bridge", "gz_ros2_control", "ldos_gz_probe")


def find_launch_file(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Finds a launch file by its path, or as ``PACKAGE/FILE`` anywhere in the package's share folder.

    Args:
        environment: environment whose packages are searched; ours by default.

    Raises:
        ConfigurationError: there is none; names the searched locations.
    """
    path = Path(name)
    if path.is_file():
        return path.resolve()
    package, _, file = name.partition("/")
    prefix = find_ros_package(package, environment) if package else None
    if prefix is None:
        raise ConfigurationError(
            f"there is no launch file {name}: no such file, and no ROS package {package!r} is sourced",
            remedy="launch_file is PACKAGE/FILE of a sourced workspace, or a path from pyproject.toml",
        )
    share = prefix / "share" / package
    found = sorted(share.rglob(file)) if file else []
    if not found:
        there = sorted(each.name for each in share.rglob("*launch*.*") if each.is_file())
        raise ConfigurationError(
            f"package {package} has no launch file {file!r}", remedy=f"it has: {', '.join(there) or 'none'}"
        )
    return found[0]


def resolve_simulation(spec: Ros2Spec, environment: Mapping[str, str] | None = None) -> Simulation:
    """Returns the simulation that moves the arm; `AUTO` if the launch file itself decides."""
    if spec.sim is not Simulation.AUTO or not spec.is_panda:
        return spec.sim
    return Simulation.GZ if find_ros_packages(GAZEBO_PACKAGES, environment=environment).ok else Simulation.MOCK


def launch_arguments(spec: Ros2Spec, environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Returns all arguments of the launch file, by name."""
    sim = resolve_simulation(spec, environment)
    return dict(spec.launch_arguments) if sim is Simulation.AUTO else {"sim": sim.value, **spec.launch_arguments}
