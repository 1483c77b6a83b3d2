"""The ROS 2 workspaces of a project: their folders, and the digest of their sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.campaign.versions.kept import digest_of
from pytest_ldos.campaign.versions.version import Revision
from pytest_ldos.host.checkout import ask_git
from pytest_ldos.host.file_digests import FileDigests, Skip

_META: Final = "colcon.meta"
_MANIFEST: Final = "package.xml"
_NAME: Final = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
_IGNORED_BY_COLCON: Final = "COLCON_IGNORE"
_OF_COLCON: Final = frozenset({"build", "install", "log"})
_ELSEWHERE: Final = re.compile(r"(?m)^1[26]0000 ")
"""Entries of a git tree whose content is not in it: links and submodules."""


@dataclass(frozen=True)
class Workspace:
    """Workspaces of a project.

    Attributes:
        project: the project's folder.
        folders: their folders below it, relative.
        beside: folder of the checkout that they lie in, where that was made for them; ``None`` for the user's own.
    """

    project: Path
    folders: tuple[str, ...]
    beside: Path | None = None

    @property
    def places(self) -> list[Path]:
        return [self.project / each for each in self.folders]

    def scratch(self, folder: Path) -> Path:
        """The folder for a build's own files: as far from the sources in each checkout, for ccache; else `folder`."""
        return self.beside or folder

    def packages(self) -> set[str]:
        """Names of the packages in their manifests."""
        return {name for file in self.manifests() if (name := name_in(file))}

    def metas(self) -> list[Path]:
        """Files with settings of colcon for single packages, of the project and of each workspace."""
        found = (place / _META for place in dict.fromkeys([self.project, *self.places]))
        return [each for each in found if each.is_file()]

    def manifests(self) -> Iterator[Path]:
        """The manifests of all packages in the workspaces' sources."""
        for place in self.places:
            is_left_out = _made_in(place)
            for folder, folders, files in os.walk(place, followlinks=True):
                here = Path(folder)
                folders[:] = [
                    each for each in folders if not each.startswith(".") and not is_left_out(str(here / each), True)
                ]
                if _MANIFEST in files:
                    folders.clear()
                    yield here / _MANIFEST

    def require(self, name: str) -> None:
        """Checks that all folders are there.

        Raises:
            PreparationFailed: names the version and the folder.
        """
        for folder in self.folders:
            if not (self.project / folder).is_dir():
                raise PreparationFailed(
                    f"{name} cannot be built: it has no workspace {folder}",
                    remedy="name a version that has it in [tool.ldos.base] workspace, or have setup make it there",
                )

    def digest(self, store: Path) -> dict[str, object]:
        """Digests of the content of all folders, without what colcon and hidden folders at their tops hold.

        Args:
            store: keeps the digests of files that were read.

        Raises:
            OSError: a file cannot be read.
            NotWritten, ConfigurationError: see `FileDigests.save`.
        """
        digests = FileDigests(store / f"digests-sources-{digest_of({'path': str(self.project)})}.json")
        places = zip(self.folders, self.places, strict=True)
        found: dict[str, object] = {each: digests.of_folder(place, skip=_made_in(place)) for each, place in places}
        digests.save()
        return found


def name_in(manifest: Path) -> str:
    """Name of the package in a manifest; empty if it has none."""
    found = _NAME.search(manifest.read_text("utf-8", errors="replace"))
    return found.group(1) if found else ""


def tree_digest(revision: Revision, folders: Iterable[str]) -> dict[str, object] | None:
    """Git's own digests of folders in a revision; ``None`` where the revision does not hold all of their content."""
    found: dict[str, object] = {}
    for folder in folders:
        entries = entries_of(revision, folder)
        if not entries or _ELSEWHERE.search(entries):
            return None
        found[folder] = digest_of({"entries": entries}, digits=64)
    return found


def entries_of(revision: Revision, folder: str) -> str:
    """Mode, digest and name of all files of a folder in a revision; empty if it has no such folder."""
    path = (revision.project / folder).as_posix()
    name = revision.commit + (":" if path == "." else f":{path}")
    return ask_git(revision.checkout, "ls-tree", "-r", name) or ""


def is_unchanged(project: Path, folders: Iterable[str]) -> bool:
    """True if the folders have no changes since the commit that is checked out, nor new files."""
    changes = ask_git(project, "status", "--porcelain", "--untracked-files=all", "--", *folders)
    return changes == ""


def _made_in(workspace: Path) -> Skip:
    """Recognises what colcon made at the top of a workspace, and hidden folders there, which it does not search."""

    def is_made(path: str, is_folder: bool) -> bool:
        place, name = os.path.split(path)
        if not is_folder or place != str(workspace):
            return False
        return name.startswith(".") or (name in _OF_COLCON and Path(path, _IGNORED_BY_COLCON).exists())

    return is_made
