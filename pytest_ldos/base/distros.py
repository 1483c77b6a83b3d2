"""Supported ROS 2 distributions, with the differences between them.

``.ci/ros2-setup`` and the workflows repeat these values, because they cannot import this module; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Distro:
    """A ROS 2 distribution.

    Attributes:
        name: name as in ``ROS_DISTRO`` and in package names.
        ubuntu: version of Ubuntu with apt packages.
        codename: codename of that version.
        python: version of Python.
        gazebo: release of Gazebo that it is paired with.
        rmw: its default middleware.
        pytest: requirement for pytest, compatible with its pytest plugins (launch_pytest, launch_testing).
        was_measured: True if this project was tested on it with an arm.

    Reference: REP 2000.
    """

    name: str
    ubuntu: str
    codename: str
    python: str
    gazebo: str
    rmw: str
    pytest: str
    was_measured: bool = True

    @property
    def title(self) -> str:
        """``ROS 2 Jazzy``."""
        return f"ROS 2 {self.name.capitalize()}"

    @property
    def messages(self) -> str:
        """Name of its message definitions in rosbags."""
        return f"ros2_{self.name}"


JAZZY: Final = Distro(
    name="jazzy",
    ubuntu="24.04",
    codename="noble",
    python="3.12",
    gazebo="harmonic",
    rmw="rmw_fastrtps_cpp",
    pytest="pytest>=8.0,<8.4",
)

LYRICAL: Final = Distro(
    name="lyrical",
    ubuntu="26.04",
    codename="resolute",
    python="3.14",
    gazebo="jetty",
    rmw="rmw_fastrtps_cpp",
    pytest="pytest>=8.0",
    was_measured=False,
)

DISTROS: Final[Mapping[str, Distro]] = {each.name: each for each in (JAZZY, LYRICAL)}
"""By name."""

DEFAULT: Final = JAZZY
"""The distribution that is installed and named in remedies if none is found."""
