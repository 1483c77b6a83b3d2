"""Writing of files and folders, and files of the checkout that the wheel includes.

All files are written inside `writing`. An invalid path is a user error (`ConfigurationError`); a full disk and the like
are faults of the machine (`NotWritten`).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from pytest_ldos.base.errors import ConfigurationError, LdosError, NotWritten
from pytest_ldos.base.text import format_bytes, one_line

ANOTHER: Final = "name another place"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REMEDIES: Final = {
    errno.EROFS: f"it is on a file system that is only read: {ANOTHER}, or have it mounted for writing",
    errno.EACCES: f"{ANOTHER}, where you may write",
    errno.EPERM: f"{ANOTHER}, where you may write",
    errno.EIO: f"its disk reports errors: {ANOTHER}, and look at the kernel's log",
    errno.EFBIG: f"raise the largest size of a file (ulimit -f), or {ANOTHER}",
}
"""Remedies by error number; a full disk has a separate one."""


@contextmanager
def writing(place: Path, *, needs: int = 0, otherwise: str = ANOTHER) -> Iterator[None]:
    """Converts errors of writing a file or folder.

    Args:
        needs: number of bytes to write, if known.
        otherwise: option with which the user can choose another place.

    Raises:
        NotWritten: the disk is full or failing, or there is no permission.
        ConfigurationError: the path is not valid for a file or folder.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(place, error, needs=needs, otherwise=otherwise) from None


def write_atomically(path: Path, content: str | bytes, *, otherwise: str = ANOTHER) -> None:
    """Writes a file atomically: a reader sees the old or the new content.

    Args:
        otherwise: see `writing`.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with writing(path, needs=len(data), otherwise=otherwise):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def opened_log(log: Path) -> BinaryIO:
    """Opens another program's log for appending.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    with writing(log):
        return log.open("ab")


def unwritable(place: Path, error: OSError, *, needs: int = 0, otherwise: str = ANOTHER) -> LdosError:
    """The error for a file or folder that cannot be written; see `writing`."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    message = f"{place} cannot be written: {one_line(reason)}"
    if error.errno in _FULL:
        return NotWritten(message, remedy=f"{_make_room(place, needs)}, or {otherwise}")
    if error.errno in _REMEDIES:
        return NotWritten(message, remedy=_REMEDIES[error.errno])
    return ConfigurationError(message, remedy=otherwise)


def _make_room(place: Path, needs: int) -> str:
    disk = _disk_of(place)
    found = os.statvfs(disk)
    if found.f_files and not found.f_favail:
        return f"make room on {disk}, which can hold no more files"
    needed = f"{format_bytes(needs)} are needed and " if needs else ""
    return f"make room on {disk}: {needed}{format_bytes(found.f_bavail * found.f_frsize)} are free"


def _disk_of(place: Path) -> Path:
    """Mount point of the file system of a path, which need not exist."""
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    return next(each for each in (there, *there.parents) if each.is_mount())


def require_writable_file(file: Path) -> None:
    """Creates the folder of a result file; does not change an existing file.

    Raises:
        NotWritten, ConfigurationError: see `writing`; also if it is a folder, a pipe or a device.
    """
    with writing(file):
        if file.is_dir():
            raise ConfigurationError(f"{file} cannot be written: it is a folder", remedy="name a file in it")
        if file.exists() and not file.is_file():
            raise ConfigurationError(f"{file} cannot be written: it is a pipe or a device", remedy=ANOTHER)
        _try_folder(file.parent)


def require_writable_folder(folder: Path, *, otherwise: str = ANOTHER) -> None:
    """Creates a folder for result files.

    Raises:
        NotWritten, ConfigurationError: see `writing`.
    """
    with writing(folder, otherwise=otherwise):
        _try_folder(folder)


def _try_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"room")  # a full disk still accepts empty files
        file.flush()


def find_carried(folder: str) -> Path:
    """A folder of the installed package, or of an editable install's checkout.

    Raises:
        ConfigurationError: it does not exist.
    """
    package = Path(__file__).parents[1]
    found = next((each for each in (package / folder, package.parent / folder) if each.is_dir()), None)
    if found is None:
        raise ConfigurationError(f"{folder} of pytest-ldos is missing", remedy="install pytest-ldos again")
    return found
