"""Digests of folders by the content of their files; a file is read again only if it changed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_ldos.base.writable import write_atomically

_RECENT_NS: Final = 2_000_000_000
"""A file that changed less than this before it was read may change again without a new time stamp."""
_LEFT_OUT: Final = frozenset({".git", "__pycache__"})

Skip = Callable[[str, bool], bool]
"""True for a path that is left out; the second argument is true for a folder."""


class FileDigests:
    """Digests of files, kept by path, size, inode and time stamps.

    Args:
        cache: file that they are kept in from run to run; unreadable ones are ignored.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._known: dict[str, list[object]] = {}
        with suppress(OSError, ValueError):
            found = json.loads(cache.read_text("utf-8"))
            self._known = found if isinstance(found, dict) else {}
        self._used: dict[str, list[object]] = {}

    def of_folder(self, folder: Path, *, skip: Skip | None = None) -> str:
        """Digest of all names, modes, link targets and contents below a folder; follows links.

        Version control and compiled Python files are left out.

        Raises:
            OSError: a file cannot be read.
        """
        total = hashlib.sha256()
        for entry in _entries(str(folder), skip or _nothing, set()):
            name = os.path.relpath(entry.path, folder)
            total.update(f"{name}\0{self._describe(entry)}\0".encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def save(self) -> None:
        """Keeps the digests that were used.

        Raises:
            NotWritten, ConfigurationError: see `writing`.
        """
        write_atomically(self._cache, json.dumps(self._used))

    def _describe(self, entry: os.DirEntry[str]) -> str:
        link = f"link {Path(entry.path).readlink()} " if entry.is_symlink() else ""
        if not entry.is_file():
            return link
        found = entry.stat()
        return f"{link}{'x' if found.st_mode & 0o100 else '-'} {self._of_file(entry.path, found)}"

    def _of_file(self, path: str, found: os.stat_result) -> str:
        state: list[object] = [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
        known = self._known.get(path)
        if known is not None and known[:-1] == state:
            self._used[path] = known
            return str(known[-1])
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _RECENT_NS:
            self._used[path] = [*state, digest]
        return digest


def _entries(folder: str, skip: Skip, seen: set[tuple[int, int]]) -> Iterator[os.DirEntry[str]]:
    """Files and links below a folder in the order of their names. Strings, because a distribution has 10⁵ files."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir()
        if entry.name in _LEFT_OUT or entry.name.endswith(".pyc") or skip(entry.path, is_folder):
            continue
        if not is_folder or entry.is_symlink():
            yield entry
        if is_folder and _is_new(entry, seen):
            yield from _entries(entry.path, skip, seen)


def _is_new(folder: os.DirEntry[str], seen: set[tuple[int, int]]) -> bool:
    """True the first time a folder is met: links may lead round in circles."""
    found = folder.stat()
    identity = (found.st_dev, found.st_ino)
    is_new = identity not in seen
    seen.add(identity)
    return is_new


def _nothing(path: str, is_folder: bool) -> bool:
    return False
