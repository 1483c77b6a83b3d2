"""A directory of CTF 1.8 traces, as LTTng writes them, to tables.

Reference: Common Trace Format 1.8.3; LTTng-UST and lttng-modules metadata of 2.10 to 2.14.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pytest_ldos.ctf import _decoder
from pytest_ldos.ctf.stats import Gap, ReadStats, StreamStats
from pytest_ldos.ctf.tables import Column, EventTable, Label
from pytest_ldos.errors import ConfigurationError, TraceUnreadable

METADATA = "metadata"
THREADS_VARIABLE = "LDOS_THREADS"

Number = TypeVar("Number", np.int32, np.uint32)
Fields = Collection[str] | Mapping[str, Collection[str]]


@dataclass(frozen=True)
class TraceInfo:
    """One trace of a session directory: a domain, or a buffer owner (uid, pid).

    Attributes:
        directory: where its metadata lies.
        environment: the ``env`` block (``hostname``, ``domain``, ``tracer_name``, …).
        clock: name of the clock that stamps events.
        clock_offset_ns: nanoseconds from that clock's zero to the epoch.
    """

    directory: Path
    environment: Mapping[str, str | int]
    clock: str
    clock_offset_ns: int


@dataclass(frozen=True)
class DecodedTrace:
    """Everything that was read.

    Attributes:
        events: the table of each event name, also of declared events that never occurred.
        traces: what the tables' `trace` column refers to.
        stats: streams, and what was lost in them.
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
) -> DecodedTrace:
    """Reads every trace below `directory`, merged by time.

    Args:
        directory: a trace, or a session directory with several.
        events: names to read; all by default. Others are skipped, not materialised.
        fields: columns to read, for all events or by event name; all by default.
        window: first and last moment, nanoseconds since the epoch.
        threads: streams decoded at once; ``LDOS_THREADS`` or the number of CPUs by default.

    Raises:
        TraceUnreadable: no trace there, or one that is damaged or not CTF 1.8; names the
            file, the offset and the reason. A last packet that is cut is no error: it is
            read up to its last whole event, and counted in `DecodedTrace.stats`.
    """
    root = Path(directory)
    by_event = isinstance(fields, Mapping)
    try:
        found = _decoder.decode(
            _find_files(root),
            events=None if events is None else set(events),
            fields=set() if fields is None or by_event else set(fields),
            fields_of={name: set(names) for name, names in fields.items()} if isinstance(fields, Mapping) else {},
            window=window,
            threads=_thread_count(threads),
        )
    except _decoder.Unreadable as error:
        path, offset, reason = error.args
        raise TraceUnreadable(Path(path), offset, reason) from None
    return _to_trace(root, found)


def _thread_count(threads: int | None) -> int:
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


def _find_files(root: Path) -> list[tuple[str, list[str]]]:
    """Each trace below `root` as its metadata file and its stream files."""
    if not root.exists():
        raise TraceUnreadable(root, None, "there is no such directory")
    if not root.is_dir():
        raise TraceUnreadable(root, None, "is a file", remedy="name the directory that holds `metadata`")
    traces = []
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders.sort()
        if METADATA in names:
            streams = [str(Path(folder) / name) for name in sorted(names) if _is_stream(name)]
            traces.append((str(Path(folder) / METADATA), streams))
    if not traces:
        raise TraceUnreadable(root, None, "no trace in it (no file named `metadata` anywhere below)")
    return traces


def _is_stream(name: str) -> bool:
    return name != METADATA and not name.startswith(".") and not name.endswith(".idx")


def _refuse(error: OSError) -> None:
    raise TraceUnreadable(Path(error.filename), None, error.strerror or "cannot be listed") from error


def _to_trace(root: Path, found: Mapping[str, Any]) -> DecodedTrace:
    return DecodedTrace(
        directory=root,
        events={table["name"]: _to_table(table) for table in found["tables"]},
        traces=tuple(_to_info(trace) for trace in found["traces"]),
        stats=ReadStats(tuple(_to_stats(stream) for stream in found["streams"])),
    )


def _to_info(found: Mapping[str, Any]) -> TraceInfo:
    directory = Path(found["metadata"]).parent
    return TraceInfo(directory, found["environment"], found["clock"], found["clock_offset_ns"])


def _to_stats(found: Mapping[str, Any]) -> StreamStats:
    return StreamStats(
        path=Path(found["path"]),
        trace=found["trace"],
        packets=found["packets"],
        events=found["events"],
        truncated_bytes=found["truncated_bytes"],
        gaps=tuple(Gap(*gap) for gap in found["gaps"]),
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
    """An array as it is; one number as the same element `rows` times."""
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
