"""Files of a folder that another job has made: only those whose names have a form, no links, of limited size."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from github_api import Failed

_DEEPEST: Final = 8


def read_folder(folder: Path, form: re.Pattern[str], *, most: int, largest: int) -> dict[str, bytes]:
    """The content of all files by their paths in a folder.

    Args:
        form: of every path; another one is refused, not left out.
        most: files.
        largest: bytes of all of them.

    Raises:
        Failed: something else is there, too much, or nothing.
    """
    found: dict[str, bytes] = {}
    left = largest
    for file in _walk(folder, _DEEPEST):
        path = file.relative_to(folder).as_posix()
        if form.fullmatch(path) is None:
            raise Failed(f"{folder} holds {ascii(path)[:200]}, which belongs to nothing that is taken")
        if len(found) == most:
            raise Failed(f"{folder} holds more than {most} files")
        found[path] = _read(file, left)
        left -= len(found[path])
    if not found:
        raise Failed(f"{folder} holds no file")
    return found


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Regular files below a folder; whatever else is there is refused."""
    if depth == 0:
        raise Failed("folders lie too deep in each other")
    try:
        if folder.is_symlink():
            raise Failed(f"{folder} is a link")
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Failed(f"{folder} cannot be read: {type(error).__name__}") from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), depth - 1)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            raise Failed(f"{ascii(entry.name)[:200]} is neither file nor folder")


def _read(file: Path, largest: int) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Failed(f"{str(file)!a} cannot be read: {type(error).__name__}") from None
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Failed(f"{str(file)!a} is no file")
        content = stream.read(largest + 1)
    if len(content) > largest:
        raise Failed("the files are too large")
    return content
