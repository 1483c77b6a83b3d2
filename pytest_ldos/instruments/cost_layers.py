"""Layers whose costs are measured: the embedded node layer, and rclcpp with each sourced middleware."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import require
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import chosen_rmw, find_ros_package, find_ros_packages, installed_rmws, rmw_installed
from pytest_ldos.robot.dds.domain import bound_to_loopback
from pytest_ldos.robot.stack.embedded.installed import installed_here
from pytest_ldos.robot.stack.embedded.tracepoints import tracepoints_available
from pytest_ldos.robot.stack.ros2.installed import tracing_available, version_of
from pytest_ldos.robot.stack.ros2.isolation import SharedMemory, isolated
from pytest_ldos.scenario.described import described
from pytest_ldos.scenario.model import Ros2Spec

PACKAGE: Final = "ldos_cost"
"""Package of the ROS workspace."""

_EMBEDDED_MIDDLEWARE: Final = "rmw_cyclonedds_cpp"
_EMBEDDED_MODULES: Final = ("cyclonedds", "rosbags")


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

    layer: Layers = field(
        default=Layers.AUTO,
        metadata=described("Layer of the nodes; auto: embedded, and rclcpp where ROS 2 is sourced."),
    )
    rmw: str = field(
        default="",
        metadata=described("Middlewares of rclcpp, with commas between them. [default: all that are sourced]"),
    )

    def __post_init__(self) -> None:
        parse_rmws(self.rmw)

    @property
    def rmws(self) -> Sequence[str]:
        return parse_rmws(self.rmw)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer to measure.

    Attributes:
        middleware: name in ROS 2; the embedded layer uses Cyclone DDS without an RMW.
        versions: versions of its packages.
    """

    kind: Kind
    middleware: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``embedded``, ``rclcpp rmw_fastrtps_cpp``."""
        return "embedded" if self.kind is Kind.EMBEDDED else f"rclcpp {self.middleware}"

    def command(self, module: str, program: str, settings: Mapping[str, str | int | float]) -> Sequence[str]:
        """Returns the command of a measuring program: a module of this package, or a program of `PACKAGE`."""
        if self.kind is Kind.EMBEDDED:
            return [sys.executable, "-m", module, json.dumps(settings)]
        prefix = find_ros_package(PACKAGE)
        assert prefix is not None
        return [str(prefix / "lib" / PACKAGE / program), *(f"{name}={value}" for name, value in settings.items())]

    @contextmanager
    def isolated(self, *, domain: int, log_directory: Path) -> Iterator[Mapping[str, str]]:
        """Yields environment variables of its processes; the embedded layer gets its domain from the settings."""
        if self.kind is Kind.EMBEDDED:
            yield bound_to_loopback()
            return
        with isolated(Ros2Spec(rmw=self.middleware), domain=domain, log_directory=log_directory) as isolation:
            yield isolation.environment


@contextmanager
def leaving_no_memory() -> Iterator[None]:
    """Removes shared memory of killed Fast DDS processes at the end of the ``with`` block."""
    memory = SharedMemory()
    try:
        yield
    finally:
        memory.remove_left_behind()


def parse_rmws(text: str) -> tuple[str, ...]:
    """Splits a comma-separated list of middlewares.

    Raises:
        ConfigurationError: a name is not that of a middleware.
    """
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        remedy = "as rmw_cyclonedds_cpp or rmw_fastrtps_cpp; several with commas"
        require(name.startswith("rmw_") and name.isidentifier(), f"rmw is {name!r}", remedy=remedy)
    return names


def layers_available(asked: Layers, rmws: Sequence[str], *, traced: bool = False) -> Availability:
    """Reports if any layer can run here; for layers requested by name, if all can.

    Args:
        traced: True if the layers need tracepoints.
    """
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
            layers.append(_embedded())
        else:
            notes.append(f"the embedded layer was not measured: {embedded.reason}")
    if asked is not Layers.EMBEDDED:
        if ros2.ok:
            layers += [_ros2(each) for each in rmws or installed_rmws()]
        else:
            notes.append(f"rclcpp was not measured: {ros2.reason} ({ros2.remedy})")
    return layers, notes


def _embedded() -> Layer:
    versions = installed_here().versions
    wanted = ("cyclonedds", "rosbags", "python", "pytest-ldos")
    return Layer(
        kind=Kind.EMBEDDED,
        middleware=_EMBEDDED_MIDDLEWARE,
        versions={name: versions[name] for name in wanted if name in versions},
    )


def _ros2(rmw: str) -> Layer:
    found = {name: version_of(name, None) for name in ("rclcpp", rmw, PACKAGE)}
    versions = {name: version for name, version in found.items() if version}
    return Layer(kind=Kind.ROS2, middleware=rmw, versions=versions)


def layer_name(layers: Sequence[Layer]) -> str:
    """Returns the layer name of a study of all these layers; studies of different layers have separate baselines."""
    return "-and-".join(dict.fromkeys(str(layer.kind) for layer in layers))


def middleware_name(layers: Sequence[Layer]) -> str:
    """Returns the middleware name of a study of all these layers."""
    return "+".join(dict.fromkeys(layer.middleware for layer in layers))


def versions_of(layers: Sequence[Layer]) -> Mapping[str, str]:
    """Returns the versions of all these layers."""
    return {name: version for layer in layers for name, version in layer.versions.items()}
