"""Versions of the project: its commits, and what is installed of them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.campaign.order import Role
from pytest_ldos.host.checkout import CHANGED, abbreviate, ask_git, commit_of, describe_commit, top_of_checkout
from pytest_ldos.robot.stack.installation import OURS, Installation
from pytest_ldos.scenario.project import SETTINGS_FILES

_COMMIT: Final = re.compile("[0-9a-f]{4,64}")


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two interleaved versions.

    Attributes:
        name: for display, as in ``base main (0123456789ab)``.
        commit: commit of the project under test; empty if unknown.
        commit_unknown: git's words on why it is.
        project: the folder with its settings; ``None`` if it has none of its own.
        packages: of its workspace, where that was built here.
    """

    role: Role
    name: str
    commit: str
    installation: Installation
    project: Path | None = None
    packages: frozenset[str] | None = None
    commit_unknown: str = ""

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

    @property
    def name(self) -> str:
        """The commit, preceded by the name that the user gave if that is another one."""
        is_commit = _COMMIT.fullmatch(self.text) and (
            self.commit.startswith(self.text) or self.text.startswith(self.commit)
        )
        return self.commit if is_commit else f"{self.text} ({self.commit})"

    @property
    def is_checked_out(self) -> bool:
        """True if the user's checkout is at this commit, without changes."""
        return self.commit == describe_commit(self.checkout)


def head_version(root: Path) -> Version:
    """The version that this process runs in."""
    commit, unknown = commit_of(root)
    name = f"head ({commit})" if commit else "head"
    return Version(role=Role.HEAD, name=name, commit=commit, installation=OURS, commit_unknown=unknown)


def version_of(
    role: Role, name: str, *, commit: str, python: Path, project: Path | None = None, commit_unknown: str = ""
) -> Version:
    """A version with an environment of its own."""
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
    """A revision of the repository that `root` lies in; ``None`` if there is none of this name."""
    commit = ask_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    top = top_of_checkout(root)
    if not commit or top is None:
        return None
    return Revision(text, abbreviate(commit, root), top, root.resolve().relative_to(top.resolve()))


def commit_in(place: Path) -> tuple[str, str]:
    """The commit of a folder that is a checkout, and why it is unknown (see `commit_of`); both empty if it is none."""
    return commit_of(place) if _is_checkout(place) or (place / ".git").exists() else ("", "")


def _is_checkout(place: Path) -> bool:
    top = top_of_checkout(place)
    return top is not None and top.resolve() == place


def project_in(place: Path, root: Path) -> Path | None:
    """The project's folder within `place`: at the relative path that `root` has in its own checkout, or at the top."""
    top, is_checkout = top_of_checkout(root), _is_checkout(place)
    below = place / root.resolve().relative_to(top.resolve()) if is_checkout and top is not None else place
    folders = [each for each in (below, place) if any((each / name).is_file() for name in SETTINGS_FILES)]
    return folders[0] if folders else place if is_checkout else None
