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
from pytest_ldos.host.kept import AnsweringChild
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.study import setting
from pytest_ldos.robot.dds.domain import bound_to_loopback, claim_domain
from pytest_ldos.robot.stack.embedded.backend import tracepoints_available
from pytest_ldos.robot.stack.embedded.installed import installed_here
from pytest_ldos.robot.stack.ros2.installed import SharedMemory, isolated, tracing_available, version_of
from pytest_ldos.scenario.model import Ros2Spec

PACKAGE: Final = "ldos_cost"
"""Package of the ROS workspace."""

_EMBEDDED_MIDDLEWARE: Final = "rmw_cyclonedds_cpp"
_EMBEDDED_MODULES: Final = ("cyclonedds", "rosbags")
_EMBEDDED_VERSIONS: Final[tuple[str, ...]] = (*_EMBEDDED_MODULES, "python", "pytest-ldos")


class Layers(StrEnum):
    """Layers to measure."""

    AUTO = "auto"
    """The embedded layer, and rclcpp if it is sourced."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"


class Kind(StrEnum):
    """Library of the nodes."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"


@dataclass(frozen=True, kw_only=True)
class LayersSpec:
    """The requested layers of a study of costs."""

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
        """``embedded``, ``rclcpp rmw_fastrtps_cpp``."""
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
        environment: Mapping[str, str]
        if self.kind is Kind.EMBEDDED:
            environment, settings = bound_to_loopback(), {**settings, "domain": domain}
        else:
            isolation = isolated(Ros2Spec(rmw=self.middleware), domain=domain, log_directory=folder)
            environment = resources.enter_context(isolation).environment
        prefix, of_recorder = recorded
        group = ProcessGroup(log_directory=folder, prefix=prefix, environment={**of_recorder, **environment})
        resources.callback(group.stop)
        command = self.command(module, program, settings)
        return AnsweringChild(group.start(f"{self.kind}-{name}", command, talk=True))

    def command(self, module: str, program: str, settings: Mapping[str, str | int | float]) -> Sequence[str]:
        if self.kind is Kind.EMBEDDED:
            return [sys.executable, "-m", module, json.dumps(settings)]
        return [ros_program(PACKAGE, program), *(f"{name}={value}" for name, value in settings.items())]


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
    """Reports if the node layer can run here."""
    modules = find_modules(_EMBEDDED_MODULES, extra="embedded")
    return tracepoints_available(installed_here()) if modules.ok and traced else modules


def ros2_available(rmws: Sequence[str], *, traced: bool = False) -> Availability:
    """Reports if the workspace's programs and the middlewares are sourced."""
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
            named = {name: versions[name] for name in _EMBEDDED_VERSIONS if name in versions}
            layers.append(Layer(kind=Kind.EMBEDDED, middleware=_EMBEDDED_MIDDLEWARE, versions=named))
        else:
            notes.append(f"the embedded layer was not measured: {embedded.reason}")
    if asked is not Layers.EMBEDDED:
        if ros2.ok:
            for rmw in rmws or installed_rmws():
                found = {name: version_of(name, None) for name in ("rclcpp", rmw, PACKAGE)}
                named = {name: version for name, version in found.items() if version}
                layers.append(Layer(kind=Kind.ROS2, middleware=rmw, versions=named))
        else:
            notes.append(f"rclcpp was not measured: {ros2.reason} ({ros2.remedy})")
    return layers, notes


class Identity(TypedDict):
    """A study's fields about its layers; studies of different layers have separate baselines."""

    layer: str
    middleware: str
    versions: Mapping[str, str]


def identity_of(layers: Sequence[Layer], **versions: str) -> Identity:
    """Returns the fields of a study of all these layers, with further versions."""
    return {
        "layer": "-and-".join(dict.fromkeys(str(layer.kind) for layer in layers)),
        "middleware": "+".join(dict.fromkeys(layer.middleware for layer in layers)),
        "versions": {**{name: each for layer in layers for name, each in layer.versions.items()}, **versions},
    }
