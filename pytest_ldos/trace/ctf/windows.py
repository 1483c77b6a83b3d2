"""Reads a trace in consecutive time windows, so that memory holds only one window's columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf import _decoder
from pytest_ldos.trace.ctf.files import OpenedTrace, SessionFiles, find_files, opened
from pytest_ldos.trace.ctf.read import (
    DecodedTrace,
    Fields,
    OnCorrupt,
    decode_files,
    named_errors,
    names_of,
    thread_count,
)

Window = tuple[int, int]
"""First and last moment, nanoseconds since the epoch."""

WINDOW_BYTES: Final = 64 << 20
"""Default size of a window's packets in bytes: about 1.5 million events."""

_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1
_MOST_WINDOWS: Final = 1_000_000


@dataclass(frozen=True)
class WindowedTrace:
    """A trace that stays open while its windows are read.

    Attributes:
        windows: in order; they cover the trace without overlap.
        threads: number of decoding threads.
    """

    windows: tuple[Window, ...]
    _opened: OpenedTrace
    _files: SessionFiles
    _sizes: dict[Path, int]
    _skip_corrupt: bool
    threads: int

    def read(
        self, *, events: Collection[str], fields: Fields | None = None, window: Window | None = None
    ) -> DecodedTrace:
        """Reads a window, or the whole trace; see `read_trace`.

        Raises:
            TraceUnreadable: it is damaged, or was written to since it was opened.
        """
        found = decode_files(
            self._opened,
            self._files,
            events,
            fields,
            window,
            threads=self.threads,
            skip_corrupt=self._skip_corrupt,
        )
        self._require_unchanged()
        return found

    @property
    def folder(self) -> Path:
        """Folder of the files that are read."""
        return self._opened.folder

    def _require_unchanged(self) -> None:
        """Refuses a trace that grows: late events would belong to windows that were already read."""
        grown = next((path for path, size in self._sizes.items() if _size(path) != size), None)
        if grown is not None:
            raise TraceUnreadable(
                self._opened.name_of(grown),
                None,
                "was written to while the trace was read in windows",
                remedy="stop the recording session (`lttng stop`), then read or copy the trace",
            )


@contextmanager
def open_in_windows(
    directory: str | os.PathLike[str],
    *,
    window_ns: int | None = None,
    window_bytes: int = WINDOW_BYTES,
    borders_ns: Sequence[int] | None = None,
    threads: int | None = None,
    on_corrupt: OnCorrupt = "refuse",
) -> Iterator[WindowedTrace]:
    """Opens a trace for reading in windows.

    Args:
        directory, threads, on_corrupt: see `read_trace`.
        window_ns: length of each window. By default, windows have similar sizes and different lengths.
        window_bytes: size of a window if `window_ns` is not given.
        borders_ns: start of each window but the first, ascending; replaces the other two.

    Raises:
        TraceUnreadable: see `read_trace`.
        ConfigurationError: a window has no length, or there are too many.
    """
    count = thread_count(threads)
    with opened(Path(directory)) as trace:
        files = find_files(trace.folder)
        sizes = {path: _size(path) for each in files.traces for path in each.streams}
        with named_errors():
            spans = _decoder.packet_spans(names_of(files), skip_corrupt=on_corrupt == "skip")
        if borders_ns is None:
            borders_ns = _borders(spans, window_bytes) if window_ns is None else _regular(spans, window_ns)
        yield WindowedTrace(tuple(_between(borders_ns)), trace, files, sizes, on_corrupt == "skip", count)


def content_bytes(directory: str | os.PathLike[str]) -> int:
    """Size of a local trace's files; 0 for an archive or an address, whose size is no guide."""
    folder = Path(directory)
    if not folder.is_dir():
        return 0
    return sum(_size(path) for each in find_files(folder).traces for path in each.streams)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise TraceUnreadable(path, None, error.strerror or "cannot be read") from None


def _borders(spans: Sequence[tuple[int, int, int]], window_bytes: int) -> list[int]:
    """Borders of windows of similar sizes; events are assumed to be spread evenly over a packet."""
    if not spans:
        return []
    begin_ns, end_ns, size = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    count = int(size.sum()) // window_bytes + 1
    grains = np.maximum(size * 16 // window_bytes, 1)
    packet = np.repeat(np.arange(len(size)), grains)
    nth = np.arange(len(packet)) - np.repeat(np.cumsum(grains) - grains, grains)
    moments = begin_ns[packet] + (end_ns - begin_ns)[packet] // grains[packet] * nth
    order = np.argsort(moments, kind="stable")
    until = np.cumsum((size // grains)[packet][order])
    wanted = np.searchsorted(until, np.arange(1, count) * (until[-1] // count))
    return [int(moment) for moment in np.unique(moments[order][wanted])]


def _regular(spans: Sequence[tuple[int, int, int]], window_ns: int) -> list[int]:
    if window_ns <= 0:
        raise ConfigurationError("a window needs a length", remedy="give a number of seconds above 0")
    if not spans:
        return []
    first_ns, last_ns = min(begin for begin, _, _ in spans), max(end for _, end, _ in spans)
    if (last_ns - first_ns) // window_ns > _MOST_WINDOWS:
        raise ConfigurationError(
            f"windows of {window_ns / 1e9:g} s are more than {_MOST_WINDOWS} in this trace", remedy="make them longer"
        )
    return list(range(first_ns + window_ns, last_ns + 1, window_ns))


def _between(borders_ns: Sequence[int]) -> Iterator[Window]:
    begin = _FIRST_NS
    for border in borders_ns:
        yield begin, border - 1
        begin = border
    yield begin, _LAST_NS
