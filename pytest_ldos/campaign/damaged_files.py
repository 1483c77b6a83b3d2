"""Files of results that nobody can read are set aside, so that what they held is measured again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_ldos.errors import RecordUnreadable


def set_damaged_aside(files: Iterable[Path], read: Callable[[Path], object]) -> list[Path]:
    """Renames those that are damaged to ``NAME.damaged``; returns what they are called now. Nothing is deleted.

    Args:
        read: reads one; raises `RecordUnreadable` where it is damaged.

    Raises:
        RecordUnreadable: a file cannot be read at all, or not be renamed: it may be whole.
    """
    return [_set_aside(file) for file in files if _is_damaged(file, read)]


def _is_damaged(file: Path, read: Callable[[Path], object]) -> bool:
    try:
        file.read_bytes()
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}", remedy="see its permissions") from None
    try:
        read(file)
    except RecordUnreadable:
        return True
    return False


def _set_aside(file: Path) -> Path:
    names = (file.with_name(f"{file.name}{number}.damaged") for number in itertools.chain([""], itertools.count(2)))
    free = next(name for name in names if not name.exists())
    try:
        return file.rename(free)
    except OSError as error:
        reason = f"{file} is damaged, and cannot be renamed: {error.strerror}"
        raise RecordUnreadable(reason, remedy="delete it: the start is measured anew") from None
