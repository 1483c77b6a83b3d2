"""Replaces a file or folder at once, when the new one is complete."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Creates a temporary folder on the same disk as a future file or folder, for as long as the context lasts.

    Raises:
        OSError: no folder can be created there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        yield Path(folder)


@contextmanager
def replaced(directory: Path, *, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yields the path for the new folder, which replaces `directory` when the context ends without an error.

    Args:
        is_ours: returns true if the existing folder may be replaced.

    Raises:
        OSError: the directory cannot be written, or holds something else.
    """
    with beside(directory) as folder:
        fresh = folder / directory.name
        yield fresh
        if is_ours(directory):
            directory.rename(folder / "before")  # if the process ends here, neither is lost
        fresh.rename(directory)
