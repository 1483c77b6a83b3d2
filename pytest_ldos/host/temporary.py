"""Temporary folders that are always removed, clean termination by SIGTERM, and user folders."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.base.writable import writing
from pytest_ldos.host.undo import Undo, undone_at_end
from pytest_ldos.host.undo_actions import RemoveTree

LONGEST_SOCKET: Final = 107
"""Largest length of a Unix socket's path without the terminating zero (``sun_path`` in unix(7))."""

SHORT_FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - private folders are made in them
"""Temporary folders for sockets if the user's has too long a path."""


@contextmanager
def temporary_folder(prefix: str, *, within: Path | None = None) -> Iterator[Path]:
    """Creates a private folder for the ``with`` block.

    Args:
        within: its parent folder; the system's temporary folder (`TMPDIR`) by default.

    Raises:
        NotWritten: it cannot be created.
        MendFailed: it could not be removed.
    """
    folder = temporary_place(prefix) if within is None else within.absolute() / f"{prefix}{secrets.token_hex(8)}"
    with undone_at_end(Path(os.devnull)) as undo:
        make_folder(folder, undo)
        yield folder


def temporary_place(prefix: str, *, socket: str = "") -> Path:
    """Unused path for a temporary folder.

    Args:
        socket: relative path of the longest Unix socket in it. If the system's temporary folder has too long a path
            for that, one of `SHORT_FOLDERS` is used.

    Raises:
        NotWritten: there is no writable temporary folder with a short enough path.
    """
    name = f"{prefix}{secrets.token_hex(8)}"
    usual = _system_folder()
    others = [Path(folder) for folder in SHORT_FOLDERS if socket and os.access(folder, os.W_OK | os.X_OK)]
    room = LONGEST_SOCKET - len(os.fsencode(Path("/", name, socket)))
    for folder in (usual, *others):
        if not socket or len(os.fsencode(folder)) <= room:
            return folder / name
    raise NotWritten(
        f"{usual} is too long a path for Unix sockets, and none of {', '.join(SHORT_FOLDERS)} can be written",
        remedy=f"set TMPDIR to a folder whose path has at most {room} bytes",
    )


def make_folder(folder: Path, undo: Undo) -> None:
    """Creates a private folder that `undo` removes.

    Raises:
        NotWritten: it cannot be created.
    """
    undo.register(RemoveTree(str(folder)))
    with writing(folder, otherwise="set TMPDIR to a folder elsewhere"):
        folder.mkdir(mode=0o700)


def _system_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # all folders failed
        raise NotWritten(
            f"no temporary folder can be written: {error.strerror}",
            remedy="make room there, or set TMPDIR to a folder that can be written",
        ) from None


REASON: Final = "the run was ended by SIGTERM"


class Termination:
    """Current effect of SIGTERM."""

    def __init__(self) -> None:
        self._is_settled = False

    def settle(self) -> None:
        """Ignores the signal from now on, because only the results remain to be written."""
        self._is_settled = True

    def take(self, number: int, frame: FrameType | None) -> None:
        if not self._is_settled:
            raise KeyboardInterrupt(REASON)


@contextmanager
def terminated_like_interrupted() -> Iterator[Termination]:
    """Makes SIGTERM raise KeyboardInterrupt inside the ``with`` block; does nothing off the main thread.

    An existing handler is kept.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    termination = Termination()
    if is_ours:
        signal.signal(signal.SIGTERM, termination.take)
    try:
        yield termination
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def state_folder(environment: Mapping[str, str]) -> Path:
    """Folder of persistent state: below ``$XDG_STATE_HOME``."""
    return _folder(environment, "XDG_STATE_HOME", ".local/state")


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Folder of caches: below ``$XDG_CACHE_HOME``."""
    return _folder(environment, "XDG_CACHE_HOME", ".cache")


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    """A user folder; a relative path is ignored, as specified."""
    asked = Path(environment.get(variable, ""))
    return asked if asked.is_absolute() else Path.home() / default
