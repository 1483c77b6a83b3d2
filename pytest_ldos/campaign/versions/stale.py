"""Packages of a workspace that were changed after they were installed."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_ldos.campaign.versions.workspace import Workspace, name_in
from pytest_ldos.host.ros import find_ros_package


def find_stale(workspace: Workspace) -> list[str]:
    """Names of the packages whose sources are newer than their install, among those that are sourced.

    A package counts as installed when colcon last wrote its own note on it; those that another tool installed are not
    compared.
    """
    found = []
    for manifest in workspace.manifests():
        name = name_in(manifest)
        prefix = find_ros_package(name)
        note = prefix / "share/colcon-core/packages" / name if prefix and name else None
        if note and note.is_file() and _newest_ns(manifest.parent) > note.stat().st_mtime_ns:
            found.append(name)
    return sorted(found)


def _newest_ns(package: Path) -> int:
    """Time of the last change of a package's files; hidden ones and compiled Python files do not count."""
    newest = 0
    for folder, folders, files in os.walk(package):
        folders[:] = [each for each in folders if not each.startswith((".", "__pycache__"))]
        paths = (Path(folder, each) for each in files if not each.startswith("."))
        newest = max([newest, *(path.stat().st_mtime_ns for path in paths if path.exists())])
    return newest
