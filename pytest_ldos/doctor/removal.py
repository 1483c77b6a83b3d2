"""Leftovers of processes that are gone, removed."""

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
    """Removes files and folders that are still nobody's when it comes to that; see `Fix`.

    Attributes:
        paths: what was found.
        find: finds it again: what is in use by now stays.
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
