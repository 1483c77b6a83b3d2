"""Finds traces and their archives below folders.

A recorded session counts as one trace, however many CTF traces it contains.

Reference: LTTng's layout of a session, ``[archives/CHUNK/](ust/uid/UID/BITS | ust/pid/PROCESS | kernel)/metadata``;
``ros2 trace --dual-session`` records two sessions, ``snapshot`` and ``runtime``, which are one trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.trace.ctf.archive import address_of, is_archive
from pytest_ldos.trace.ctf.files import METADATA, no_trace

_ARCHIVES: Final = "archives"
_HALVES: Final = ("snapshot", "runtime")
"""Sessions of a dual session: the initialisation, and the recording."""


@dataclass(frozen=True)
class Found:
    """A trace, or a place without one.

    Attributes:
        name: the path or address as given by the user.
        path: the absolute path; for an address see `address_of`.
        problem: reason why there is no trace; empty if there is one.
    """

    name: str
    path: Path
    problem: str = ""

    @classmethod
    def at(cls, place: Path, problem: str = "") -> Found:
        address = address_of(place)
        return cls(str(place), place.absolute(), problem) if address is None else cls(address, place, problem)


def find_traces(places: Iterable[Path], *, together: bool = False) -> tuple[Found, ...]:
    """Returns each trace once, ordered by name.

    Args:
        places: folders of one session or of many, archives of one, and addresses of one.
        together: treat each place as one trace.
    """
    found: dict[Path, Found] = {}
    for place in places:
        for each in [Found.at(place)] if together else _below(place):
            found.setdefault(each.path, each)
    return tuple(sorted(found.values(), key=lambda each: each.name))


def _below(place: Path) -> Iterator[Found]:
    if address_of(place) is not None or (is_archive(place) and place.exists()):
        yield Found.at(place)
        return
    if not place.is_dir():
        yield Found.at(place, no_trace(place).reason)
        return
    closed: list[OSError] = []
    archives: list[Path] = []
    sessions = dict.fromkeys(_session_of(folder, place) for folder in _folders_of_metadata(place, closed, archives))
    sessions.update(dict.fromkeys(archives))
    yield from (Found.at(session) for session in sessions)
    yield from (Found.at(Path(error.filename), error.strerror or "cannot be listed") for error in closed)
    if not sessions and not closed:
        yield Found.at(place, no_trace(place).reason)


def _folders_of_metadata(place: Path, closed: list[OSError], archives: list[Path]) -> Iterator[Path]:
    """Yields folders with trace metadata, each once. Follows links.

    Args:
        closed: receives folders that cannot be listed.
        archives: receives archives.
    """
    entered: set[tuple[int, int]] = set()
    for name, folders, files in os.walk(place, onerror=closed.append, followlinks=True):
        status = Path(name).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in entered:
            folders.clear()
            continue
        entered.add(identity)
        folders.sort()
        archives += [each for file in sorted(files) if is_archive(each := Path(name, file))]
        if METADATA in files:
            yield Path(name)


def _session_of(folder: Path, place: Path) -> Path:
    """The session folder of a CTF trace, but never above `place`."""
    absolute, top = folder.absolute(), place.absolute()
    session = (absolute, *absolute.parents)[_depth(absolute.parts)]
    if session.parent.name == _ARCHIVES:
        session = session.parent.parent
    half = session if session.name in _HALVES else session.parent  # LTTng creates a folder per snapshot
    if half.name in _HALVES and all((half.parent / name).is_dir() for name in _HALVES):
        session = half.parent
    within = session if session.is_relative_to(top) else top
    return place / within.relative_to(top)


def _depth(parts: Sequence[str]) -> int:
    """Number of folders from a trace up to its session; 0 in a layout other than LTTng's."""
    if parts[-4:-2] == ("ust", "uid"):
        return 4
    if parts[-3:-1] == ("ust", "pid"):
        return 3
    return 1 if parts[-1] == "kernel" else 0
