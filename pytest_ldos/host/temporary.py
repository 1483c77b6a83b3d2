"""Private temporary folders that are removed in any case, also when we are killed."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.base.writable import writing
from pytest_ldos.host.undo import Undo, undone_at_end
from pytest_ldos.host.undo_actions import RemoveTree


@contextmanager
def temporary_folder(prefix: str, *, within: Path | None = None) -> Iterator[Path]:
    """Makes a folder that only we can read, for as long as the context lasts.

    Args:
        within: its parent folder; the system's temporary folder (`TMPDIR`) by default.

    Raises:
        NotWritten: it cannot be made.
        MendFailed: it could not be removed.
    """
    folder = temporary_place(prefix) if within is None else within.absolute() / f"{prefix}{secrets.token_hex(8)}"
    with undone_at_end(Path(os.devnull)) as undo:
        make_folder(folder, undo)
        yield folder


def temporary_place(prefix: str) -> Path:
    """Path of a temporary folder that could be made, with an unused name.

    Raises:
        NotWritten: the system has no temporary folder that can be written.
    """
    return _system_folder() / f"{prefix}{secrets.token_hex(8)}"


def make_folder(folder: Path, undo: Undo) -> None:
    """Makes a private folder that `undo` removes.

    Raises:
        NotWritten: it cannot be made.
    """
    undo.register(RemoveTree(str(folder)))
    with writing(folder, otherwise="set TMPDIR to a folder elsewhere"):
        folder.mkdir(mode=0o700)


def _system_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # each was tried
        raise NotWritten(
            f"no temporary folder can be written: {error.strerror}",
            remedy="make room there, or set TMPDIR to a folder that can be written",
        ) from None
