"""Versions of the project: commits, installations, and their resolution from options."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.order import Role
from pytest_ldos.host.checkout import (
    CHANGED,
    abbreviate,
    ask_git,
    commit_of,
    describe_commit,
    top_of_checkout,
    why_unknown,
)
from pytest_ldos.robot.stack.protocol import OURS, Installation
from pytest_ldos.scenario.project import SETTINGS_FILES

_COMMIT: Final = re.compile("[0-9a-f]{4,64}")


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two interleaved versions.

    Attributes:
        name: display name, as in ``base main (0123456789ab)``.
        commit: commit of the project under test; empty if unknown.
        commit_unknown: git's reason why it is unknown.
        project: the folder with its settings; ``None`` if it has none.
        packages: packages of its workspace, if that was built here.
    """

    role: Role
    name: str
    commit: str
    installation: Installation
    project: Path | None = None
    packages: frozenset[str] | None = None
    commit_unknown: str = ""

    def is_same(self, other: Version) -> bool:
        """True if both are known to be the same version, as in an A/A comparison."""
        return self.is_same_commit(other) or self.installation == other.installation

    def is_same_commit(self, other: Version) -> bool:
        """True if both are the same commit without changes."""
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

    @property
    def name(self) -> str:
        """The commit, preceded by the user's name for it if that differs."""
        is_commit = _COMMIT.fullmatch(self.text) and (
            self.commit.startswith(self.text) or self.text.startswith(self.commit)
        )
        return self.commit if is_commit else f"{self.text} ({self.commit})"

    @property
    def is_checked_out(self) -> bool:
        """True if the user's checkout is at this commit, without changes."""
        return self.commit == describe_commit(self.checkout)


def head_version(root: Path) -> Version:
    """The version of this process."""
    commit, unknown = commit_of(root)
    name = f"head ({commit})" if commit else "head"
    return Version(role=Role.HEAD, name=name, commit=commit, installation=OURS, commit_unknown=unknown)


def version_of(
    role: Role, name: str, *, commit: str, python: Path, project: Path | None = None, commit_unknown: str = ""
) -> Version:
    """A version with its own environment."""
    is_ours = python.absolute() == Path(sys.executable).absolute()
    installation = OURS if is_ours else Installation(str(python.absolute()))
    return Version(
        role=role,
        name=f"{role} {name}",
        commit=commit,
        installation=installation,
        project=project,
        commit_unknown=commit_unknown,
    )


def find_revision(text: str, root: Path) -> Revision | None:
    """A revision of the repository of `root`; ``None`` if there is none of this name."""
    commit = ask_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    top = top_of_checkout(root)
    if not commit or top is None:
        return None
    return Revision(text, abbreviate(commit, root), top, root.resolve().relative_to(top.resolve()))


def commit_in(place: Path) -> tuple[str, str]:
    """The commit of a checkout, or the reason why it is unknown (see `commit_of`); both empty for another folder."""
    return commit_of(place) if _is_checkout(place) or (place / ".git").exists() else ("", "")


def _is_checkout(place: Path) -> bool:
    top = top_of_checkout(place)
    return top is not None and top.resolve() == place


def project_in(place: Path, root: Path) -> Path | None:
    """The project's folder within `place`: at the relative path of `root` in its checkout, or at the top."""
    top, is_checkout = top_of_checkout(root), _is_checkout(place)
    below = place / root.resolve().relative_to(top.resolve()) if is_checkout and top is not None else place
    folders = [each for each in (below, place) if any((each / name).is_file() for name in SETTINGS_FILES)]
    return folders[0] if folders else place if is_checkout else None


INTERPRETERS: Final = (".venv/bin/python", "bin/python")
"""Paths of the interpreter in a checkout and in an environment."""


def find_version(role: Role, text: str, *, folder: Path, root: Path) -> Revision | Version:
    """The version of the embedded stack named by `text`: with an environment, or a revision that needs one.

    Raises:
        ConfigurationError: see `resolve_base` and `resolve_head`; also for a base without an environment.
    """
    if role is Role.BASE:
        found = resolve_base(text, folder=folder, root=root)
        return found if isinstance(found, Revision) else _version_in(found, text, root)
    revision = resolve_head(text, folder=folder, root=root)
    if not (revision.is_checked_out and _is_own_environment(revision)):
        return revision
    return Version(role=role, name=f"{role} {revision.name}", commit=revision.commit, installation=OURS)


def _is_own_environment(revision: Revision) -> bool:
    """True if the environment of this process belongs to the checkout; another checkout has another stack."""
    return Path(sys.prefix).resolve().is_relative_to(revision.checkout.resolve())


def resolve_head(text: str, *, folder: Path, root: Path) -> Revision:
    """The revision named by `text`, whose stack is measured instead of the checkout's.

    Args:
        folder: base folder of relative paths.
        root: root of the project, whose repository contains the revisions.

    Raises:
        ConfigurationError: it is a folder, or unknown.
    """
    revision = find_revision(text, root)
    if revision is not None:
        return revision
    if (folder / Path(text).expanduser()).is_dir():
        raise ConfigurationError(
            f"--ldos-head {text} is a folder: only the stack of a revision is measured in place of this checkout's",
            remedy="commit its files and name the commit, or run pytest in it",
        )
    raise _unknown(Role.HEAD, text, root)


def resolve_base(text: str, *, folder: Path, root: Path) -> Revision | Path:
    """The revision or the folder named by `text`.

    Args:
        folder: base folder of relative paths.
        root: root of the project, whose repository contains the revisions.

    Raises:
        ConfigurationError: it is neither, or both.
    """
    place = (folder / Path(text).expanduser()).resolve()
    revision = find_revision(text, root)
    if not place.is_dir():
        if revision is None:
            raise _unknown(Role.BASE, text, root)
        return revision
    if revision is not None and not text.startswith((".", "/", "~")):
        raise ConfigurationError(
            f"--ldos-base {text} is a folder and a revision", remedy=f"write ./{text} for the folder, or a commit"
        )
    return place


def _unknown(role: Role, text: str, root: Path) -> ConfigurationError:
    is_base, words = role is Role.BASE, why_unknown(text, root)
    if top_of_checkout(root) is None:
        no_folder = "there is no such folder, and " if is_base else ""
        otherwise = "name a checkout or environment of the version to compare with"
        return ConfigurationError(
            f"--ldos-{role} {text}: {no_folder}git knows no revision in {root}: {words.reason}",
            remedy=words.remedy or (otherwise if is_base else "run pytest in a git checkout of the project"),
        )
    why = f": {words.reason}" if words.reason else ""
    known = "a commit, tag or branch that `git rev-parse` knows here (git fetch may be missing)"
    return ConfigurationError(
        f"--ldos-{role} {text}: there is {'neither a folder nor a' if is_base else 'no'} revision of this name{why}",
        remedy=words.remedy or f"name {known}{', or a folder' if is_base else ''}",
    )


def _version_in(place: Path, text: str, root: Path) -> Version:
    python = next((place / each for each in INTERPRETERS if (place / each).is_file()), None)
    if python is None:
        raise ConfigurationError(
            f"--ldos-base {text}: the folder has no environment ({' or '.join(INTERPRETERS)})",
            remedy="make one there, or name the revision, whose environment is then made for you",
        )
    commit, unknown = commit_in(place)
    name = f"{text} ({commit})" if commit else text
    project = project_in(place, root)
    return version_of(Role.BASE, name, commit=commit, python=python, project=project, commit_unknown=unknown)
