"""The folder of a trace, wherever the trace lies: a folder here, an archive, or an address."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.writable import writing
from pytest_ldos.trace.ctf.archive import is_archive, unpack
from pytest_ldos.trace.ctf.remote import address_of, fetch


@dataclass(frozen=True)
class OpenedTrace:
    """A trace whose files can be read.

    Attributes:
        place: the trace as it was asked for.
        folder: its files; `place` itself unless they were fetched or unpacked.
    """

    place: Path
    folder: Path

    def name_of(self, path: Path) -> Path:
        """A file of the trace as seen from its place."""
        return self.place / path.relative_to(self.folder) if path.is_relative_to(self.folder) else path


@contextmanager
def opened(place: Path) -> Iterator[OpenedTrace]:
    """The folder of a trace; a temporary one for as long as the context lasts if it is an archive or an address.

    Raises:
        TraceUnreadable: it cannot be fetched or unpacked; errors within the context name files as `OpenedTrace` does.
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
    except TraceUnreadable as error:  # of an archive that was fetched
        raise TraceUnreadable(place, error.offset, error.reason, remedy=error.remedy) from None
    return folder
