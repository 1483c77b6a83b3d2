"""Removal of files that ended processes left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.machine import Machine


@dataclass(frozen=True)
class RemoveStale:
    """Removes files and folders that are still unused when the fix is applied; see `Fix`.

    Attributes:
        paths: the unused files and folders that were found.
        find: finds them again, so that those in use by now stay.
    """

    description: str
    paths: Sequence[Path]
    find: Callable[[Machine], Sequence[Path]]
    is_reversible: bool = False

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        still = set(self.find(machine))
        for path in self.paths:
            if path in still:
                _remove(path)


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise MendFailed(f"{path} cannot be removed: {error.strerror}", remedy=f"sudo rm -r {path}") from None
