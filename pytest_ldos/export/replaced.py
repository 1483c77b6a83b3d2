"""What appears at once when it is whole, in the place of what was there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A folder on the disk of a file or folder that is to be, for as long as the context lasts.

    Raises:
        OSError: none can be written there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        yield Path(folder)


@contextmanager
def replaced(directory: Path, *, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Where the new folder is to be made; it takes its place when the context ends without an error.

    Args:
        is_ours: whether what is there may be replaced.

    Raises:
        OSError: the directory cannot be written, or holds something else.
    """
    with beside(directory) as folder:
        fresh = folder / directory.name
        yield fresh
        if is_ours(directory):
            directory.rename(folder / "before")  # whatever ends us here, neither is lost
        fresh.rename(directory)
