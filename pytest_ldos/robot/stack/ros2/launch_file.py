"""The launch file that starts the stack, and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.ros import find_ros_package, find_ros_packages
from pytest_ldos.scenario.ros2 import Ros2Spec
from pytest_ldos.scenario.words import Simulation

GAZEBO_PACKAGES: Final = ("ros_gz_sim", "ros_gz_bridge", "gz_ros2_control", "ldos_gz_probe")


def find_launch_file(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Finds a launch file by its path, or as ``PACKAGE/FILE`` anywhere in the package's share folder.

    Args:
        environment: environment whose packages are searched; ours by default.

    Raises:
        ConfigurationError: there is none; names the places searched.
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
