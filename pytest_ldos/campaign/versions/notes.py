"""Notes on the versions of a ROS 2 stack that stand beside the verdict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.units import listed
from pytest_ldos.campaign.versions.stale import find_stale
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.campaign.versions.workspace import Workspace

_SHOWN: Final = 5


def describe_packages(base: Version, head: Version) -> tuple[str, ...]:
    """A note on packages that only one of two built versions has."""
    if base.packages is None or head.packages is None or base.packages == head.packages:
        return ()
    alone = {"base": base.packages - head.packages, "head": head.packages - base.packages}
    named = "; ".join(f"only {role} has {listed(sorted(names), _SHOWN)}" for role, names in alone.items() if names)
    return (f"packages of the workspaces differ: {named}",)


def describe_distros(base: Version, head: Version) -> tuple[str, ...]:
    """A note where the versions run on different distributions of ROS 2."""
    ours, theirs = (_distro(each) for each in (head, base))
    if not ours or not theirs or ours == theirs:
        return ()
    return (f"the base runs on ROS 2 {theirs}, head on {ours}: what differs may be the distribution",)


def describe_stale(root: Path, folders: Sequence[str]) -> tuple[str, ...]:
    """A note on packages of the project's workspaces that changed after they were installed."""
    workspace = Workspace(root, tuple(each for each in folders if (root / each).is_dir()))
    stale = find_stale(workspace)
    if not stale:
        return ()
    remedy = "build the workspace, or measure with --ldos-build"
    return (
        f"the sources of {listed(sorted(stale), _SHOWN)} are newer than what is installed and was measured: {remedy}",
    )


def _distro(version: Version) -> str:
    environment = version.installation.environment
    return (os.environ if environment is None else environment).get("ROS_DISTRO", "")
