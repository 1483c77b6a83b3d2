"""Whether results can be put where they are to be, asked before anything is measured for them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Final

from pytest_ldos.errors import ConfigurationError

_REMEDY: Final = "name another place"


def require_writable_file(file: Path) -> None:
    """Makes the folder of a file that is to be written, and leaves one that is there as it is.

    Raises:
        ConfigurationError: it cannot be written, or is a folder, a pipe or a device, which no result replaces.
    """
    try:
        if file.is_dir():
            raise ConfigurationError(f"{file} cannot be written: it is a folder", remedy="name a file in it")
        if file.exists() and not file.is_file():
            raise ConfigurationError(f"{file} cannot be written: it is a pipe or a device", remedy=_REMEDY)
        _try_folder(file.parent)
    except OSError as error:
        raise unwritable(file, error) from None


def require_writable_folder(folder: Path) -> None:
    """Makes a folder that files are to be written to.

    Raises:
        ConfigurationError: it cannot be made, or written to.
    """
    try:
        _try_folder(folder)
    except OSError as error:
        raise unwritable(folder, error) from None


def _try_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def unwritable(place: Path, error: OSError) -> ConfigurationError:
    """What is told of a file or folder that cannot be written."""
    return ConfigurationError(f"{place} cannot be written: {error.strerror}", remedy=_REMEDY)
