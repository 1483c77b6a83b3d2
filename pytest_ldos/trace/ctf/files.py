"""Finds the traces of a session directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from pytest_ldos.base.errors import TraceUnreadable

METADATA = "metadata"


@dataclass(frozen=True)
class TraceFiles:
    """A metadata file and the stream files beside it."""

    metadata: Path
    streams: tuple[Path, ...]


@dataclass(frozen=True)
class LinkedFile:
    """A second name of a stream file, which is read once."""

    path: Path
    same_as: Path


@dataclass
class SessionFiles:
    """All traces below a directory, each file once, by whatever links it is reached."""

    traces: list[TraceFiles] = field(default_factory=list)
    linked: list[LinkedFile] = field(default_factory=list)


def find_files(root: Path) -> SessionFiles:
    """Finds every directory at or below `root` that holds a file named ``metadata``.

    Follows links to directories. Ignores index files: they may be absent, stale or
    corrupt, and packets contain the same information.

    Raises:
        TraceUnreadable: no such directory, no permission, or no trace.
    """
    _check_directory(root)
    found = SessionFiles()
    known: dict[tuple[int, int], Path] = {}
    for folder, names in _walk(root):
        if METADATA not in names:
            continue
        files = [folder / name for name in sorted(names) if _is_stream(name)]
        streams = [path for path in files if _is_new(path, known, found.linked)]
        if streams or not files:
            found.traces.append(TraceFiles(folder / METADATA, tuple(streams)))
    if not found.traces:
        raise TraceUnreadable(
            root,
            None,
            "no trace in it (no file named `metadata` anywhere below)",
            remedy="name the directory that `lttng create --output` was given, or one below it",
        )
    return found


def _check_directory(root: Path) -> None:
    try:
        is_directory = root.is_dir()
        exists = is_directory or root.exists()
    except OSError as error:
        _refuse(error)
    if not exists:
        raise TraceUnreadable(root, None, "there is no such directory")
    if not is_directory:
        raise TraceUnreadable(root, None, "is a file", remedy="name the directory that holds `metadata`")


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Directories and the files in them, each directory once, also where links make a circle."""
    entered = {_identity(root)}
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        fresh = []
        for name in sorted(folders):
            identity = _identity(Path(folder) / name)
            if identity not in entered:
                entered.add(identity)
                fresh.append(name)
        folders[:] = fresh
        yield Path(folder), names


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        _refuse(error)
    return status.st_dev, status.st_ino


def _is_new(path: Path, known: dict[tuple[int, int], Path], linked: list[LinkedFile]) -> bool:
    same_as = known.setdefault(_identity(path), path)
    if same_as is not path:
        linked.append(LinkedFile(path, same_as))
    return same_as is path


def _is_stream(name: str) -> bool:
    return name != METADATA and not name.startswith(".") and not name.endswith(".idx")


def _refuse(error: OSError) -> NoReturn:
    is_closed = isinstance(error, PermissionError)
    remedy = "read it as the user who recorded it, or change its permissions" if is_closed else ""
    reason = error.strerror or "cannot be listed"
    raise TraceUnreadable(Path(error.filename), None, reason, remedy=remedy) from error
