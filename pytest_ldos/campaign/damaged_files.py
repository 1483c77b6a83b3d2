"""Sets aside result files that cannot be read, so that their contents are measured again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_ldos.base.errors import RecordUnreadable


def set_damaged_aside(files: Iterable[Path], read: Callable[[Path], object]) -> list[Path]:
    """Renames damaged files to ``NAME.damaged`` and returns their new paths. Nothing is deleted.

    Args:
        read: reads a file; raises `RecordUnreadable` if it is damaged.

    Raises:
        RecordUnreadable: a file cannot be opened (it may be whole), or a damaged one cannot be renamed.
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
        raise RecordUnreadable(reason, remedy="delete it, then the start is measured again") from None
