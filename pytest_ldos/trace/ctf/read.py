"""Reads a directory of CTF traces, as LTTng writes them, to tables, at once or in consecutive time windows.

Reference: Common Trace Format 1.8.3 (LTTng 2.10 to 2.14, user space and kernel); CTF2-SPEC-2.0 (LTTng 2.15).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.errors import TraceUnreadable, require
from pytest_ldos.trace.ctf import _decoder
from pytest_ldos.trace.ctf.files import METADATA, OpenedTrace, SessionFiles, find_files, opened
from pytest_ldos.trace.ctf.stats import Corruption, Gap, LinkedFile, ReadStats, StreamStats, TraceInfo

if TYPE_CHECKING:
    import polars as pl


Int64Array = npt.NDArray[np.int64]
NumberArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Label:
    """One name of an enumeration, for the values from `first` to `last`."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Column:
    """One field of all events of a name.

    Attributes:
        values: numbers, one a row; for text, codes into `dictionary`; for lists of one length,
            shape ``(rows, length)``; for lists of varying length, all elements.
        dictionary: the distinct strings, for text columns; ``None`` for numbers.
        offsets: for lists of varying length, row ``i`` is ``values[offsets[i]:offsets[i + 1]]``; shape ``(rows + 1,)``.
        valid: one bool a row, false where the event had no such field; ``None`` where every row has a value.
        labels: the names an enumeration gives to its values.
    """

    name: str
    values: NumberArray
    dictionary: tuple[str, ...] | None = None
    offsets: Int64Array | None = None
    valid: npt.NDArray[np.bool_] | None = None
    labels: tuple[Label, ...] = ()

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, row: int) -> Any:
        """The value of one row as a Python object, ``None`` where it is missing."""
        if self.valid is not None and not self.valid[row]:
            return None
        if self.offsets is not None:
            return self.values[self.offsets[row] : self.offsets[row + 1]].tolist()
        value = self.values[row].tolist()
        return value if self.dictionary is None else self.dictionary[value]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def texts(self) -> npt.NDArray[np.object_]:
        """Strings of a text column, one a row; missing rows are ``None``."""
        if self.dictionary is None:
            raise TypeError(f"column {self.name!r} holds numbers, not text")
        words = np.array([*self.dictionary, None], dtype=object)
        codes = self.values if self.valid is None else np.where(self.valid, self.values, len(words) - 1)
        return words[codes]


@dataclass(frozen=True)
class EventTable:
    """All events of one name, in time order.

    Attributes:
        name: as in the trace, e.g. ``ros2:callback_start``.
        timestamp_ns: nanoseconds since the epoch (the trace's clock plus its offset), as
            babeltrace2 rounds them; 0 where the trace has no clock (`TraceInfo.clock`).
        cpu_id: the CPU that wrote the event, -1 where the trace does not say.
        trace: index into `DecodedTrace.traces`.
        columns: contexts (``vpid``, ``vtid``, …) and payload by name; a payload field with
            the name of a context gets the prefix ``payload_``.
    """

    name: str
    timestamp_ns: Int64Array
    cpu_id: npt.NDArray[np.int32]
    trace: npt.NDArray[np.uint32]
    columns: Mapping[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.timestamp_ns)

    def __getitem__(self, name: str) -> NumberArray:
        """Numbers of a column (codes, for text)."""
        return self.columns[name].values

    def frame(self) -> pl.DataFrame:
        """The table as a Polars frame; text as ``Categorical``, lists as ``List``."""
        import polars as pl  # noqa: PLC0415 - most users of a table need no frames

        series = [pl.Series("timestamp_ns", self.timestamp_ns), pl.Series("cpu_id", self.cpu_id)]
        for column in self.columns.values():
            if column.dictionary is not None:
                series.append(pl.Series(column.name, column.texts().tolist(), dtype=pl.String).cast(pl.Categorical))
            elif column.offsets is not None or column.valid is not None:
                series.append(pl.Series(column.name, list(column)))
            else:
                series.append(pl.Series(column.name, column.values))
        return pl.DataFrame(series)


THREADS_VARIABLE = "LDOS_THREADS"

Fields = Collection[str] | Mapping[str, Collection[str]]
OnCorrupt = Literal["refuse", "skip"]
Window = tuple[int, int]  # first and last moment, nanoseconds since the epoch


@dataclass(frozen=True)
class DecodedTrace:
    """Tables of a trace, with their origins and losses.

    Attributes:
        events: the table of each event name, also of declared events that never occurred.
        traces: the traces that the tables' `trace` column refers to.
    """

    directory: Path
    events: Mapping[str, EventTable]
    traces: tuple[TraceInfo, ...]
    stats: ReadStats

    def __len__(self) -> int:
        return sum(len(table) for table in self.events.values())


def read_trace(
    directory: str | os.PathLike[str],
    *,
    events: Collection[str] | None = None,
    fields: Fields | None = None,
    window: Window | None = None,
    threads: int | None = None,
    on_corrupt: OnCorrupt = "refuse",
) -> DecodedTrace:
    """Reads every trace below `directory`, merged by time.

    Args:
        directory: a trace, a session directory with several, an archive of one (``.tar.zst``, ``.tar.gz``, ``.tar.xz``,
            ``.tar.bz2``, ``.zip``), or an address that fsspec reads (``s3://…``).
        events: names to read; all by default. Others are skipped, not materialised.
        fields: columns to read, for all events or by event name; all by default.
        window: first and last moment, nanoseconds since the epoch.
        threads: number of decoding threads; ``LDOS_THREADS`` or the number of CPUs by default.
        on_corrupt: ``skip`` continues with the next good packet after a corrupt one (events before the damage are
            kept), reads a repeated packet once, and sorts the events of a stream whose time goes back; each is in
            `DecodedTrace.stats`. By default all three are refused.

    Raises:
        TraceUnreadable: no trace there, or one that is damaged or no CTF; names the
            file, the offset and the reason. A truncated last packet is no error: it is
            read up to its last whole event, and counted in `DecodedTrace.stats`.
        ConfigurationError: an argument that makes no sense.
    """
    count, skips = _thread_count(threads), _skips_corrupt(on_corrupt)
    with opened(Path(directory)) as trace:
        files = find_files(trace.folder)
        with _named_errors():
            streams = _decoder.open_streams(names_of(files), threads=count, skip_corrupt=skips)
        return _decode(trace, files, streams, events, fields, window, threads=count)


def _skips_corrupt(on_corrupt: OnCorrupt) -> bool:
    require(on_corrupt in get_args(OnCorrupt), f"on_corrupt={on_corrupt!r} is none of {', '.join(get_args(OnCorrupt))}")
    return on_corrupt == "skip"


def _decode(
    trace: OpenedTrace,
    files: SessionFiles,
    streams: _decoder.Opened,
    events: Collection[str] | None,
    fields: Fields | None,
    window: Window | None,
    *,
    threads: int,
) -> DecodedTrace:
    by_event = {name: set(names) for name, names in fields.items()} if isinstance(fields, Mapping) else {}
    with _named_errors():
        found = streams.decode(
            events=None if events is None else set(events),
            fields=set() if fields is None or isinstance(fields, Mapping) else set(fields),
            fields_of=by_event,
            window=window,
            threads=threads,
        )
    linked = tuple(LinkedFile(trace.name_of(each.path), trace.name_of(each.same_as)) for each in files.linked)
    return DecodedTrace(
        directory=trace.place,
        events={table["name"]: _to_table(table) for table in found["tables"]},
        traces=tuple(_to_info(each, trace) for each in found["traces"]),
        stats=ReadStats(tuple(_to_stats(stream, trace) for stream in found["streams"]), linked),
    )


def names_of(files: SessionFiles) -> list[tuple[bytes, list[bytes]]]:
    return [(os.fsencode(trace.metadata), [os.fsencode(path) for path in trace.streams]) for trace in files.traces]


@contextmanager
def _named_errors() -> Iterator[None]:
    """Turns the decoder's errors into `TraceUnreadable`, with a remedy."""
    try:
        yield
    except _decoder.Unreadable as error:
        name, offset, reason = error.args
        path = Path(os.fsdecode(name))
        raise TraceUnreadable(path, offset, reason, remedy=_remedy(path, offset, reason)) from None


SKIPPING = 'on_corrupt="skip"'  # the argument that remedies name; the command line replaces it by its option

_REMEDIES = (
    ("here twice", f"take one of them away, or read with {SKIPPING}, which counts it once"),
    ("time goes back", f"record with a 64-bit clock; {SKIPPING} sorts the events by the times they have"),
    ("while it was recorded", "stop the recording session (`lttng stop`), then read or copy the trace"),
    ("in one order", "read the one and the other by themselves"),
    ("text that begins neither", "if it was taken out of packets of CTF 1.8, put `/* CTF 1.8 */` in front"),
    ("Permission denied", "read it as the user who recorded it, or change its permissions"),
)
"""Remedies by words in the decoder's message."""


def _remedy(path: Path, offset: int | None, reason: str) -> str:
    if known := next((remedy for words, remedy in _REMEDIES if words in reason), ""):
        return known
    if path.name == METADATA and ("are not read" in reason or "are not known" in reason):
        return "LTTng 2.15 and later record what is read with `lttng create --trace-format=ctf-1.8`"
    if path.name == METADATA or offset is None:
        return ""
    return f"read with {SKIPPING} to go on behind the damage"


def _thread_count(threads: int | None) -> int:
    if threads is None:
        text = os.environ.get(THREADS_VARIABLE)
        if text is None:
            return len(os.sched_getaffinity(0))
        require(text.isdigit(), f"{THREADS_VARIABLE}={text!r} is not a number of threads")
        threads = int(text)
    require(threads >= 1, f"{threads} threads cannot read a trace", remedy="ask for at least one")
    return threads


def _to_info(found: Mapping[str, Any], trace: OpenedTrace) -> TraceInfo:
    return TraceInfo(
        trace.name_of(Path(os.fsdecode(found["metadata"])).parent),
        found["environment"],
        found["clock"],
        found["clock_offset_ns"],
        uuid=found["uuid"].hex() if found["uuid"] else "",
        unread=tuple(found["unread"]),
        channels={number: frozenset(names) for number, names in found["channels"].items()},
    )


def _to_stats(found: Mapping[str, Any], trace: OpenedTrace) -> StreamStats:
    path = trace.name_of(Path(os.fsdecode(found["path"])))
    gaps = tuple(Gap(*gap) for gap in found["gaps"])
    corruptions = tuple(Corruption(path, *each) for each in found["corruptions"])
    return StreamStats(**{**found, "path": path, "gaps": gaps, "corruptions": corruptions})


def _to_table(found: Mapping[str, Any]) -> EventTable:
    rows = len(found["timestamp_ns"])
    return EventTable(
        name=found["name"],
        timestamp_ns=found["timestamp_ns"],
        cpu_id=np.broadcast_to(np.asarray(found["cpu_id"], dtype=np.int32), rows),
        trace=np.broadcast_to(np.asarray(found["trace"], dtype=np.uint32), rows),
        columns={column["name"]: _to_column(column) for column in found["columns"]},
    )


def _to_column(found: Mapping[str, Any]) -> Column:
    dictionary = found.get("dictionary")
    return Column(
        name=found["name"],
        values=found["values"],
        dictionary=None if dictionary is None else tuple(dictionary),
        offsets=found.get("offsets"),
        valid=found["valid"],
        labels=tuple(Label(*label) for label in found["labels"]),
    )


WINDOW_BYTES: Final = 48 << 20  # default size of a window's packets in bytes: about 1.2 million events
_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1
_MOST_WINDOWS: Final = 1_000_000


@dataclass(frozen=True)
class WindowedTrace:
    """A trace that stays open while its windows are read; they are in order, and cover it without overlap."""

    windows: tuple[Window, ...]
    _opened: OpenedTrace
    _files: SessionFiles
    _streams: _decoder.Opened
    _sizes: dict[Path, int]
    threads: int

    def read(
        self, *, events: Collection[str], fields: Fields | None = None, window: Window | None = None
    ) -> DecodedTrace:
        """Like `read_trace`; also raises `TraceUnreadable` if the trace was written to since it was opened."""
        self._check_sizes()  # a page that was cut off cannot be read
        found = _decode(self._opened, self._files, self._streams, events, fields, window, threads=self.threads)
        self._check_sizes()  # late events would belong to windows that were already read
        return found

    def count(self, *, events: Collection[str], by: Sequence[str]) -> dict[str, EventTable]:
        """Counts events by the values of some fields: a row for each combination, with the number in `COUNT`.

        Other fields of an event are 0, as is the time. Raises as `read`.
        """
        self._check_sizes()
        with _named_errors():
            found = self._streams.tally(events=set(events), by=list(by), threads=self.threads)
        self._check_sizes()
        return {name: _counted_table(name, by, *each) for name, each in found.items()}

    def _check_sizes(self) -> None:
        changed = next((path for path, size in self._sizes.items() if _size(path) != size), None)
        if changed is not None:
            reason = "was written to while the trace was read in windows"
            remedy = "stop the recording session (`lttng stop`), then read or copy the trace"
            raise TraceUnreadable(self._opened.name_of(changed), None, reason, remedy=remedy)

    @property
    def folder(self) -> Path:
        return self._opened.folder


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
    """Opens a trace for reading in windows; see `read_trace` for its other arguments, and for `TraceUnreadable`.

    Args:
        window_ns: length of each window. By default, windows have similar sizes and different lengths.
        window_bytes: size of a window if `window_ns` is not given.
        borders_ns: start of each window but the first, ascending; replaces the other two.

    Raises:
        ConfigurationError: a window has no length, or there are too many.
    """
    count, skips = _thread_count(threads), _skips_corrupt(on_corrupt)
    with opened(Path(directory)) as trace:
        files = find_files(trace.folder)
        sizes = {path: _size(path) for each in files.traces for path in each.streams}
        with _named_errors():
            streams = _decoder.open_streams(names_of(files), threads=count, skip_corrupt=skips)
        spans = streams.packet_spans()
        if borders_ns is None:
            borders_ns = _borders(spans, window_bytes) if window_ns is None else _regular(spans, window_ns)
        begins, ends = [_FIRST_NS, *borders_ns], [*(border - 1 for border in borders_ns), _LAST_NS]
        yield WindowedTrace(tuple(zip(begins, ends, strict=True)), trace, files, streams, sizes, count)


COUNT: Final = "number of events"


def _counted_table(name: str, by: Sequence[str], fields: Sequence[str], rows: Sequence[Any]) -> EventTable:
    zeros = np.zeros(len(rows), dtype=np.int64)
    columns = {each: Column(name=each, values=zeros) for each in fields}
    for field_name, values in zip(by, zip(*(values for _, _, values in rows), strict=True), strict=False):
        if field_name in columns:
            columns[field_name] = _counted_column(field_name, values)
    columns[COUNT] = Column(name=COUNT, values=np.array([events for _, events, _ in rows], dtype=np.int64))
    trace = np.array([number for number, _, _ in rows], dtype=np.uint32)
    return EventTable(name, zeros, zeros.astype(np.int32), trace, columns)


def _counted_column(name: str, found: Sequence[int | str | None]) -> Column:
    valid = np.array([value is not None for value in found])
    words = tuple(dict.fromkeys(value for value in found if isinstance(value, str)))
    code = {word: number for number, word in enumerate(words)}
    values = np.array([code[each] if isinstance(each, str) else each or 0 for each in found], dtype=np.int64)
    return Column(name=name, values=values, dictionary=words or None, valid=None if valid.all() else valid)


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
    require(window_ns > 0, "a window needs a length", remedy="give a number of seconds above 0")
    if not spans:
        return []
    first_ns, last_ns = min(begin for begin, _, _ in spans), max(end for _, end, _ in spans)
    problem = f"windows of {window_ns / 1e9:g} s are more than {_MOST_WINDOWS} in this trace"
    require((last_ns - first_ns) // window_ns <= _MOST_WINDOWS, problem, remedy="make them longer")
    return list(range(first_ns + window_ns, last_ns + 1, window_ns))
