"""Finds the traces of a session directory, with the path, domain and host of each."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.writable import writing
from pytest_ldos.trace.ctf.archive import address_of, fetch, is_archive, unpack

METADATA = "metadata"


@dataclass(frozen=True)
class TraceFiles:
    """A metadata file and the stream files in the same folder."""

    metadata: Path
    streams: tuple[Path, ...]


@dataclass(frozen=True)
class LinkedFile:
    """A second name of a stream file; the file is read once."""

    path: Path
    same_as: Path


@dataclass
class SessionFiles:
    """All traces below a directory; a file reached through several links counts once."""

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
        raise no_trace(root)
    return found


_OF_MESSAGES: Final = "a bag holds messages, and not what ran: record a trace, too, with `ros2 trace`"
_UNPACK: Final = "unpack it, and name the folder"
_HOLDER: Final = "name the folder that holds it"

_KINDS_OF_FILES: Final = (
    (b"SQLite format 3", "is a bag of rosbag2 (SQLite)", _OF_MESSAGES),
    (b"\x89MCAP", "is a bag (MCAP)", _OF_MESSAGES),
    (b"#ROSBAG", "is a bag of ROS 1", _OF_MESSAGES),
    (b"\x80", "is a pickle, as tracetools_analysis writes", "name the trace that it was made of"),
    (b"\x1f\x8b", "is packed with gzip, and not named so", "let its name end with .tar.gz if it is an archive"),
    (b"\xfd7zXZ", "is packed with xz, and not named so", "let its name end with .tar.xz if it is an archive"),
    (b"BZh", "is packed with bzip2, and not named so", "let its name end with .tar.bz2 if it is an archive"),
    (
        b"\x28\xb5\x2f\xfd",
        "is packed with zstd, and not named so",
        "let its name end with .tar.zst if it is an archive",
    ),
    (b"PK\x03\x04", "is an archive (zip), and not named so", "let its name end with .zip"),
    (b"7z\xbc\xaf", "is an archive of a kind that is not read (7z)", _UNPACK),
    (b"Rar!", "is an archive of a kind that is not read (rar)", _UNPACK),
    (b"\x04\x22\x4d\x18", "is packed with lz4, which is not read", _UNPACK),
    (b"PERFILE2", "is a recording of perf", "convert it to a trace: `perf data convert --to-ctf=FOLDER`"),
    (b"PAR1", "is a table of Parquet", "name the trace that it was made of"),
    (b"\xc1\x1f\xfc\xc1", "is a stream of a trace", _HOLDER),
    (b"\xc1\xfc\x1f\xc1", "is a stream of a trace", _HOLDER),
    (b"\x57\x1d\xd1\x75", "is the metadata of a trace", _HOLDER),
    (b"\x75\xd1\x1d\x57", "is the metadata of a trace", _HOLDER),
    (b"/* CTF", "is the metadata of a trace", _HOLDER),
)
"""Magic numbers of files that are not traces, with a description and a remedy."""

_KINDS_OF_FOLDERS: Final = (
    (("metadata.yaml", "*.db3", "*.mcap"), "is a bag of rosbag2", _OF_MESSAGES),
    (("model.json", "traces.parquet"), "holds tables, and no trace", "name the trace that they were made of"),
)


def no_trace(place: Path) -> TraceUnreadable:
    """The reason why a path holds no trace, with a remedy."""
    if not place.exists():
        return TraceUnreadable(place, None, "there is no such directory")
    return _no_trace_in(place) if place.is_dir() else _no_trace_but(place)


def _no_trace_in(folder: Path) -> TraceUnreadable:
    for patterns, reason, remedy in _KINDS_OF_FOLDERS:
        if any(True for pattern in patterns for _ in folder.glob(pattern)):
            return TraceUnreadable(folder, None, reason, remedy=remedy)
    if archive := next((each for each in sorted(folder.rglob("*.*")) if is_archive(each)), None):
        return TraceUnreadable(folder, None, "no trace in it but in archives", remedy=f"name an archive: {archive}")
    return TraceUnreadable(
        folder,
        None,
        "no trace in it (no file named `metadata` anywhere below)",
        remedy="name the directory that `lttng create --output` was given, or one below it",
    )


def _no_trace_but(file: Path) -> TraceUnreadable:
    try:
        with file.open("rb") as opened:
            begin = opened.read(16)
    except OSError as error:
        return TraceUnreadable(file, None, error.strerror or "cannot be read")
    for first, reason, remedy in _KINDS_OF_FILES:
        if begin.startswith(first):
            return TraceUnreadable(file, None, reason, remedy=remedy)
    return TraceUnreadable(
        file, None, "is a file, and no archive of a trace", remedy="name the directory that holds `metadata`"
    )


def _check_directory(root: Path) -> None:
    try:
        is_directory = root.is_dir()
        exists = is_directory or root.exists()
    except OSError as error:
        _refuse(error)
    if not exists or not is_directory:
        raise no_trace(root)


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Directories and their files, each directory once, even if links form a cycle."""
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


_PER_UID = re.compile(r"(?:^|/)uid/(\d+)(?:/|$)")
_PER_PID = re.compile(r"(?:^|/)pid/(.+)-(\d+)-\d{8}-\d{6}(?:/|$)")


@dataclass(frozen=True)
class TraceInfo:
    """One trace of a session directory: a domain, or a buffer owner (uid, pid).

    Facts missing in the metadata are taken from the path that LTTng gave the trace.

    Attributes:
        directory: folder of its metadata.
        environment: the ``env`` block (``hostname``, ``domain``, ``tracer_name``, …).
        clock: name of the clock that stamps events; ``""`` where they have no time: their
            `timestamp_ns` is 0.
        clock_offset_ns: nanoseconds from that clock's zero to the epoch.
        uuid: of the trace, 32 hexadecimal digits, or ``""``. Rotated chunks of one trace
            share it.
        unread: events and fields that no column can hold (text inside arrays of structs);
            they are skipped.
        channels: names of the events that each channel (stream class) declares, by its number.
    """

    directory: Path
    environment: Mapping[str, str | int]
    clock: str
    clock_offset_ns: int
    uuid: str = ""
    unread: tuple[tuple[str, str], ...] = ()
    channels: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def domain(self) -> str:
        """``ust``, ``kernel``, …; ``""`` where unknown."""
        if "domain" in self.environment:
            return str(self.environment["domain"])
        parts = self.directory.parts
        return next((part for part in reversed(parts) if part in ("kernel", "ust")), "")

    @property
    def host(self) -> str:
        return str(self.environment.get("hostname", ""))

    @property
    def uid(self) -> int | None:
        """The user of per-user buffers."""
        if self._scheme == "uid":
            return self._number("tracer_buffering_id")
        found = _PER_UID.search(self.directory.as_posix())
        return int(found[1]) if found and not self._scheme else None

    @property
    def pid(self) -> int | None:
        """The process of per-process buffers."""
        if self._scheme == "pid":
            known = self._number("vpid")
            return self._number("tracer_buffering_id") if known is None else known
        found = _PER_PID.search(self.directory.as_posix())
        return int(found[2]) if found and not self._scheme else None

    @property
    def process_name(self) -> str:
        """Name of that process, cut to 15 characters by Linux."""
        if "procname" in self.environment:
            return str(self.environment["procname"])
        found = _PER_PID.search(self.directory.as_posix())
        return found[1] if found else ""

    @property
    def tracer(self) -> str:
        """``lttng-ust 2.13``."""
        version = ".".join(
            str(self.environment[part]) for part in ("tracer_major", "tracer_minor") if part in self.environment
        )
        return " ".join(part for part in (str(self.environment.get("tracer_name", "")), version) if part)

    @property
    def _scheme(self) -> str:
        return str(self.environment.get("tracer_buffering_scheme", ""))

    def _number(self, name: str) -> int | None:
        value = self.environment.get(name)
        return value if isinstance(value, int) else None


@dataclass(frozen=True)
class OpenedTrace:
    """A trace whose files can be read.

    Attributes:
        place: the path or address as given.
        folder: its files; `place` itself unless they were fetched or unpacked.
    """

    place: Path
    folder: Path

    def name_of(self, path: Path) -> Path:
        """A file's name relative to the place of the trace."""
        return self.place / path.relative_to(self.folder) if path.is_relative_to(self.folder) else path


@contextmanager
def opened(place: Path) -> Iterator[OpenedTrace]:
    """Opens a trace; an archive or an address is unpacked to a temporary folder for the ``with`` block.

    Raises:
        TraceUnreadable: it cannot be fetched or unpacked; errors in the block name files as `OpenedTrace` does.
        NotWritten, ConfigurationError, Unavailable: see `fetch` and `unpack`.
    """
    address = address_of(place)
    if address is None and not is_archive(place):
        yield OpenedTrace(place, place)
        return
    with writing(Path(tempfile.gettempdir())):
        temporary = tempfile.TemporaryDirectory(prefix="ldos-trace-")
    with temporary as name:
        found = OpenedTrace(place, _folder_of(place, address, Path(name)))
        try:
            yield found
        except TraceUnreadable as error:
            raise TraceUnreadable(found.name_of(error.path), error.offset, error.reason, remedy=error.remedy) from None


def _folder_of(place: Path, address: str | None, temporary: Path) -> Path:
    fetched, folder = temporary / "fetched", temporary / "trace"
    with writing(temporary):
        fetched.mkdir()
        folder.mkdir()
    source = place if address is None else fetch(address, fetched)
    if not is_archive(source):
        return source if source.is_dir() else fetched
    try:
        unpack(source, folder)
    except TraceUnreadable as error:  # the archive was fetched
        raise TraceUnreadable(place, error.offset, error.reason, remedy=error.remedy) from None
    return folder
