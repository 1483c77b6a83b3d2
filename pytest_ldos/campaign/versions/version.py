"""Versions of the project, and the store of their environments and builds.

Each has a separate folder and lock, and is complete once it has a note with its inputs. Only the few most recently used
ones are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.base.files import write_atomically, writing
from pytest_ldos.base.text import listed
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
from pytest_ldos.host.kept import KeptTree
from pytest_ldos.robot.stack.protocol import OURS, Installation
from pytest_ldos.scenario.options import SETTINGS_FILES

_COMMIT: Final = re.compile("[0-9a-f]{4,64}")

SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True)
class Version:
    """One of two interleaved versions."""

    role: Role
    name: str  # display name, as in ``base main (0123456789ab)``
    commit: str  # commit of the project under test; empty if unknown
    installation: Installation
    project: Path | None = None  # the folder with its settings, if any
    packages: frozenset[str] | None = None  # packages of its workspace, if that was built here
    commit_unknown: str = ""  # git's reason why it is unknown

    def is_same(self, other: Version) -> bool:
        """True if both are known to be the same version, as in an A/A comparison."""
        return self.is_same_commit(other) or self.installation == other.installation

    def is_same_commit(self, other: Version) -> bool:
        return bool(self.commit) and self.commit == other.commit and not self.commit.endswith(CHANGED)


@dataclass(frozen=True)
class Revision:
    """A revision of the project, without an environment."""

    text: str  # as given by the user
    commit: str  # abbreviated
    checkout: Path  # the user's checkout, which contains the revision
    project: Path  # the project's folder in a checkout, relative to its top

    @property
    def name(self) -> str:
        """The commit, preceded by the user's name for it if that differs."""
        is_commit = _COMMIT.fullmatch(self.text) and (
            self.commit.startswith(self.text) or self.text.startswith(self.commit)
        )
        return self.commit if is_commit else f"{self.text} ({self.commit})"


def head_version(root: Path) -> Version:
    """The version of this process."""
    commit, unknown = commit_of(root)
    name = f"head ({commit})" if commit else "head"
    return Version(role=Role.HEAD, name=name, commit=commit, installation=OURS, commit_unknown=unknown)


def describe_packages(base: Version, head: Version) -> tuple[str, ...]:
    """A note on packages of only one of two built versions."""
    if base.packages is None or head.packages is None or base.packages == head.packages:
        return ()
    alone = {"base": base.packages - head.packages, "head": head.packages - base.packages}
    named = "; ".join(f"only {role} has {listed(sorted(names), SHOWN)}" for role, names in alone.items() if names)
    return (f"packages of the workspaces differ: {named}",)


def describe_distros(base: Version, head: Version) -> tuple[str, ...]:
    environments = (each.installation.environment for each in (head, base))
    ours, theirs = ((os.environ if each is None else each).get("ROS_DISTRO", "") for each in environments)
    if not ours or not theirs or ours == theirs:
        return ()
    return (f"the base runs on ROS 2 {theirs}, head on {ours}: what differs may be the distribution",)


def version_of(
    role: Role, name: str, *, commit: str, python: Path, project: Path | None = None, commit_unknown: str = ""
) -> Version:
    is_ours = python.absolute() == Path(sys.executable).absolute()
    return Version(
        role=role,
        name=f"{role} {name}",
        commit=commit,
        installation=OURS if is_ours else Installation(str(python.absolute())),
        project=project,
        commit_unknown=commit_unknown,
    )


def find_revision(text: str, root: Path) -> Revision | None:
    """A revision of the repository of `root`, if there is one of this name."""
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
    """The version of the embedded stack named by `text`: with an environment, or a revision that needs one."""
    if role is Role.BASE:
        found = resolve_base(text, folder=folder, root=root)
        return found if isinstance(found, Revision) else _version_in(found, text, root)
    revision = resolve_head(text, folder=folder, root=root)
    # It is that of this process if the checkout is at this commit, without changes, and has this environment.
    is_own = Path(sys.prefix).resolve().is_relative_to(revision.checkout.resolve())
    if not is_own or revision.commit != describe_commit(revision.checkout):
        return revision
    return Version(role=role, name=f"{role} {revision.name}", commit=revision.commit, installation=OURS)


def resolve_head(text: str, *, folder: Path, root: Path) -> Revision:
    """The revision named by `text`; raises `ConfigurationError` if that is a folder (below `folder`), or unknown."""
    if (revision := find_revision(text, root)) is not None:
        return revision
    if (folder / Path(text).expanduser()).is_dir():
        raise ConfigurationError(
            f"--ldos-head {text} is a folder: only the stack of a revision is measured in place of this checkout's",
            remedy="commit its files and name the commit, or run pytest in it",
        )
    raise _unknown(Role.HEAD, text, root)


def resolve_base(text: str, *, folder: Path, root: Path) -> Revision | Path:
    """A revision or a folder (below `folder`); raises `ConfigurationError` if `text` names neither, or both."""
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


BASES: Final = "bases"
CHECKOUT: Final = "checkout"
BUILT: Final = "workspace-"
"""Name prefix of built workspaces."""

KEPT: Final = 5
"""Number of kept environments, and of kept workspaces; each takes hundreds of megabytes."""

_NOTE: Final = "made.json"
_LOOK_EVERY_S: Final = 0.5

Announce = Callable[[str], None]


def digest_of(recipe: Mapping[str, object], *, digits: int = 8) -> str:
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:digits]


@contextmanager
def locked(folder: Path, announce: Announce) -> Iterator[int]:
    """Locks a folder against other runs that fill or remove it; waits for them.

    A process that inherits the yielded descriptor also holds the lock.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock_of(folder).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("waiting: another run prepares the same version")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


@contextmanager
def kept(
    folder: Path,
    name: str,
    *,
    checkout: Path,
    announce: Announce,
    is_whole: Callable[[], bool],
    make: Callable[[int], None],
) -> Iterator[int]:
    """Yields the lock of a complete folder, which is created if necessary.

    Args:
        is_whole: checks the folder's content.
        make: fills the empty folder and writes its note; receives the lock.

    Raises:
        PreparationFailed: the version's files cannot be written or removed; also errors of `make`.
    """
    store = folder.parent
    try:
        with locked(folder, announce) as lock:
            if not is_whole():
                if folder.exists():
                    announce(f"removing {folder.name}, made for {name}: it is unfinished or damaged")
                    remove(folder, checkout=checkout)
                with writing(folder):
                    folder.mkdir(parents=True)
                make(lock)
            os.utime(folder / _NOTE)  # marks it as most recently used
            yield lock
        remove_unused(store, checkout=checkout, announce=announce)
    except OSError as error:
        remedy = f"let files be written and removed in {store}"
        raise PreparationFailed(f"{name} cannot be built: {error}", remedy=remedy) from None


def read_note(folder: Path) -> Mapping[str, Any]:
    """The inputs of a folder; empty if it is incomplete."""
    with contextlib.suppress(OSError, ValueError):
        note: object = json.loads((folder / _NOTE).read_text("utf-8"))
        return note if isinstance(note, dict) else {}
    return {}


def write_note(folder: Path, note: Mapping[str, object]) -> None:
    """Marks a folder as complete, and flushes the note to disk; raises as `writing`."""
    write_atomically(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def remove(folder: Path, *, checkout: Path) -> None:
    """Removes an environment and its worktree of the user's `checkout`, or a built workspace; raises `OSError`."""
    (folder / _NOTE).unlink(missing_ok=True)  # first, so that a partly removed folder is not complete
    ask_git(checkout, "worktree", "remove", "--force", str(folder / CHECKOUT))
    shutil.rmtree(folder)
    ask_git(checkout, "worktree", "prune")


def remove_unused(store: Path, *, checkout: Path, announce: Announce) -> None:
    """Removes all but the `KEPT` most recently used environments and workspaces, except locked ones."""
    found = sorted(((_used_at_ns(each), each) for each in store.iterdir() if each.is_dir()), reverse=True)
    built = [each for each in found if each[1].name.startswith(BUILT)]
    for used_at_ns, folder in [*[each for each in found if each not in built][KEPT:], *built[KEPT:]]:
        with _lock_of(folder).open("a") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _used_at_ns(folder) != used_at_ns:  # another run has just used or removed it
                continue
            what = "the built" if folder.name.startswith(BUILT) else "the environment of"
            announce(f"removing {what} {folder.name}: only the {KEPT} that were used last are kept")
            try:
                remove(folder, checkout=checkout)
            except OSError as error:
                announce(f"{folder} cannot be removed: {error}")


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _used_at_ns(folder: Path) -> int:
    """Time of last use; for an incomplete folder, its begin; -1 if there is none."""
    for file in (folder / _NOTE, folder):
        with contextlib.suppress(OSError):
            return file.stat().st_mtime_ns
    return -1


def run_step(
    command: Sequence[str],
    *,
    folder: Path,
    log: Path,
    environment: Mapping[str, str],
    holds: Sequence[int],
    describe: Callable[[float], Iterable[str]],
    announce: Announce,
) -> int:
    """Runs a command in a folder and returns its exit code. It ends, with all its children, if this process ends.

    Args:
        log: file of the command line and its output.
        environment: replaces the environment of this process.
        holds: descriptors, such as a lock's, that stay open until all its processes have ended.
        describe: returns the texts to announce after some seconds; repeated texts are not announced.
    """
    with writing(log), log.open("a", encoding="utf-8") as file:
        file.write(f"$ {shlex.join(command)}\n")
    unset = [f"--unset={name}" for name in sorted(set(os.environ) - set(environment))]
    to_the_log = ("sh", "-c", 'exec "$@" >&2', "sh")
    whole = [*to_the_log, "env", *unset, "-C", str(folder), *command]
    tree = KeptTree("setup", whole, log=log, environment=environment, holds=holds)
    began_s, shown, code = time.monotonic(), "", None
    try:
        while code is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = tree.child.process.wait(_LOOK_EVERY_S)
            for text in describe(time.monotonic() - began_s):
                if text != shown:
                    announce(shown := text)
        return code
    finally:
        tree.stop()
