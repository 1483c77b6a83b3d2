"""Versions of the project, and the one named by ``--ldos-base PATH_OR_REV``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.order import Role
from pytest_ldos.host.checkout import CHANGED, abbreviate, ask_git, describe_commit, top_of_checkout
from pytest_ldos.robot.stack.installation import OURS, Installation
from pytest_ldos.scenario.settings import SETTINGS_FILES

INTERPRETERS: Final = (".venv/bin/python", "bin/python")
"""Paths of the interpreter in a checkout and in an environment."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two interleaved versions.

    Attributes:
        name: for display, as in ``base main (0123456789ab)``.
        commit: commit of the project under test; empty if unknown.
        project: the folder with its settings; ``None`` if it has none of its own.
        packages: of its workspace, where that was built here.
    """

    role: Role
    name: str
    commit: str
    installation: Installation
    project: Path | None = None
    packages: frozenset[str] | None = None

    def is_same(self, other: Version) -> bool:
        """True if both are known to be one version, as in an A/A comparison."""
        return self.is_same_commit(other) or self.installation == other.installation

    def is_same_commit(self, other: Version) -> bool:
        """True if both are one commit without changes."""
        return bool(self.commit) and self.commit == other.commit and not self.commit.endswith(CHANGED)


@dataclass(frozen=True)
class Revision:
    """A revision of the project, without an environment.

    Attributes:
        text: as given by the user.
        commit: abbreviated.
        checkout: the user's checkout, which contains the revision.
        project: the project's folder in a checkout, relative to its top.
    """

    text: str
    commit: str
    checkout: Path
    project: Path


def head_version(root: Path) -> Version:
    """The version that this process runs in."""
    commit = describe_commit(root)
    return Version(role=Role.HEAD, name=f"head ({commit})" if commit else "head", commit=commit, installation=OURS)


def base_version(name: str, *, commit: str, python: Path, project: Path | None = None) -> Version:
    """A base version with an environment of its own."""
    is_ours = python.absolute() == Path(sys.executable).absolute()
    installation = OURS if is_ours else Installation(str(python.absolute()))
    return Version(role=Role.BASE, name=f"base {name}", commit=commit, installation=installation, project=project)


def find_base(text: str, *, folder: Path, root: Path) -> Revision | Version:
    """The base of the embedded stack named by `text`: a folder with an environment, or a revision that needs one.

    Raises:
        ConfigurationError: see `resolve_base`; also for a folder without an environment.
    """
    found = resolve_base(text, folder=folder, root=root)
    return found if isinstance(found, Revision) else _version_in(found, text, root)


def resolve_base(text: str, *, folder: Path, root: Path) -> Revision | Path:
    """The revision or the folder named by `text`.

    Args:
        folder: folder that relative paths start from.
        root: root of the project, whose repository contains the revisions.

    Raises:
        ConfigurationError: neither, or both.
    """
    place = (folder / Path(text).expanduser()).resolve()
    revision = find_revision(text, root)
    if not place.is_dir():
        if revision is None:
            raise _unknown(text, root)
        return revision
    if revision is not None and not text.startswith((".", "/", "~")):
        raise ConfigurationError(
            f"--ldos-base {text} is a folder and a revision", remedy=f"write ./{text} for the folder, or a commit"
        )
    return place


def find_revision(text: str, root: Path) -> Revision | None:
    """A revision of the repository that `root` lies in; ``None`` if there is none of this name."""
    commit = ask_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    top = top_of_checkout(root)
    if not commit or top is None:
        return None
    return Revision(text, abbreviate(commit, root), top, root.resolve().relative_to(top.resolve()))


def _unknown(text: str, root: Path) -> ConfigurationError:
    if top_of_checkout(root) is None:
        return ConfigurationError(
            f"--ldos-base {text}: there is no such folder, and {root} is in no git checkout that could know a revision",
            remedy="name a checkout or environment of the version to compare with",
        )
    return ConfigurationError(
        f"--ldos-base {text}: there is neither a folder nor a revision of this name",
        remedy="name a commit, tag or branch that `git rev-parse` knows here (git fetch may be missing), or a folder",
    )


def _version_in(place: Path, text: str, root: Path) -> Version:
    python = next((place / each for each in INTERPRETERS if (place / each).is_file()), None)
    if python is None:
        raise ConfigurationError(
            f"--ldos-base {text}: the folder has no environment ({' or '.join(INTERPRETERS)})",
            remedy="make one there, or name the revision, whose environment is then made for you",
        )
    commit = commit_in(place)
    name = f"{text} ({commit})" if commit else text
    return base_version(name, commit=commit, python=python, project=project_in(place, root))


def commit_in(place: Path) -> str:
    """The commit of a folder that is a checkout; empty if it is none."""
    return describe_commit(place) if _is_checkout(place) else ""


def _is_checkout(place: Path) -> bool:
    top = top_of_checkout(place)
    return top is not None and top.resolve() == place


def project_in(place: Path, root: Path) -> Path | None:
    """The project's folder within `place`: at the relative path that `root` has in its own checkout, or at the top."""
    top, is_checkout = top_of_checkout(root), _is_checkout(place)
    below = place / root.resolve().relative_to(top.resolve()) if is_checkout and top is not None else place
    folders = [each for each in (below, place) if any((each / name).is_file() for name in SETTINGS_FILES)]
    return folders[0] if folders else place if is_checkout else None
