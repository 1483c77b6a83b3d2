"""Whether `launch` of ROS 2 can be used here."""

from __future__ import annotations

import importlib.util

from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import ros_python_available

_NEEDED = ("launch", "lark", "yaml", "osrf_pycommon", "packaging")
"""`launch`, and what it imports."""


def launch_available() -> Availability:
    """Whether this interpreter can import `launch` (it is not imported); nothing else of ROS is needed."""
    if all(_is_here(name) for name in _NEEDED):
        return Availability(True)
    ros = ros_python_available()
    return find_modules(_NEEDED, extra="ros2") if ros.ok else ros


def _is_here(name: str) -> bool:
    """Whether it is a module; a folder of that name in a project is none."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None
