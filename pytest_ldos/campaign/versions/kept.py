"""Store of what is made for versions: environments of revisions, and built workspaces.

Each lies in a folder of its own, has a lock of its own, and is complete once it has a note that says what it was
made from. Only the few that were used last are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.base.writable import write_atomically, writing
from pytest_ldos.host.checkout import ask_git

BASES: Final = "bases"
CHECKOUT: Final = "checkout"
BUILT: Final = "workspace-"
"""Beginning of the names of built workspaces."""

KEPT: Final = 5
"""Number of environments, and of built workspaces, that are kept; each takes hundreds of megabytes."""

_NOTE: Final = "made.json"
_DIGITS: Final = 8

Announce = Callable[[str], None]


def digest_of(recipe: Mapping[str, object], *, digits: int = _DIGITS) -> str:
    """Digest of everything that something is made from; part of the name of its folder."""
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:digits]


@contextmanager
def locked(folder: Path, announce: Announce) -> Iterator[int]:
    """Locks a folder against other runs that would fill or remove it; waits for them.

    Yields:
        The lock's descriptor: whoever holds it open, too, holds the lock.
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
    """Yields the lock of a folder that is complete; it is made unless it was before.

    Args:
        name: of the version, for messages.
        checkout: the user's checkout.
        is_whole: checks what is in the folder.
        make: fills the empty folder, and writes its note; gets the lock.

    Raises:
        PreparationFailed: names the version whose files cannot be written or removed; also what `make` raises.
    """
    store = folder.parent
    try:
        with locked(folder, announce) as lock:
            if not is_whole():
                _clear(folder, name, checkout, announce)
                make(lock)
            mark_used(folder)
            yield lock
        remove_unused(store, checkout=checkout, announce=announce)
    except OSError as error:
        remedy = f"let files be written and removed in {store}"
        raise PreparationFailed(f"{name} cannot be built: {error}", remedy=remedy) from None


def _clear(folder: Path, name: str, checkout: Path, announce: Announce) -> None:
    """Makes a folder that is empty."""
    if folder.exists():
        announce(f"removing {folder.name}, made for {name}: it is unfinished or damaged")
        remove(folder, checkout=checkout)
    with writing(folder):
        folder.mkdir(parents=True)


def read_note(folder: Path) -> Mapping[str, Any]:
    """Everything that a folder was made from; empty if it is unfinished."""
    with contextlib.suppress(OSError, ValueError):
        note: object = json.loads((folder / _NOTE).read_text("utf-8"))
        return note if isinstance(note, dict) else {}
    return {}


def write_note(folder: Path, note: Mapping[str, object]) -> None:
    """Marks a folder as complete; on the disk before anything is done with it.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    write_atomically(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def mark_used(folder: Path) -> None:
    """Marks a folder as the most recently used, so that it is removed last."""
    os.utime(folder / _NOTE)


def remove(folder: Path, *, checkout: Path) -> None:
    """Removes an environment and its git worktree, or a built workspace.

    Args:
        checkout: the user's checkout, which the worktree belongs to.

    Raises:
        OSError: a file cannot be removed.
    """
    (folder / _NOTE).unlink(missing_ok=True)  # first: what is removed in part must not be taken for whole
    ask_git(checkout, "worktree", "remove", "--force", str(folder / CHECKOUT))
    shutil.rmtree(folder)
    ask_git(checkout, "worktree", "prune")


def remove_unused(store: Path, *, checkout: Path, announce: Announce) -> None:
    """Removes all but the `KEPT` environments and workspaces that were used last; none that another run has locked."""
    found = sorted(((_used_at_ns(each), each) for each in store.iterdir() if each.is_dir()), reverse=True)
    built = [each for each in found if each[1].name.startswith(BUILT)]
    for used_at_ns, folder in [*[each for each in found if each not in built][KEPT:], *built[KEPT:]]:
        with _lock_of(folder).open("a") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _used_at_ns(folder) == used_at_ns:  # otherwise another run has just used or removed it
                _try_to_remove(folder, checkout, announce)


def _try_to_remove(folder: Path, checkout: Path, announce: Announce) -> None:
    what = "the built" if folder.name.startswith(BUILT) else "the environment of"
    announce(f"removing {what} {folder.name}: only the {KEPT} that were used last are kept")
    try:
        remove(folder, checkout=checkout)
    except OSError as error:
        announce(f"{folder} cannot be removed: {error}")


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _used_at_ns(folder: Path) -> int:
    """Time of last use; for an unfinished folder, when it was begun; -1 if there is none."""
    for file in (folder / _NOTE, folder):
        with contextlib.suppress(OSError):
            return file.stat().st_mtime_ns
    return -1
