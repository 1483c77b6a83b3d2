"""Layers whose costs are measured: the embedded node layer, and rclcpp with each sourced middleware."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypedDict

from pytest_ldos.base.errors import require
from pytest_ldos.host.availability import (
    Availability,
    chosen_rmw,
    find_modules,
    find_ros_packages,
    installed_rmws,
    rmw_installed,
    ros_program,
)
from pytest_ldos.host.kept import AnsweringChild, ChildFailed
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.study import setting
from pytest_ldos.robot.dds.domain import bound_to_loopback, claim_domain
from pytest_ldos.robot.stack.embedded.backend import tracepoints_available
from pytest_ldos.robot.stack.embedded.installed import installed_here
from pytest_ldos.robot.stack.ros2.installed import SharedMemory, isolated, tracing_available, version_of
from pytest_ldos.scenario.model import Ros2Spec

PACKAGE: Final = "ldos_cost"

MATCH_S: Final = 20.0  # time limit for publishers and subscribers to find each other
_START_S: Final = 20.0  # time limit for the concurrent start of processes on a busy machine
EMBEDDED_MIDDLEWARE: Final = "rmw_cyclonedds_cpp"
EMBEDDED_MODULES: Final[tuple[str, ...]] = ("cyclonedds", "rosbags")


class Layers(StrEnum):
    AUTO = "auto"  # the embedded layer, and rclcpp if it is sourced
    EMBEDDED = "embedded"
    ROS2 = "ros2"


class Kind(StrEnum):
    EMBEDDED = "embedded"
    ROS2 = "ros2"


@dataclass(frozen=True, kw_only=True)
class LayersSpec:
    layer: Layers = setting(Layers.AUTO, "Layer of the nodes; auto: embedded, and rclcpp where ROS 2 is sourced.")
    rmw: str = setting("", "Middlewares of rclcpp, with commas between them. [default: all that are sourced]")

    def __post_init__(self) -> None:
        parse_rmws(self.rmw)

    @property
    def rmws(self) -> Sequence[str]:
        return parse_rmws(self.rmw)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer to measure, the versions of its packages, and its middleware's name in ROS 2."""

    kind: Kind
    middleware: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return "embedded" if self.kind is Kind.EMBEDDED else f"rclcpp {self.middleware}"

    def start(
        self,
        name: str,
        settings: Mapping[str, str | int | float],
        *,
        module: str,
        program: str,
        folder: Path,
        resources: ExitStack,
        recorded: tuple[Sequence[str], Mapping[str, str]] = ((), {}),
    ) -> AnsweringChild:
        """Starts a measuring program on a domain of its own: a module of this package, or a program of `PACKAGE`.

        `resources` ends it; `recorded` is the prefix of the command and the environment that record it.
        """
        domain = resources.enter_context(claim_domain())
        environment = environment_on(domain, self.kind, self.middleware, folder=folder, resources=resources)
        if self.kind is Kind.EMBEDDED:
            settings = {**settings, "domain": domain}
        prefix, of_recorder = recorded
        group = ProcessGroup(log_directory=folder, prefix=prefix, environment={**of_recorder, **environment})
        resources.callback(group.stop)
        return AnsweringChild(group.start(f"{self.kind}-{name}", self.command(module, program, settings), talk=True))

    def command(self, module: str, program: str, settings: Mapping[str, str | int | float]) -> Sequence[str]:
        if self.kind is Kind.EMBEDDED:
            return [sys.executable, "-m", module, json.dumps(settings)]
        return [ros_program(PACKAGE, program), *(f"{name}={value}" for name, value in settings.items())]


def environment_on(domain: int, kind: Kind, rmw: str, *, folder: Path, resources: ExitStack) -> Mapping[str, str]:
    """Returns the environment of nodes that meet on a domain of this machine, until `resources` are closed."""
    if kind is Kind.EMBEDDED:
        return bound_to_loopback()
    return resources.enter_context(isolated(Ros2Spec(rmw=rmw), domain=domain, log_directory=folder)).environment


def await_match(child: AnsweringChild) -> AnsweringChild:
    """Returns the process once its publishers and subscribers have found each other; `ChildFailed` if they have not."""
    if child.answer(limit_s=MATCH_S + _START_S).get("matched") is not True:
        name = child.child.name
        raise ChildFailed(f"publishers and subscribers of {name} did not find each other in {MATCH_S:.0f} s")
    return child


@contextmanager
def leaving_no_memory() -> Iterator[None]:
    """Removes shared memory of killed Fast DDS processes at the end of the ``with`` block."""
    memory = SharedMemory()
    try:
        yield
    finally:
        memory.remove_left_behind()


def parse_rmws(text: str) -> tuple[str, ...]:
    """Splits a comma-separated list of middlewares; raises `ConfigurationError` for another name."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        remedy = "as rmw_cyclonedds_cpp or rmw_fastrtps_cpp; several with commas"
        require(name.startswith("rmw_") and name.isidentifier(), f"rmw is {name!r}", remedy=remedy)
    return names


def layers_available(asked: Layers, rmws: Sequence[str], *, traced: bool = False) -> Availability:
    """Reports if any layer can run here (for layers requested by name, if all can), `traced` with tracepoints."""
    embedded, ros2 = embedded_available(traced=traced), ros2_available(rmws, traced=traced)
    if asked is Layers.EMBEDDED:
        return embedded
    if asked is Layers.ROS2 or (rmws and embedded.ok):
        return ros2
    return embedded if embedded.ok or not ros2.ok else ros2


def embedded_available(*, traced: bool = False) -> Availability:
    modules = find_modules(EMBEDDED_MODULES, extra="embedded")
    return tracepoints_available(installed_here()) if modules.ok and traced else modules


def ros2_available(rmws: Sequence[str], *, traced: bool = False) -> Availability:
    needs = [find_ros_packages([PACKAGE]), *(rmw_installed(each) for each in rmws or [chosen_rmw()])]
    if traced and needs[0].ok:
        needs.append(tracing_available())
    return next((each for each in needs if not each.ok), Availability(True))


def choose_layers(asked: Layers, rmws: Sequence[str], *, traced: bool = False) -> tuple[Sequence[Layer], Sequence[str]]:
    """Returns the layers to measure, and notes on those left out; call `layers_available` first."""
    layers, notes = [], []
    embedded, ros2 = embedded_available(traced=traced), ros2_available(rmws, traced=traced)
    if asked is not Layers.ROS2:
        if embedded.ok:
            versions = installed_here().versions
            named = {name: versions[name] for name in (*EMBEDDED_MODULES, "python", "pytest-ldos") if name in versions}
            layers.append(Layer(kind=Kind.EMBEDDED, middleware=EMBEDDED_MIDDLEWARE, versions=named))
        else:
            notes.append(f"the embedded layer was not measured: {embedded.reason}")
    if asked is not Layers.EMBEDDED:
        if ros2.ok:
            for rmw in rmws or installed_rmws():
                versions = ros_versions("rclcpp", rmw, PACKAGE)
                layers.append(Layer(kind=Kind.ROS2, middleware=rmw, versions=versions))
        else:
            notes.append(f"rclcpp was not measured: {ros2.reason} ({ros2.remedy})")
    return layers, notes


def ros_versions(*packages: str) -> dict[str, str]:
    """Returns the known versions of sourced packages, by name."""
    return {name: known for name in packages if (known := version_of(name, None))}


class Identity(TypedDict):
    """A study's fields about its layers; studies of different layers have separate baselines."""

    layer: str
    middleware: str
    versions: Mapping[str, str]


def identity_of(layers: Sequence[Layer], **versions: str) -> Identity:
    return {
        "layer": "-and-".join(dict.fromkeys(str(layer.kind) for layer in layers)),
        "middleware": "+".join(dict.fromkeys(layer.middleware for layer in layers)),
        "versions": {**{name: each for layer in layers for name, each in layer.versions.items()}, **versions},
    }
