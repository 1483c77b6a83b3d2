"""Store of environments of revisions, and of built workspaces.

Each has a separate folder and lock, and is complete once it has a note with its inputs. Only the few most recently used
ones are kept.
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
"""Name prefix of built workspaces."""

KEPT: Final = 5
"""Number of kept environments, and of kept workspaces; each takes hundreds of megabytes."""

_NOTE: Final = "made.json"
_DIGITS: Final = 8

Announce = Callable[[str], None]


def digest_of(recipe: Mapping[str, object], *, digits: int = _DIGITS) -> str:
    """Digest of the inputs, which is part of the folder's name."""
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:digits]


@contextmanager
def locked(folder: Path, announce: Announce) -> Iterator[int]:
    """Locks a folder against other runs that fill or remove it; waits for them.

    Yields:
        The lock's descriptor; a process that inherits it also holds the lock.
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
        name: of the version, for messages.
        checkout: the user's checkout.
        is_whole: checks the folder's content.
        make: fills the empty folder and writes its note; receives the lock.

    Raises:
        PreparationFailed: the version's files cannot be written or removed; also errors of `make`.
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
    """Creates or empties a folder."""
    if folder.exists():
        announce(f"removing {folder.name}, made for {name}: it is unfinished or damaged")
        remove(folder, checkout=checkout)
    with writing(folder):
        folder.mkdir(parents=True)


def read_note(folder: Path) -> Mapping[str, Any]:
    """The inputs of a folder; empty if it is incomplete."""
    with contextlib.suppress(OSError, ValueError):
        note: object = json.loads((folder / _NOTE).read_text("utf-8"))
        return note if isinstance(note, dict) else {}
    return {}


def write_note(folder: Path, note: Mapping[str, object]) -> None:
    """Marks a folder as complete, and flushes the note to disk.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    write_atomically(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def mark_used(folder: Path) -> None:
    """Marks a folder as most recently used."""
    os.utime(folder / _NOTE)


def remove(folder: Path, *, checkout: Path) -> None:
    """Removes an environment and its git worktree, or a built workspace.

    Args:
        checkout: the user's checkout, which owns the worktree.

    Raises:
        OSError: a file cannot be removed.
    """
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
            if _used_at_ns(folder) == used_at_ns:  # else another run has just used or removed it
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
    """Time of last use; for an incomplete folder, its begin; -1 if there is none."""
    for file in (folder / _NOTE, folder):
        with contextlib.suppress(OSError):
            return file.stat().st_mtime_ns
    return -1
