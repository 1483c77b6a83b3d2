"""Availability of ROS 2's `launch`."""

from __future__ import annotations

import importlib.util

from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import ros_python_available

_NEEDED = ("launch", "lark", "yaml", "osrf_pycommon", "packaging")
"""`launch` and the modules that it imports."""


def launch_available() -> Availability:
    """Checks that this interpreter can import `launch`, without importing it."""
    if all(_is_here(name) for name in _NEEDED):
        return Availability(True)
    ros = ros_python_available()
    return find_modules(_NEEDED, extra="ros2") if ros.ok else ros


def _is_here(name: str) -> bool:
    """True if it is a module, not a folder of the project with that name."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None
