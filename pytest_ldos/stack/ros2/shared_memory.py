"""Shared memory that Fast DDS leaves behind when a stack's processes are killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_ldos.host.fastdds_memory import find_stale

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - Linux's own place for it


class SharedMemory:
    """What is there before a stack starts, so that what it leaves can be told."""

    def __init__(self, directory: Path = SHARED_MEMORY) -> None:
        self._directory = directory
        self._before = set(self._files())

    def _files(self) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from self._directory.iterdir()

    def remove_left_behind(self) -> None:
        """Removes what of Fast DDS came since and is nobody's any more, by its locks; see `find_stale`."""
        for path in find_stale(self._directory):
            if path not in self._before:
                with contextlib.suppress(OSError):
                    path.unlink()
