"""Availability of our programs for a stack's middleware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.ros import find_ros_packages
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

_EMBEDDED_PARTS: Final = ("cyclonedds", "rosbags")


def programs_available(stack: StackSpec, package: str, environment: Mapping[str, str] | None = None) -> Availability:
    """Checks Python's over Cyclone DDS for the embedded stack, those of a package of the ROS workspace for ROS 2."""
    if resolve_kind(stack) is StackKind.ROS2:
        return find_ros_packages([package], environment=environment)
    return find_modules(_EMBEDDED_PARTS, extra="embedded")
