"""Traces at addresses such as ``s3://BUCKET/NAME.tar.zst``, fetched through fsspec.

A `Path` of an address has one slash after its scheme: ``s3:/BUCKET/NAME.tar.zst``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.trace.ctf.archive import Member, room_in, write_members

_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])")
_HERE: Final = frozenset({"file", "local"})


def address_of(place: Path) -> str | None:
    """The address that a path stands for; ``None`` for a place on this machine."""
    found = _ADDRESS.match(str(place))
    if found is None or Path(f"{found[1]}:").exists():
        return None
    return _ADDRESS.sub(rf"{found[1]}://", str(place), count=1)


def fetch(address: str, folder: Path) -> Path:
    """Copies what lies at an address, a file or a folder with all below it, to a folder.

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
