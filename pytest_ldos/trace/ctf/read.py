"""Reads a directory of CTF traces, as LTTng writes them, to tables.

Reference: Common Trace Format 1.8.3 (LTTng 2.10 to 2.14, user space and kernel); CTF2-SPEC-2.0
(LTTng 2.15).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable
from pytest_ldos.trace.ctf import _decoder
from pytest_ldos.trace.ctf.files import METADATA, LinkedFile, OpenedTrace, SessionFiles, TraceInfo, find_files, opened
from pytest_ldos.trace.ctf.stats import Corruption, Gap, ReadStats, StreamStats

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
        values: numbers, one a row; for text, codes into `dictionary`; for lists of one
            length, shape ``(rows, length)``; for lists of varying length, all elements.
        dictionary: the distinct strings, for text columns; ``None`` for numbers.
        offsets: for lists of varying length, row ``i`` is
            ``values[offsets[i]:offsets[i + 1]]``; shape ``(rows + 1,)``.
        valid: one bool a row, false where the event had no such field; ``None`` where
            every row has a value.
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
        series += [_to_series(column) for column in self.columns.values()]
        return pl.DataFrame(series)


def _to_series(column: Column) -> pl.Series:
    import polars as pl  # noqa: PLC0415

    if column.dictionary is not None:
        return pl.Series(column.name, column.texts().tolist(), dtype=pl.String).cast(pl.Categorical)
    if column.offsets is not None or column.valid is not None:
        return pl.Series(column.name, list(column))
    return pl.Series(column.name, column.values)


THREADS_VARIABLE = "LDOS_THREADS"

Number = TypeVar("Number", np.int32, np.uint32)
Fields = Collection[str] | Mapping[str, Collection[str]]
OnCorrupt = Literal["refuse", "skip"]


@dataclass(frozen=True)
class DecodedTrace:
    """Tables of a trace, with their origins and losses.

    Attributes:
        events: the table of each event name, also of declared events that never occurred.
        traces: the traces that the tables' `trace` column refers to.
        stats: streams, and the losses in them.
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
    window: tuple[int, int] | None = None,
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
        on_corrupt: ``skip`` continues with the next good packet after a corrupt one (events
            before the damage are kept), reads a repeated packet once, and sorts the
            events of a stream whose time goes back; each is in `DecodedTrace.stats`. By default
            all three are refused.

    Raises:
        TraceUnreadable: no trace there, or one that is damaged or no CTF; names the
            file, the offset and the reason. A truncated last packet is no error: it is
            read up to its last whole event, and counted in `DecodedTrace.stats`.
        ConfigurationError: an argument that makes no sense.
    """
    if on_corrupt not in get_args(OnCorrupt):
        raise ConfigurationError(f"on_corrupt={on_corrupt!r} is none of {', '.join(get_args(OnCorrupt))}")
    count = thread_count(threads)
    with opened(Path(directory)) as trace:
        files = find_files(trace.folder)
        return decode_files(trace, files, events, fields, window, threads=count, skip_corrupt=on_corrupt == "skip")


def decode_files(
    opened_trace: OpenedTrace,
    files: SessionFiles,
    events: Collection[str] | None,
    fields: Fields | None,
    window: tuple[int, int] | None,
    *,
    threads: int,
    skip_corrupt: bool,
) -> DecodedTrace:
    """Reads the files of a trace; see `read_trace`."""
    by_event = isinstance(fields, Mapping)
    with named_errors():
        found = _decoder.decode(
            names_of(files),
            events=None if events is None else set(events),
            fields=set() if fields is None or by_event else set(fields),
            fields_of={name: set(names) for name, names in fields.items()} if isinstance(fields, Mapping) else {},
            window=window,
            threads=threads,
            skip_corrupt=skip_corrupt,
        )
    return _to_trace(opened_trace, files, found)


def names_of(files: SessionFiles) -> list[tuple[bytes, list[bytes]]]:
    """Names of the metadata and streams of each trace, for the decoder."""
    return [(os.fsencode(trace.metadata), [os.fsencode(path) for path in trace.streams]) for trace in files.traces]


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns the decoder's errors into errors with a remedy.

    Raises:
        TraceUnreadable: see `read_trace`.
    """
    try:
        yield
    except _decoder.Unreadable as error:
        name, offset, reason = error.args
        path = _to_path(name)
        raise TraceUnreadable(path, offset, reason, remedy=_remedy(path, offset, reason)) from None


def _to_path(name: bytes) -> Path:
    return Path(os.fsdecode(name))


SKIPPING = 'on_corrupt="skip"'
"""The argument that remedies name; the command line replaces it by its option."""

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


def thread_count(threads: int | None) -> int:
    """Number of decoding threads: the argument, ``LDOS_THREADS``, or one per CPU.

    Raises:
        ConfigurationError: not a number of threads.
    """
    if threads is None:
        text = os.environ.get(THREADS_VARIABLE)
        if text is None:
            return len(os.sched_getaffinity(0))
        if not text.isdigit():
            raise ConfigurationError(f"{THREADS_VARIABLE}={text!r} is not a number of threads")
        threads = int(text)
    if threads < 1:
        raise ConfigurationError(f"{threads} threads cannot read a trace", remedy="ask for at least one")
    return threads


def _to_trace(trace: OpenedTrace, files: SessionFiles, found: Mapping[str, Any]) -> DecodedTrace:
    linked = tuple(LinkedFile(trace.name_of(each.path), trace.name_of(each.same_as)) for each in files.linked)
    return DecodedTrace(
        directory=trace.place,
        events={table["name"]: _to_table(table) for table in found["tables"]},
        traces=tuple(_to_info(each, trace) for each in found["traces"]),
        stats=ReadStats(tuple(_to_stats(stream, trace) for stream in found["streams"]), linked),
    )


def _to_info(found: Mapping[str, Any], trace: OpenedTrace) -> TraceInfo:
    directory = trace.name_of(_to_path(found["metadata"]).parent)
    uuid = found["uuid"].hex() if found["uuid"] else ""
    return TraceInfo(
        directory,
        found["environment"],
        found["clock"],
        found["clock_offset_ns"],
        uuid=uuid,
        unread=tuple(found["unread"]),
        channels={number: frozenset(names) for number, names in found["channels"].items()},
    )


def _to_stats(found: Mapping[str, Any], trace: OpenedTrace) -> StreamStats:
    path = trace.name_of(_to_path(found["path"]))
    return StreamStats(
        path=path,
        trace=found["trace"],
        packets=found["packets"],
        events=found["events"],
        truncated_bytes=found["truncated_bytes"],
        gaps=tuple(Gap(*gap) for gap in found["gaps"]),
        corruptions=tuple(Corruption(path, *each) for each in found["corruptions"]),
        earlier_events=found["earlier_events"],
        repeated_packets=found["repeated_packets"],
        missing_bytes=found["missing_bytes"],
        missing_padding=found["missing_padding"],
        foreign_packets=found["foreign_packets"],
        backward_steps=found["backward_steps"],
        channel=found["channel"],
        missing_before_ns=found["missing_before_ns"],
        earlier_packets=found["earlier_packets"],
        missing_after_ns=found["missing_after_ns"],
    )


def _to_table(found: Mapping[str, Any]) -> EventTable:
    rows = len(found["timestamp_ns"])
    return EventTable(
        name=found["name"],
        timestamp_ns=found["timestamp_ns"],
        cpu_id=_for_each_row(found["cpu_id"], rows, np.int32),
        trace=_for_each_row(found["trace"], rows, np.uint32),
        columns={column["name"]: _to_column(column) for column in found["columns"]},
    )


def _for_each_row(number: Any, rows: int, dtype: type[Number]) -> npt.NDArray[Number]:
    """Returns an array unchanged, and repeats a single number `rows` times."""
    return np.broadcast_to(dtype(number), rows) if isinstance(number, int) else number


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
