"""Shared memory that Fast DDS leaves behind when its processes are killed.

Fast DDS keeps segments, ports and their locks in ``/dev/shm`` under names that begin with
``fastrtps_`` (``sem.fastrtps_`` for semaphores), and frees them only at a regular end.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - Linux's own place for it

_OURS: Final = re.compile(r"(sem\.)?fast(rtps|dds)_")


class SharedMemory:
    """The files present before a stack starts, to recognize those that it leaves."""

    def __init__(self, directory: Path = SHARED_MEMORY) -> None:
        self._directory = directory
        self._before = set(self._files())

    def _files(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            yield from (file.name for file in self._directory.iterdir() if _OURS.match(file.name))

    def remove_left_behind(self) -> None:
        """Removes files that are new and that no visible process maps or holds open."""
        new = set(self._files()) - self._before
        if not new:
            return
        used = _used_names(self._directory)
        for name in new - used:
            with contextlib.suppress(OSError):
                (self._directory / name).unlink()


def _used_names(directory: Path) -> set[str]:
    """Names of the files in a directory that some process maps or holds open."""
    prefix = f"{directory}/"
    return {target[len(prefix) :] for target in _used_paths() if target.startswith(prefix)}


def _used_paths() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text("utf-8", errors="replace").splitlines():
                yield line[line.find("/") :]
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    yield str(descriptor.readlink())
