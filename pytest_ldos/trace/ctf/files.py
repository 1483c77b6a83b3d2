"""Finds and opens the traces of a session directory, of an archive, or at an address such as ``s3://BUCKET/NAME.tar.zst``.

An archive is untrusted: only regular files are unpacked, none outside the given folder, and no more bytes than a
trace can have. A `Path` of an address has one slash after its scheme: ``s3:/BUCKET/NAME.tar.zst``.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NoReturn, TypeVar

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, Unavailable
from pytest_ldos.base.files import writing
from pytest_ldos.base.text import one_line
from pytest_ldos.trace.ctf.stats import LinkedFile

SUFFIXES: Final = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz", ".tbz2", ".tar.zst", ".zip")
"""File name suffixes of archives."""

MOST_FILES: Final = 100_000  # largest number of files in a trace; an archive or a place with more is refused
_LARGEST_RATIO: Final = 100  # largest compression ratio; traces of ROS 2 systems have 10 to 20
_ALWAYS: Final = 256 << 20  # bytes that any archive may expand to, whatever its size
_SHARE_OF_DISK: Final = 0.5
_CHUNK: Final = 1 << 20
_ELSEWHERE: Final = "unpack it where there is room, and name the folder"

_FAULTS: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,  # a compression method that Python does not support
    RuntimeError,  # a password is needed
    ValueError,
)

Member = tuple[str, IO[bytes] | None]  # name and content; ``None`` for a folder


def is_archive(place: Path) -> bool:
    return place.name.lower().endswith(SUFFIXES) and not place.is_dir()


def unpack(archive: Path, folder: Path) -> None:
    """Writes the files of an archive below a folder.

    Raises:
        TraceUnreadable: it is damaged, larger than a trace can be, or holds anything but files and folders.
        NotWritten, Unavailable: the disk is full, or the library for its compression is not installed.
    """
    try:
        room = min(archive.stat().st_size * _LARGEST_RATIO + _ALWAYS, _room_in(folder))
    except OSError as error:
        raise TraceUnreadable(archive, None, error.strerror or "cannot be read") from None
    with closing(_members(archive)) as members:
        _write_members(_unpacked(members, archive), folder, room=room, origin=archive)


def _room_in(folder: Path) -> int:
    return int(shutil.disk_usage(folder).free * _SHARE_OF_DISK)


def _write_members(members: Iterable[Member], folder: Path, *, room: int, origin: Path) -> None:
    """Writes files with untrusted names below a folder; `room` is their largest total size in bytes."""
    for number, (name, content) in enumerate(members):
        with content or nullcontext():
            if number >= MOST_FILES:
                raise TraceUnreadable(origin, None, f"has more than {MOST_FILES} files", remedy=_ELSEWHERE)
            pure = PurePosixPath(name)
            if pure.is_absolute() or ".." in pure.parts or "\0" in name:
                raise TraceUnreadable(origin, None, f"{name!r} in it leads out of it", remedy=_ELSEWHERE)
            room -= _write(folder / pure, content, room=room, origin=origin)


def _write(target: Path, content: IO[bytes] | None, *, room: int, origin: Path) -> int:
    size = 0
    with writing(target):
        (target if content is None else target.parent).mkdir(parents=True, exist_ok=True)
        if content is not None:
            with target.open("xb") as file:
                for chunk in _unpacked(iter(partial(content.read, _CHUNK), b""), origin):
                    size += file.write(chunk)
                    _refuse_too_large(room - size, origin)
    return size


def _refuse_too_large(room: int, origin: Path) -> None:
    if room < 0:
        reason = "is larger than a trace can be, or than half of the free disk"
        raise TraceUnreadable(origin, None, reason, remedy=_ELSEWHERE)


Part = TypeVar("Part", Member, bytes)


def _unpacked(parts: Iterator[Part], archive: Path) -> Iterator[Part]:
    """Turns errors of the unpacking libraries, including the decompressor's own, into `TraceUnreadable`."""
    while True:
        try:
            part = next(parts, None)
        except (*_FAULTS, getattr(sys.modules.get(_ZSTD), "ZstdError", EOFError)) as error:
            raise TraceUnreadable(archive, None, f"cannot be unpacked: {str(error) or type(error).__name__}") from None
        if part is None:
            return
        yield part


def _members(archive: Path) -> Generator[Member, None, None]:
    """Members of an archive, in order; each must be read before the next."""
    name = archive.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise _no_plain_file(archive, entry.filename)
                yield entry.filename, None if entry.is_dir() else zipped.open(entry)
        return
    stream: Any = _zstd().ZstdFile(archive) if name.endswith(".zst") else None
    with tarfile.open(None if stream else archive, mode="r|" if stream else "r|*", fileobj=stream) as tarred:
        for member in tarred:
            if not member.isfile() and not member.isdir():
                raise _no_plain_file(archive, member.name)
            yield member.name, tarred.extractfile(member) if member.isfile() else None


def _no_plain_file(archive: Path, name: str) -> TraceUnreadable:
    return TraceUnreadable(archive, None, f"{name!r} in it is neither file nor folder", remedy=_ELSEWHERE)


_ZSTD: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _zstd() -> Any:
    try:
        return import_module(_ZSTD)
    except ImportError:
        raise Unavailable(
            "an archive .tar.zst needs the package backports.zstd", remedy="pip install backports.zstd"
        ) from None


_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])")
_HERE: Final = frozenset({"file", "local"})


def address_of(place: Path) -> str | None:
    """The address that a path stands for; ``None`` for a local path."""
    found = _ADDRESS.match(str(place))
    if found is None or Path(f"{found[1]}:").exists():
        return None
    return _ADDRESS.sub(rf"{found[1]}://", str(place), count=1)


def fetch(address: str, folder: Path) -> Path:
    """Downloads a file, or a folder with its contents, to a folder; returns the file's copy, or `folder`.

    Raises:
        TraceUnreadable: nothing is there, it cannot be read, or it is too large.
        Unavailable: fsspec or its part for this kind of address is not installed.
        ConfigurationError, NotWritten: the address is no remote one, or the disk is full.
    """
    origin = Path(address)
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(f"{address} needs the package fsspec", remedy="pip install 'pytest-ldos[fleet]'") from None
    if address.partition(":")[0] in _HERE:
        raise ConfigurationError(f"{address} is on this machine", remedy="name its path")
    try:
        files, root = url_to_fs(address)
        is_file = files.isfile(root)
        found = [root] if is_file else sorted(files.find(root))
    except ImportError as error:
        raise Unavailable(f"{address} cannot be read: {error}", remedy="install what it names") from None
    except Exception as error:  # noqa: BLE001 - each kind of address has errors of its own
        raise _unreadable(origin, error) from None
    if not found:
        raise TraceUnreadable(origin, None, "nothing is there")
    base = PurePosixPath(root).parent if is_file else PurePosixPath(root)
    _write_members(_contents(files, found, base, origin), folder, room=_room_in(folder), origin=origin)
    return folder / PurePosixPath(root).name if is_file else folder


def _contents(files: Any, found: list[str], base: PurePosixPath, origin: Path) -> Iterator[Member]:
    for name in found:
        try:
            with files.open(name, "rb") as content:
                yield str(PurePosixPath(name).relative_to(base)), content
        except (TraceUnreadable, GeneratorExit):
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise _unreadable(origin, error) from None


def _unreadable(origin: Path, error: Exception) -> TraceUnreadable:
    return TraceUnreadable(origin, None, f"cannot be fetched: {one_line(str(error) or type(error).__name__)}")


METADATA = "metadata"


@dataclass(frozen=True)
class TraceFiles:
    metadata: Path
    streams: tuple[Path, ...]


@dataclass
class SessionFiles:
    """All traces below a directory; a file reached through several links counts once."""

    traces: list[TraceFiles] = field(default_factory=list)
    linked: list[LinkedFile] = field(default_factory=list)


def find_files(root: Path) -> SessionFiles:
    """Finds every directory at or below `root` that holds a file named ``metadata``; follows links to directories.

    Index files are ignored: they may be absent, stale or corrupt, and packets contain the same information.

    Raises:
        TraceUnreadable: no such directory, no permission, or no trace.
    """
    try:
        is_directory = root.is_dir()
    except OSError as error:
        _refuse(error)
    if not is_directory:
        raise no_trace(root)
    found = SessionFiles()
    known: dict[tuple[int, int], Path] = {}
    for folder, names in _walk(root):
        if METADATA not in names:
            continue
        files = [
            folder / name
            for name in sorted(names)
            if name != METADATA and not name.startswith(".") and not name.endswith(".idx")
        ]
        streams = []
        for path in files:
            same_as = known.setdefault(_identity(path), path)
            if same_as is path:
                streams.append(path)
            else:
                found.linked.append(LinkedFile(path, same_as))
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
    if not place.exists():
        return TraceUnreadable(place, None, "there is no such directory")
    if place.is_dir():
        return _no_trace_in(place)
    try:
        with place.open("rb") as file:
            begin = file.read(16)
    except OSError as error:
        return TraceUnreadable(place, None, error.strerror or "cannot be read")
    for first, reason, remedy in _KINDS_OF_FILES:
        if begin.startswith(first):
            return TraceUnreadable(place, None, reason, remedy=remedy)
    return TraceUnreadable(
        place, None, "is a file, and no archive of a trace", remedy="name the directory that holds `metadata`"
    )


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


def _refuse(error: OSError) -> NoReturn:
    is_closed = isinstance(error, PermissionError)
    remedy = "read it as the user who recorded it, or change its permissions" if is_closed else ""
    raise TraceUnreadable(Path(error.filename), None, error.strerror or "cannot be listed", remedy=remedy) from error


@dataclass(frozen=True)
class OpenedTrace:
    """A trace whose files can be read: its place as given, and the folder that they are in."""

    place: Path
    folder: Path

    def name_of(self, path: Path) -> Path:
        """A file's name relative to the place of the trace."""
        return self.place / path.relative_to(self.folder) if path.is_relative_to(self.folder) else path


@contextmanager
def opened(place: Path) -> Iterator[OpenedTrace]:
    """Opens a trace; an archive or an address is unpacked to a temporary folder for the ``with`` block.

    Raises the errors of `fetch` and `unpack`. A `TraceUnreadable` of the block names files as `OpenedTrace` does.
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
