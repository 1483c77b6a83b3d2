"""Long arrays in anonymous temporary files, whose pages the kernel may evict at any time.

Arrays with an element per event of a trace are computed here chunk by chunk, so that memory does not grow with the
trace. Short arrays are ordinary memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.writable import writing

Array = npt.NDArray[Any]

CHUNK_ROWS = 1 << 20
"""Rows per chunk."""

MOST_BYTES = 4 << 20
"""Arrays above this size are mapped."""

_LARGE_FILES: Final = Path("/var/tmp")  # noqa: S108 - every file there is made without a name
"""Folder of large temporary files; ``/tmp`` may be in memory (systemd's ``file-hierarchy(7)``)."""


def chunks(rows: int) -> Iterator[slice]:
    """Consecutive parts of a table."""
    for first in range(0, rows, CHUNK_ROWS):
        yield slice(first, min(first + CHUNK_ROWS, rows))


def room_for(rows: int, dtype: npt.DTypeLike) -> Array:
    """A writable array of zeros; shape ``(rows,)``.

    Raises:
        NotWritten: the disk for temporary files is full.
    """
    kind = np.dtype(dtype)
    size = rows * kind.itemsize
    if size <= MOST_BYTES:
        return np.zeros(rows, dtype=kind)
    with writing(temporary_folder(), needs=size), tempfile.TemporaryFile(dir=temporary_folder()) as file:
        os.posix_fallocate(file.fileno(), 0, size)  # else a write to a full disk would kill the process (SIGBUS)
        return np.asarray(np.memmap(file, dtype=kind, mode="r+"))


def filled(rows: int, dtype: npt.DTypeLike, value: int) -> Array:
    """An array filled with one number; see `room_for`."""
    array = room_for(rows, dtype)
    array.fill(value)
    return array


def computed(rows: int, dtype: npt.DTypeLike, part_of: Callable[[slice], Array]) -> Array:
    """An array that is computed chunk by chunk; see `room_for`."""
    array = room_for(rows, dtype)
    for part in chunks(rows):
        array[part] = part_of(part)
    return array


class Growing:
    """An array that grows at its end.

    Raises:
        NotWritten: by any method, the disk for temporary files is full.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._kind = np.dtype(dtype)
        self._parts: list[Array] = []
        self._file: IO[bytes] | None = None
        self.rows = 0

    def add(self, values: Array) -> None:
        """Adds the next part."""
        self._parts.append(np.ascontiguousarray(values, dtype=self._kind))
        self.rows += len(values)
        if self._file is not None or self.rows * self._kind.itemsize > MOST_BYTES:
            self._write()

    def finish(self) -> Array:
        """The whole array, which is writable; nothing can be added afterwards."""
        if self._file is None:
            return np.concatenate([np.empty(0, dtype=self._kind), *self._parts])
        self._write()
        with self._file as file:
            return np.asarray(np.memmap(file, dtype=self._kind, mode="r+"))

    def _write(self) -> None:
        with writing(temporary_folder()):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=temporary_folder())  # noqa: SIM115 - until `finish`
            for part in self._parts:
                self._file.write(part.data)
            self._file.flush()
        self._parts.clear()


def temporary_folder() -> Path:
    """Folder of temporary files: ``TMPDIR``, or the folder for large ones."""
    if not os.environ.get("TMPDIR") and os.access(_LARGE_FILES, os.W_OK | os.X_OK):
        return _LARGE_FILES
    return Path(tempfile.gettempdir())
