"""Store of the environments of revisions: each has a lock of its own, and only the last few are kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pytest_ldos.host.checkout import ask_git

CHECKOUT: Final = "checkout"
NOTE: Final = "made.json"
KEPT: Final = 5
"""Number of environments that are kept; each is a checkout with an environment, of hundreds of megabytes."""

Announce = Callable[[str], None]


@contextmanager
def locked(folder: Path, announce: Announce) -> Iterator[None]:
    """Locks an environment against other runs that would create or remove it; waits for them."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock_of(folder).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            announce("waiting: another run prepares the same base")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def mark_used(folder: Path) -> None:
    """Marks an environment as the most recently used, so that it is removed last."""
    os.utime(folder / NOTE)


def remove(folder: Path, *, checkout: Path) -> None:
    """Removes an environment and its git worktree.

    Args:
        checkout: the user's checkout, which the worktree belongs to.

    Raises:
        OSError: a file cannot be removed.
    """
    ask_git(checkout, "worktree", "remove", "--force", str(folder / CHECKOUT))
    shutil.rmtree(folder)
    ask_git(checkout, "worktree", "prune")


def remove_unused(store: Path, *, checkout: Path, announce: Announce) -> None:
    """Removes all environments but the `KEPT` most recently used ones and those that another run has locked."""
    found = sorted(((_used_at_ns(each), each) for each in store.iterdir() if each.is_dir()), reverse=True)
    for used_at_ns, folder in found[KEPT:]:
        with _lock_of(folder).open("a") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _used_at_ns(folder) == used_at_ns:  # otherwise another run has just used or removed it
                _try_to_remove(folder, checkout, announce)


def _try_to_remove(folder: Path, checkout: Path, announce: Announce) -> None:
    announce(f"removing the environment of base {folder.name}: only the {KEPT} that were used last are kept")
    try:
        remove(folder, checkout=checkout)
    except OSError as error:
        announce(f"{folder} cannot be removed: {error}")


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _used_at_ns(folder: Path) -> int:
    """Time of last use; for an unfinished environment, when it was begun; -1 if there is none."""
    for file in (folder / NOTE, folder):
        with contextlib.suppress(OSError):
            return file.stat().st_mtime_ns
    return -1
