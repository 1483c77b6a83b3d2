"""The state of a ROS 2 stack, from the events of its launcher and the answers of its parts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar
from xml.etree import ElementTree as ET

import psutil

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.availability import find_ros_package, find_ros_packages
from pytest_ldos.host.processes import describe_end, quoted
from pytest_ldos.robot.stack.goals import load_yaml
from pytest_ldos.scenario.model import Ros2Spec
from pytest_ldos.scenario.words import Simulation


@dataclass(frozen=True)
class ProcessBegan:
    name: str
    pid: int


@dataclass(frozen=True)
class ProcessEnded:
    """A launched process has ended; `code` is its exit code, or minus the signal that killed it."""

    name: str
    pid: int
    code: int


@dataclass(frozen=True)
class LaunchFailed:
    reason: str


_LONGEST_VALUE: Final = 60


def find_parameters(processes: Mapping[int, str]) -> dict[str, str]:
    """Parameters on command lines and in files named there, as by launch, by process and name; not of components."""
    found: dict[str, str] = {}
    for pid, process in processes.items():
        with suppress(psutil.Error):
            for option, value in pairwise(psutil.Process(pid).cmdline()):
                name, is_one, text = value.partition(":=")
                try:
                    of_file = _flat("", load_yaml(Path(value))) if option == "--params-file" else {}
                    given = _flat(f".{name}", text) if option in {"-p", "--param"} and is_one else of_file
                except (ConfigurationError, RecursionError) as error:
                    given = {"": str(error)}
                found |= {f"parameter {process} {each[1:]}".strip(): given[each] for each in given}
    return found


def _flat(name: str, value: object) -> dict[str, str]:
    """Values by dotted name; of paths only the file's name, since each version is installed elsewhere."""
    if isinstance(value, Mapping):
        of_all = {"/**", "ros__parameters"}
        inner = (_flat(name if part in of_all else f"{name}.{part}", each) for part, each in value.items())
        return {key: text for each in inner for key, text in each.items()}
    text = str(value)
    short = text.rpartition("/")[2] if text.startswith(("/", "file://")) else text
    return {name: short if len(short) <= _LONGEST_VALUE else hashlib.sha256(text.encode()).hexdigest()[:12]}


_NUMBER: Final = re.compile(r"-\d+$")

LaunchEvent = ProcessBegan | ProcessEnded | LaunchFailed
Event = TypeVar("Event", ProcessBegan, ProcessEnded, LaunchFailed)

_KINDS: dict[str, Callable[..., LaunchEvent]] = {
    each.__name__: each for each in (ProcessBegan, ProcessEnded, LaunchFailed)
}


def to_line(event: LaunchEvent) -> str:
    return json.dumps({"event": type(event).__name__, **asdict(event)}) + "\n"


def parse_event(line: str) -> LaunchEvent:
    values: dict[str, Any] = json.loads(line)
    kind = _KINDS.get(values.pop("event", ""))
    if kind is None:
        raise ValueError(f"unknown event: {line.strip()}")
    return kind(**values)


class LaunchWatch:
    """The state of a launch; may be queried from another thread while it follows events."""

    def __init__(self) -> None:
        self._events: list[LaunchEvent] = []
        self._is_over = False

    def follow(self, lines: Iterable[str]) -> None:
        for line in lines:
            try:
                event = parse_event(line)
            except (ValueError, TypeError):
                event = LaunchFailed(f"the launcher printed a line that is not an event: {quoted(line)}")
            self.take(event)
        self._is_over = True

    def take(self, event: LaunchEvent) -> None:
        self._events.append(event)

    def _of(self, kind: type[Event]) -> list[Event]:
        return [each for each in tuple(self._events) if isinstance(each, kind)]

    def what_failed(self) -> str:
        """Returns why the stack can no longer become complete; empty if it still can.

        A process that ends with exit code 0 has done its work, such as a spawner. The first of several failed processes
        is the reason, because a launch file may end all others after it.
        """
        is_over = self._is_over  # read first, so that all events before it are known
        reasons = [each.reason for each in self._of(LaunchFailed)]
        reasons += [describe_end(each.name, each.code) for each in self._of(ProcessEnded) if each.code != 0]
        if is_over:
            reasons.append("the launch file ended, and with it its processes")
        return next(iter(reasons), "")

    def pids(self) -> set[int]:
        return {each.pid for each in self._of(ProcessBegan)}

    def named(self) -> dict[int, str]:
        """Names of all processes by pid, without the number appended by launch."""
        return {each.pid: _NUMBER.sub("", each.name) for each in self._of(ProcessBegan)}

    def running(self) -> dict[int, str]:
        ended = {each.pid for each in self._of(ProcessEnded)}
        return {pid: name for pid, name in self.named().items() if pid not in ended}


GAZEBO_PACKAGES: Final = ("ros_gz_sim", "ros_gz_bridge", "gz_ros2_control", "ldos_gz_probe")


def find_launch_file(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Finds a launch file by path, or as ``PACKAGE/FILE`` of a sourced package; else raises `ConfigurationError`."""
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
    sim = resolve_simulation(spec, environment)
    return dict(spec.launch_arguments) if sim is Simulation.AUTO else {"sim": sim.value, **spec.launch_arguments}


_ACTIVE: Final = "active"
_MISSING: Final = {
    "topic": "no message on",
    "service": "no service",
    "action": "no action server",
    "active": "not active:",
}


def group_names(semantics: str) -> list[str]:
    """Names of the planning groups in a semantic robot description (SRDF); none if it is not XML."""
    try:
        return [group.get("name", "") for group in ET.fromstring(semantics).findall("group")]  # noqa: S314 - our own stack's
    except ET.ParseError:
        return []


@dataclass
class Readiness:
    """Known state of a stack's readiness."""

    controllers: Sequence[str]  # names that must be active
    controller_manager: str
    # action, joint_states, group: empty if none is needed
    action: str
    joint_states: str
    group: str
    needs_clock: bool  # True if a simulator's clock must be running
    others: Sequence[str] = ()  # further conditions, as in `Ros2Spec.ready`
    _seen: set[str] = field(default_factory=set)
    _states: Mapping[str, str] | None = None
    _actions: Sequence[str] = ()
    _groups: Sequence[str] | None = None
    _has_answered: bool = False
    _has_joint_state: bool = False
    _clock_ns: list[int] = field(default_factory=list)

    def saw_controllers(self, states: Mapping[str, str]) -> None:
        self._states = dict(states)

    def saw_actions(self, names: Sequence[str]) -> None:
        self._actions = sorted(names)

    def saw_groups(self, names: Sequence[str]) -> None:
        """Notes the robot's planning groups, as the planner reports them; none if it does not."""
        self._groups = sorted(names)

    def saw_answer(self) -> None:
        self._has_answered = True

    def saw_joint_state(self) -> None:
        self._has_joint_state = True

    def saw(self, need: str) -> None:
        self._seen.add(need)

    @property
    def unmet(self) -> list[str]:
        return [need for need in self.others if need not in self._seen]

    def saw_clock(self, time_ns: int) -> None:
        if len(self._clock_ns) < 2 and time_ns not in self._clock_ns:
            self._clock_ns.append(time_ns)

    @property
    def needs_controllers(self) -> bool:
        return bool(self._missing_controllers())

    @property
    def needs_groups(self) -> bool:
        """True if the planner has not yet reported its groups, and one must be among them."""
        return bool(self.group) and self._groups is None

    @property
    def only_needs_groups(self) -> bool:
        return self.needs_groups and self._has_answered and len(self.missing()) == 1

    def wrong(self) -> str:
        """Returns why goals will never be possible; empty if they may be."""
        if not self._groups or self.group in self._groups:
            return ""
        return f"the robot has no planning group {self.group!r} (there is {', '.join(self._groups)})"

    def missing(self) -> list[str]:
        """Returns the missing parts in words; empty when goals can be sent."""
        clock = "the simulator's clock stands still" if self._clock_ns else "no message on /clock"
        return [
            *([clock] if self.needs_clock and len(self._clock_ns) < 2 else []),
            *self._missing_controllers(),
            *([] if self._has_joint_state or not self.joint_states else [f"no message on {self.joint_states}"]),
            *([] if not self.action else self._missing_action()),
            *(f"{_MISSING[need.partition(':')[0]]} {need.partition(':')[2]}" for need in self.unmet),
        ]

    def _missing_controllers(self) -> list[str]:
        if not self.controllers:
            return []
        if self._states is None:
            return [f"no answer from {self.controller_manager}"]
        not_loaded = f"not loaded (there is {', '.join(sorted(self._states))})" if self._states else "not loaded"
        states = {name: self._states.get(name) or not_loaded for name in self.controllers}
        return [f"controller {name} is {state}" for name, state in states.items() if state != _ACTIVE]

    def _missing_action(self) -> list[str]:
        if self._has_answered:
            return [f"no answer about planning groups from the node of {self.action}"] if self.needs_groups else []
        if self.action in self._actions:
            return [f"no answer from the action server of {self.action}"]
        others = f" (there is {', '.join(self._actions)})" if self._actions else ""
        return [f"no action server {self.action}{others}"]
