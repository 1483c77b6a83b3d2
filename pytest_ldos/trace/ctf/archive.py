"""Session directories in archives, and at addresses such as ``s3://BUCKET/NAME.tar.zst``.

An archive is untrusted: only regular files are unpacked, none outside the given folder, and no more bytes than a
trace can have.

A `Path` of an address has one slash after its scheme: ``s3:/BUCKET/NAME.tar.zst``.
"""

from __future__ import annotations

import lzma
import re
import shutil
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.base.writable import writing

SUFFIXES: Final = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz", ".tbz2", ".tar.zst", ".zip")
"""File name suffixes of archives."""

MOST_FILES: Final = 100_000
"""Largest number of files in a trace; an archive or a place with more is refused."""

_LARGEST_RATIO: Final = 100
"""Largest compression ratio; traces of ROS 2 systems have 10 to 20."""

_ALWAYS: Final = 256 << 20
"""Bytes that any archive may expand to, whatever its size."""

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

Member = tuple[str, IO[bytes] | None]
"""Name and content; ``None`` for a folder."""


def is_archive(place: Path) -> bool:
    """True if the name is that of an archive and is no folder."""
    return place.name.lower().endswith(SUFFIXES) and not place.is_dir()


def unpack(archive: Path, folder: Path) -> None:
    """Writes the files of an archive below a folder.

    Raises:
        TraceUnreadable: it is damaged, larger than a trace can be, or holds anything but files and folders.
        NotWritten: the disk is full.
        Unavailable: the library for its compression is not installed.
    """
    try:
        room = min(archive.stat().st_size * _LARGEST_RATIO + _ALWAYS, room_in(folder))
    except OSError as error:
        raise TraceUnreadable(archive, None, error.strerror or "cannot be read") from None
    with _opened(archive) as members:
        write_members(_readable(archive, members), folder, room=room, origin=archive)


def room_in(folder: Path) -> int:
    """Bytes that a trace may take on the disk of a folder."""
    return int(shutil.disk_usage(folder).free * _SHARE_OF_DISK)


def write_members(members: Iterable[Member], folder: Path, *, room: int, origin: Path) -> None:
    """Writes files with untrusted names below a folder.

    Args:
        room: largest total size in bytes.
        origin: the archive or address, for errors.

    Raises:
        TraceUnreadable: see `unpack`.
        NotWritten: the disk is full.
    """
    for number, (name, content) in enumerate(members):
        if number >= MOST_FILES:
            raise TraceUnreadable(origin, None, f"has more than {MOST_FILES} files", remedy=_ELSEWHERE)
        with content or nullcontext():
            room -= _write(_inside(folder, name, origin), content, room=room, origin=origin)


def _write(target: Path, content: IO[bytes] | None, *, room: int, origin: Path) -> int:
    """Writes one file or folder, and returns its size."""
    size = 0
    with writing(target):
        (target if content is None else target.parent).mkdir(parents=True, exist_ok=True)
        if content is not None:
            with target.open("xb") as file:
                for chunk in _chunks(content, origin):
                    size += file.write(chunk)
                    _refuse_too_large(room - size, origin)
    return size


def _refuse_too_large(room: int, origin: Path) -> None:
    if room < 0:
        reason = "is larger than a trace can be, or than half of the free disk"
        raise TraceUnreadable(origin, None, reason, remedy=_ELSEWHERE)


def _inside(folder: Path, name: str, origin: Path) -> Path:
    """Path of a file in a folder.

    Raises:
        TraceUnreadable: its name leads out of the folder.
    """
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\0" in name:
        raise TraceUnreadable(origin, None, f"{name!r} in it leads out of it", remedy=_ELSEWHERE)
    return folder / pure


def _chunks(content: IO[bytes], origin: Path) -> Iterator[bytes]:
    """Content in chunks; errors of reading are raised as other types than those of writing."""
    try:
        while chunk := content.read(_CHUNK):
            yield chunk
    except _faults() as error:
        raise _damaged(origin, error) from None


def _readable(archive: Path, members: Iterator[Member]) -> Iterator[Member]:
    while True:
        try:
            member = next(members)
        except StopIteration:
            return
        except _faults() as error:
            raise _damaged(archive, error) from None
        yield member


def _damaged(archive: Path, error: BaseException) -> TraceUnreadable:
    return TraceUnreadable(archive, None, f"cannot be unpacked: {str(error) or type(error).__name__}")


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[Member]]:
    """Members of an archive, in order; each must be read before the next."""
    name = archive.name.lower()
    try:
        if name.endswith(".zip"):
            whole: Any = zipfile.ZipFile(archive)
        elif name.endswith(".zst"):
            whole = tarfile.open(fileobj=_zstd().ZstdFile(archive), mode="r|")  # noqa: SIM115 - closed below
        else:
            whole = tarfile.open(archive, mode="r|*")  # noqa: SIM115
    except _faults() as error:
        raise _damaged(archive, error) from None
    with whole:
        yield _zipped(whole, archive) if isinstance(whole, zipfile.ZipFile) else _tarred(whole, archive)


def _tarred(whole: tarfile.TarFile, archive: Path) -> Iterator[Member]:
    for member in whole:
        if not member.isfile() and not member.isdir():
            raise _no_plain_file(archive, member.name)
        yield member.name, whole.extractfile(member) if member.isfile() else None


def _zipped(whole: zipfile.ZipFile, archive: Path) -> Iterator[Member]:
    for member in whole.infolist():
        if stat.S_ISLNK(member.external_attr >> 16):
            raise _no_plain_file(archive, member.filename)
        if member.is_dir():
            yield member.filename, None
            continue
        yield member.filename, whole.open(member)


def _no_plain_file(archive: Path, name: str) -> TraceUnreadable:
    return TraceUnreadable(archive, None, f"{name!r} in it is neither file nor folder", remedy=_ELSEWHERE)


def _faults() -> tuple[type[BaseException], ...]:
    """Exceptions of the unpacking libraries, including the decompressor's own."""
    library = sys.modules.get(_ZSTD)
    return _FAULTS if library is None else (*_FAULTS, library.ZstdError)


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
    """Downloads a file, or a folder with its contents, from an address to a folder.

    Returns:
        The file's copy, or `folder`.

    Raises:
        TraceUnreadable: nothing is there, it cannot be read, or it is too large.
        Unavailable: fsspec or its part for this kind of address is not installed.
        ConfigurationError: the address is no remote one.
        NotWritten: the disk is full.
    """
    origin = Path(address)
    files, root = _file_system(address)
    try:
        is_file = files.isfile(root)
        found = [root] if is_file else sorted(files.find(root))
    except Exception as error:  # noqa: BLE001 - each kind of address has errors of its own
        raise _unreadable(origin, error) from None
    if not found:
        raise TraceUnreadable(origin, None, "nothing is there")
    base = PurePosixPath(root).parent if is_file else PurePosixPath(root)
    members = _contents(files, found, base, origin)
    write_members(members, folder, room=room_in(folder), origin=origin)
    return folder / PurePosixPath(root).name if is_file else folder


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(f"{address} needs the package fsspec", remedy="pip install 'pytest-ldos[fleet]'") from None
    scheme = address.partition(":")[0]
    if scheme in _HERE:
        raise ConfigurationError(f"{address} is on this machine", remedy="name its path")
    try:
        files, root = url_to_fs(address)
    except ImportError as error:
        raise Unavailable(f"{address} cannot be read: {error}", remedy="install what it names") from None
    except Exception as error:  # noqa: BLE001 - as above
        raise _unreadable(Path(address), error) from None
    return files, str(root)


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
