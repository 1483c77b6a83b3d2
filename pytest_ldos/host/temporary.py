"""Private temporary folders that go in any case, also when we are killed."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_ldos.errors import NotWritten
from pytest_ldos.host.undo import undone_at_end
from pytest_ldos.host.undo_actions import RemoveTree
from pytest_ldos.host.writable import writing


@contextmanager
def temporary_folder(prefix: str, *, within: Path | None = None) -> Iterator[Path]:
    """A folder that only we can read, for as long as the context lasts.

    Args:
        within: where it lies; in the system's folder for such things (`TMPDIR`) by default.

    Raises:
        NotWritten: it cannot be made.
        MendFailed: it could not be removed.
    """
    folder = (_system_folder() if within is None else within).absolute() / f"{prefix}{secrets.token_hex(8)}"
    with undone_at_end(Path(os.devnull)) as undo:
        undo.register(RemoveTree(str(folder)))
        with writing(folder, otherwise="set TMPDIR to a folder elsewhere"):
            folder.mkdir(mode=0o700)
        yield folder


def _system_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # each was tried
        raise NotWritten(
            f"no temporary folder can be written: {error.strerror}",
            remedy="make room there, or set TMPDIR to a folder that can be written",
        ) from None
