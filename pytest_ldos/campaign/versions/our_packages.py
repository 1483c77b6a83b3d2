"""Builds the ROS packages that pytest-ldos brings, for stacks that are not its own."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

from pytest_ldos.base.carried import find_carried
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.campaign.versions.build import Build, build_workspace
from pytest_ldos.campaign.versions.kept import Announce
from pytest_ldos.campaign.versions.underlay import find_underlay
from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.host.ros import find_distro, find_ros_package
from pytest_ldos.host.user_folders import cache_folder
from pytest_ldos.robot.stack.ros2.installed import SEEDED_PLANNER
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StimulusKind

USUAL: Final = ("ldos_guard", "ldos_load")
"""Packages that every stack may load: the loads that are ROS nodes."""

_PANDA: Final = ("ldos_bringup", "ldos_panda_config")


def needed_by(stack: StackSpec) -> tuple[str, ...]:
    """Packages that a stack needs: a user's own, or the Panda."""
    is_panda = stack.ros2.is_panda
    client = ("ldos_goal_client",) if stack.stimulus is StimulusKind.MOVE_GROUP else ()
    probe = ("ldos_control_probe",) if stack.ros2.controllers else ()
    planner = (SEEDED_PLANNER,) if is_panda or stack.ros2.seeded_planner else ()
    return (*client, *probe, *USUAL, *planner, *(_PANDA if is_panda else ()))


def build_packages(names: Collection[str], *, announce: Announce) -> Path | None:
    """Builds packages with what they need of the workspace, over what is sourced; returns their setup script.

    Packages in a sourced prefix are left out; ``None`` if all are.

    Raises:
        ConfigurationError: a package is unknown, or no ROS 2 is sourced.
        PreparationFailed: names the package that failed, and has the end of its log.
    """
    home = find_workspace()
    workspace = Workspace(home.parent, (home.name,))
    refuse_unknown(names, workspace.packages(), "ROS package of pytest-ldos")
    distro = find_distro()
    if distro is None or not distro.is_sourced:
        raise ConfigurationError("no ROS 2 is sourced", remedy="source its setup script, then do this again")
    missing = tuple(sorted(each for each in set(names) if find_ros_package(each) is None))
    if not missing:
        return None
    store = cache_folder(os.environ) / "pytest-ldos/ros-packages"
    build = Build(
        name="the ROS packages of pytest-ldos",
        workspace=workspace,
        sources=workspace.digest(store),
        spec=BaseSpec(packages_up_to=missing),
        underlay=find_underlay([store], (), store=store),
        store=store,
    )
    return build_workspace(build, checkout=store, announce=announce).prefix / "local_setup.sh"


def find_workspace() -> Path:
    """The workspace's folder: in the installed package, or in the checkout that is installed in place."""
    return find_carried("ros_ws")
