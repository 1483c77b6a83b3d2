"""Converts what is to be launched to entities of a launch description."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ldos.base.errors import ConfigurationError


def entities_of(what: Any, arguments: Mapping[str, str] | None = None) -> list[Any]:
    """Entities of a launch description, of a sequence of actions, or of a launch file.

    Args:
        what: any of these; a file by its path (Python, XML or YAML).
        arguments: for the launch file.

    Raises:
        ConfigurationError: it is none of these, or there is no such file.
    """
    from launch import LaunchDescription, LaunchDescriptionEntity  # noqa: PLC0415 - only where ROS is

    if isinstance(what, str | os.PathLike):
        return [_include(Path(what), arguments or {})]
    if arguments is not None:
        raise ConfigurationError("only a launch file takes arguments", remedy="give its path instead of actions")
    if isinstance(what, LaunchDescription):
        return list(what.entities)
    if isinstance(what, LaunchDescriptionEntity):
        return [what]
    if isinstance(what, Sequence) and all(isinstance(each, LaunchDescriptionEntity) for each in what):
        return list(what)
    raise ConfigurationError(
        f"{what!r} cannot be launched",
        remedy="give a LaunchDescription, a list of actions, or the path of a launch file",
    )


def _include(file: Path, arguments: Mapping[str, str]) -> Any:
    from launch.actions import IncludeLaunchDescription  # noqa: PLC0415
    from launch.launch_description_sources import AnyLaunchDescriptionSource  # noqa: PLC0415

    if not file.is_file():
        raise ConfigurationError(f"there is no launch file {file}", remedy="give its path from the current directory")
    return IncludeLaunchDescription(AnyLaunchDescriptionSource(str(file)), launch_arguments=list(arguments.items()))
