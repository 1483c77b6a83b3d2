"""Versions that the options ``--ldos-base PATH_OR_REV`` and ``--ldos-head REV`` name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import (
    Revision,
    Version,
    commit_in,
    find_revision,
    project_in,
    version_of,
)
from pytest_ldos.host.checkout import top_of_checkout, why_unknown
from pytest_ldos.robot.stack.installation import OURS

INTERPRETERS: Final = (".venv/bin/python", "bin/python")
"""Paths of the interpreter in a checkout and in an environment."""


def find_version(role: Role, text: str, *, folder: Path, root: Path) -> Revision | Version:
    """The version of the embedded stack named by `text`: one with an environment, or a revision that needs one.

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
    """True if the environment of this process lies in the checkout: that of another checkout has another stack."""
    return Path(sys.prefix).resolve().is_relative_to(revision.checkout.resolve())


def resolve_head(text: str, *, folder: Path, root: Path) -> Revision:
    """The revision named by `text`, whose stack is measured in place of that of the checkout.

    Args:
        folder: folder that relative paths start from.
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
        folder: folder that relative paths start from.
        root: root of the project, whose repository contains the revisions.

    Raises:
        ConfigurationError: neither, or both.
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
