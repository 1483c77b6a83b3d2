"""JSON files named by the user, read with a size limit."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError

LONGEST_FILE: Final = 4 * 1024 * 1024
"""Bytes."""


def read_source(path: Path, what: str, *, remedy: str) -> str:
    """Returns the text of a regular file.

    Args:
        what: description of the file for errors: ``the topology``.
        remedy: remedy if there is no such file.

    Raises:
        ConfigurationError: it cannot be read, is a device or a pipe, too long, or not UTF-8.
    """
    try:
        _refuse_endless(path, what)
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{what} {path.absolute()} cannot be read: {error.strerror}", remedy=remedy) from None
    except ValueError as error:  # a null character in its name
        raise ConfigurationError(f"{what} {str(path)!r} cannot be read: {error}", remedy=remedy) from None
    if len(data) > LONGEST_FILE:
        raise ConfigurationError(f"{what} {path} is longer than {LONGEST_FILE // 1024} KiB", remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}, line {line}: is no UTF-8", remedy="write it as JSON in UTF-8") from None


def _refuse_endless(path: Path, what: str) -> None:
    """Refuses pipes, which block until a writer comes, and devices, which may never end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConfigurationError(f"{what} {path} is a pipe or a device", remedy="write it to a file")
